"""Faults of the stream job: real processes, files that come meanwhile, and an audit at the end."""

from __future__ import annotations

import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pyarrow as pa

from feeds.redis.address import BEGIN, Span
from feeds.redis.streams import Streams
from feeds.schemas import FEEDS, KEYS
from streaming.distribution import MECHANISMS
from tests.chaos.tally import Tally
from tests.streaming.feed import AREA, RandomFeed
from tests.support.redis_server import RedisServer
from tests.support.stream_results import changes_of, complete, follow, read_files

_PAUSE_S = 0.5
"""Between two files of messages."""
_AHEAD = 10
"""So many files come at most while no batch is complete: a job on a busy machine keeps up."""
_BATCH_S = 600.0
"""A batch takes a second or two, and the start of a job some more: a guard against waiting for ever."""
_MOMENT_S = 1.5
"""A fault comes so long behind the end of a batch, at most: in the middle of the next."""
_ENDED_S = 30.0
_FULL_S = 20.0
"""A full disk is noticed by then, or there is room again."""
_FULL_BYTES = 4096
_AWAY_S = 3.0
"""Redis is away for so long, at most."""


class StreamError(Exception):
    """The job does not go on."""


class StreamJob:
    """A job in a process of its own, and feeds that go on."""

    def __init__(self, folder: Path, seed: int, mechanism: str) -> None:
        self.folder = folder
        self._mechanism = mechanism
        self.chance = random.Random(seed)
        self.memory = folder / "memory"
        self.memory.mkdir(parents=True)
        self.feed = RandomFeed(seed)
        self.files = 0
        self._process: subprocess.Popen[bytes] | None = None
        self.add(200)

    def add(self, subscriptions: int = 10) -> None:
        """Let something come to each feed."""
        self.feed.write(self.folder, self.files, subscriptions, 40)
        self.files += 1

    def sources(self) -> list[str]:
        """Return where the feeds are, as options."""
        return [f"--{name}={self.folder / name}" for name in FEEDS]

    # -- processes -------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin the job, or go on with it."""
        paths = [f"--{name}={self.folder / name}" for name in ("out", "checkpoint")]
        area = ",".join(map(str, AREA))
        options = [f"--memory={self.memory}", f"--area={area}", "--window=300", "--partitions=2"]
        options.append(f"--mechanism={self._mechanism}")
        command = [
            sys.executable,
            "-m",
            "cli",
            "stream",
            "run",
            *self.sources(),
            *paths,
            *options,
            "--files-per-batch=10",
        ]
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
        """Ask the process to end; raise StreamError if it ends with an error."""
        process = self.running()
        process.terminate()
        if (status := process.wait(_ENDED_S)) != 0:
            raise StreamError(f"the job has ended with {status}: {self.last_words()}")

    def workers(self) -> list[int]:
        """Return the processes in which engines work."""
        children = _children()
        daemons = [one for jvm in children.get(self.running().pid, []) for one in children.get(jvm, [])]
        return [worker for daemon in daemons for worker in children.get(daemon, [])]

    def processes(self) -> list[int]:
        """Return all processes of the job."""
        children, found = _children(), [self.running().pid]
        for one in found:
            found += children.get(one, [])
        return found

    def has_ended(self) -> bool:
        """Whether the job has ended by itself."""
        return self._process is not None and self._process.poll() is not None

    def last_words(self) -> str:
        """Return the end of the log."""
        return (self.folder / "log").read_text(errors="replace")[-2000:]

    # -- what it has done ------------------------------------------------------------------------

    def batches(self) -> int:
        """Return how many batches are complete."""
        return len(complete(self.folder / "out"))

    def await_batches(self, count: int) -> None:
        """Wait until so many are complete; raise StreamError if the job does not go on."""
        self._await(lambda: self.batches() >= count)

    def await_all(self) -> None:
        """Wait until every file has been read; raise StreamError if the job does not go on."""
        self._await(self.has_read_all)

    def _await(self, is_done: Callable[[], bool]) -> None:
        batches, end_s = self.batches(), time.monotonic() + _BATCH_S
        while not is_done():
            self.running()
            if (complete_now := self.batches()) > batches:
                batches, end_s = complete_now, time.monotonic() + _BATCH_S
            if time.monotonic() > end_s:
                raise StreamError(f"no batch after {batches} is complete: {self.last_words()}")
            time.sleep(0.1)

    def has_read_all(self) -> bool:
        """Whether every file was read."""
        return len(self.read()) == self.files

    def read(self) -> list[str]:
        """Return what batches have read of the messages."""
        return read_files(self.folder / "out", "messages")

    @contextmanager
    def feeding(self) -> Iterator[None]:
        """Let files come, as long as the job keeps up."""
        stop = threading.Event()

        def feed() -> None:
            batches, added = self.batches(), 0
            while not stop.wait(_PAUSE_S):
                if (complete_now := self.batches()) > batches:
                    batches, added = complete_now, 0
                if added < _AHEAD:
                    self.add()
                    added += 1

        thread = threading.Thread(target=feed)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()


