"""Faults of the stream job: real processes, files that come meanwhile, and an audit at the end."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow.parquet as pq

from streaming.result.sink import batch_name, read_batch
from tests.chaos.tally import Tally
from tests.streaming.feed import AREA, RandomFeed

_PAUSE_S = 0.5
"""Between two files of messages."""
_BATCH_S = 180.0
"""A batch takes a second or two, and the start of a job some more: a guard against waiting for ever."""
_MOMENT_S = 1.5
"""A fault comes so long behind the end of a batch, at most: in the middle of the next."""
_ENDED_S = 30.0


class StreamError(Exception):
    """The job does not go on."""


class StreamJob:
    """A job in a process of its own, and feeds that go on."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.chance = random.Random(seed)
        self.memory = folder / "memory"
        self.memory.mkdir(parents=True)
        self._feed = RandomFeed(seed)
        self._feed.write(folder, 0, 200, 40)
        self.files = 1
        self._process: subprocess.Popen[bytes] | None = None

    # -- processes -------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin the job, or go on with it."""
        paths = [
            f"--{name}={self.folder / name}"
            for name in ("messages", "subscriptions", "out", "checkpoint")
        ]
        area = ",".join(map(str, AREA))
        options = [f"--memory={self.memory}", f"--area={area}", "--window=300", "--partitions=2"]
        command = [sys.executable, "-m", "cli", "stream", *paths, *options, "--files-per-batch=10"]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)

    def running(self) -> subprocess.Popen[bytes]:
        """Return the process; raise StreamError if there is none, or it has ended by itself."""
        if self._process is None or self._process.poll() is not None:
            raise StreamError(f"the job has ended: {self.last_words()}")
        return self._process

    def kill(self) -> None:
        """Kill the process at once."""
        process = self.running()
        process.kill()
        process.wait()

    def stop(self) -> None:
        """Ask the process to end."""
        process = self.running()
        process.terminate()
        process.wait(_ENDED_S)

    def workers(self) -> list[int]:
        """Return the processes in which engines work."""
        children = _children()
        daemons = [one for jvm in children.get(self.running().pid, []) for one in children.get(jvm, [])]
        return [worker for daemon in daemons for worker in children.get(daemon, [])]

    def last_words(self) -> str:
        """Return the end of the log."""
        return (self.folder / "log").read_text(errors="replace")[-2000:]

    # -- what it has done ------------------------------------------------------------------------

    def batches(self) -> int:
        """Return how many batches are complete."""
        return len(list((self.folder / "out" / "batches").glob("[0-9]*.json")))

    def await_batches(self, count: int) -> None:
        """Wait until so many are complete; raise StreamError if that takes too long."""
        end_s = time.monotonic() + _BATCH_S
        while self.batches() < count:
            self.running()
            if time.monotonic() > end_s:
                raise StreamError(f"{self.batches()} batches, not {count}: {self.last_words()}")
            time.sleep(0.05)

    def await_all(self) -> None:
        """Wait until every file has been read."""
        end_s = time.monotonic() + _BATCH_S
        while self._read_count() < self.files:
            self.running()
            if time.monotonic() > end_s:
                raise StreamError(f"{self._read_count()} of {self.files} files: {self.last_words()}")
            time.sleep(0.1)

    def _read_count(self) -> int:
        done = range(self.batches())
        return sum(len(read_batch(self.folder / "out", one)["files"]["messages"]) for one in done)

    @contextmanager
    def feeding(self) -> Iterator[None]:
        """Let files come."""
        stop = threading.Event()

        def feed() -> None:
            while not stop.wait(_PAUSE_S):
                self._feed.write(self.folder, self.files, 10, 40)
                self.files += 1

        thread = threading.Thread(target=feed)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()


def _children() -> dict[int, list[int]]:
    """Return the children of every process."""
    found: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text()
        except OSError:  # it has ended
            continue
        found.setdefault(int(text.rpartition(")")[2].split()[1]), []).append(int(path.parent.name))
    return found


def driver_killed(job: StreamJob) -> None:
    """Kill Spark's driver, and begin again."""
    job.kill()
    job.start()


def worker_killed(job: StreamJob) -> None:
    """Kill the processes in which engines work: Spark tries their tasks again."""
    for worker in job.workers():
        try:
            os.kill(worker, signal.SIGKILL)
        except ProcessLookupError:
            continue


def memory_lost(job: StreamJob) -> None:
    """Kill the driver and forget the engines, as when the machine has begun anew."""
    job.kill()
    for one in job.memory.iterdir():
        # Who still works there may be writing.
        shutil.rmtree(one, ignore_errors=True)
    job.start()


def asked_to_stop(job: StreamJob) -> None:
    """Ask the job to end, and begin again."""
    job.stop()
    job.start()


STREAM_FAULTS: dict[str, Callable[[StreamJob], None]] = {
    "stream: driver killed": driver_killed,
    "stream: workers killed": worker_killed,
    "stream: memory lost": memory_lost,
    "stream: asked to stop": asked_to_stop,
}


def strike_stream(
    tally: Tally, count: int, folder: Path, seed: int, progress: Callable[[str, int, int], None]
) -> None:
    """Inject a fault so many times while files come; then compare results, and look at every change."""
    began_s = time.perf_counter()
    job = StreamJob(folder, seed)
    job.start()
    try:
        with job.feeding():
            for _ in range(count):
                job.await_batches(job.batches() + 2)
                time.sleep(job.chance.uniform(0.0, _MOMENT_S))
                STREAM_FAULTS[tally.fault](job)
                tally.injected += 1
                progress(tally.fault, tally.injected, count)
            job.await_batches(job.batches() + 2)
        job.await_all()
        job.stop()
        tally.lists, wrong = _audit(folder)
        tally.violations += wrong
        tally.commands, wrong = _changes(folder / "out")
        tally.violations += wrong
    except (StreamError, subprocess.TimeoutExpired) as error:
        tally.violations.append(repr(error))
    finally:
        with suppress(StreamError):
            job.kill()
        tally.seconds = time.perf_counter() - began_s


def _audit(folder: Path) -> tuple[int, list[str]]:
    """Compare results with the definition; return how many, and what is wrong."""
    command = [sys.executable, "-m", "cli", "stream-audit", f"--out={folder / 'out'}"]
    command += [f"--checkpoint={folder / 'checkpoint'}", "--sample=2000"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    found = re.fullmatch(r"audit: (\d+) lists, (\d+) mismatches", lines[-1] if lines else "")
    if found is None:
        return 0, [f"the audit has ended with {done.returncode}: {done.stderr[-2000:]}"]
    return int(found[1]), lines[: int(found[2])]


def _changes(out: Path) -> tuple[int, list[str]]:
    """Require that what enters is not there yet, and what leaves is; return how many."""
    there: set[tuple[int, int]] = set()
    wrong: list[str] = []
    count = 0
    for batch in range(len(list((out / "batches").glob("[0-9]*.json")))):
        rows = pq.read_table(
            out / "changes" / f"batch={batch_name(batch)}", partitioning=None
        ).to_pylist()
        left = [(row["object_id"], one) for row in rows for one in row["left"]]
        entered = [(row["object_id"], one) for row in rows for one in row["entered"]]
        count += len(left) + len(entered)
        wrong += [f"batch {batch}: {one} leaves, and was not there" for one in left if one not in there]
        there.difference_update(left)
        wrong += [f"batch {batch}: {one} enters, and is there" for one in entered if one in there]
        if len(set(entered)) != len(entered):
            wrong.append(f"batch {batch}: something enters twice")
        there.update(entered)
    return count, wrong