class RedisJob(StreamJob):
    """A job whose feeds are in Redis."""

    def __init__(self, folder: Path, seed: int, mechanism: str, server: RedisServer) -> None:
        self.server = server
        self._streams = {
            name: Streams(server.address(name, 2), FEEDS[name], KEYS[name]) for name in FEEDS
        }
        super().__init__(folder, seed, mechanism)

    def add(self, subscriptions: int = 10) -> None:
        """Append to both feeds, however long the server is away."""
        rows = {
            "subscriptions": self.feed.subscriptions(subscriptions),
            "messages": self.feed.messages(40),
        }
        for name, own in rows.items():
            self._streams[name].append(pa.Table.from_pylist(own, FEEDS[name]))

    def sources(self) -> list[str]:
        """Return where the feeds are."""
        updates = f"--updates={self.server.address('updates')}"
        return [updates, *(f"--{name}={self.server.address(name, 2)}" for name in FEEDS)]

    def has_read_all(self) -> bool:
        """Whether the last entry of each stream was read."""
        read = {one.stream: one.upto for one in map(Span.parse, self.read())}
        messages = self._streams["messages"]
        return all(
            messages.upto(BEGIN, name, None) == read.get(name, BEGIN) for name in messages.address.names
        )


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


def disk_full(job: StreamJob) -> None:
    """Let no file grow for a while, as on a full disk; begin again, if the job has ended with that."""
    processes = job.processes()
    for one in processes:
        with suppress(ProcessLookupError):
            resource.prlimit(one, resource.RLIMIT_FSIZE, (_FULL_BYTES, resource.RLIM_INFINITY))
    end_s = time.monotonic() + _FULL_S
    while not job.has_ended() and time.monotonic() < end_s:
        time.sleep(0.1)
    for one in processes:
        with suppress(ProcessLookupError):
            resource.prlimit(one, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    if job.has_ended():
        job.start()


def redis_killed(job: StreamJob) -> None:
    """Kill the server of the feeds, and start it again with what it has acknowledged."""
    assert isinstance(job, RedisJob)
    job.server.kill()
    time.sleep(job.chance.uniform(0.0, _AWAY_S))
    job.server.start()


REDIS_KILLED = "stream: Redis killed"

STREAM_FAULTS: dict[str, Callable[[StreamJob], None]] = {
    "stream: driver killed": driver_killed,
    "stream: workers killed": worker_killed,
    "stream: memory lost": memory_lost,
    "stream: asked to stop": asked_to_stop,
    "stream: disk full": disk_full,
    REDIS_KILLED: redis_killed,
}


def strike_stream(
    tally: Tally, count: int, folder: Path, seed: int, progress: Callable[[str, int, int], None]
) -> None:
    """Inject a fault so many times while files come, into jobs of all mechanisms in turn.

    Behind them results of each job are compared, and every change is looked at.
    """
    began_s = time.perf_counter()
    for mechanism, own in _shares(tally.fault, count).items():
        with ExitStack() as servers:
            own_folder = folder / mechanism
            if tally.fault == REDIS_KILLED:
                program = shutil.which("redis-server") or ""
                (own_folder / "redis").mkdir(parents=True)
                server = RedisServer(program, own_folder / "redis")
                server.start()
                servers.callback(server.kill)
                job: StreamJob = RedisJob(own_folder, seed, mechanism, server)
            else:
                job = StreamJob(own_folder, seed, mechanism)
            _strike(job, tally, own, lambda: progress(tally.fault, tally.injected, count))
    tally.seconds = time.perf_counter() - began_s


def _shares(fault: str, count: int) -> dict[str, int]:
    """Return how often a fault strikes each mechanism; each fault begins with another one."""
    first = list(STREAM_FAULTS).index(fault)
    names = [*MECHANISMS]
    turns = [names[(first + turn) % len(names)] for turn in range(count)]
    return {name: turns.count(name) for name in dict.fromkeys(turns)}


def _strike(job: StreamJob, tally: Tally, count: int, on_injected: Callable[[], None]) -> None:
    job.start()
    try:
        with job.feeding():
            for _ in range(count):
                job.await_batches(job.batches() + 2)
                time.sleep(job.chance.uniform(0.0, _MOMENT_S))
                STREAM_FAULTS[tally.fault](job)
                tally.injected += 1
                on_injected()
            job.await_batches(job.batches() + 2)
        job.await_all()
        job.stop()
        lists, wrong = _audit(job.folder)
        tally.lists += lists
        tally.violations += wrong
        changes, wrong = _changes(job.folder / "out")
        tally.commands += changes
        tally.violations += wrong
    except (StreamError, subprocess.TimeoutExpired) as error:
        tally.violations.append(repr(error))
    finally:
        with suppress(StreamError):
            job.kill()


def _audit(folder: Path) -> tuple[int, list[str]]:
    """Compare results with the definition; return how many, and what is wrong."""
    command = [sys.executable, "-m", "cli", "stream", "audit", f"--out={folder / 'out'}"]
    command += [f"--checkpoint={folder / 'checkpoint'}", "--sample=2000"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    found = re.fullmatch(r"audit: (\d+) lists, (\d+) mismatches", lines[-1] if lines else "")
    if found is None:
        return 0, [f"the audit has ended with {done.returncode}: {done.stderr[-2000:]}"]
    return int(found[1]), lines[: int(found[2])]


def _changes(out: Path) -> tuple[int, list[str]]:
    """Require that each change of each batch can be applied; return how many there are."""
    lists: dict[int, dict[int, float]] = {}
    wrong: list[str] = []
    count = 0
    for batch in complete(out):
        found, problems = follow(lists, changes_of(out, batch))
        count += found
        wrong += [f"batch {batch}: {problem}" for problem in problems]
    return count, wrong
