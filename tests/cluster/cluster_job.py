"""A stream job on a cluster: its driver in a process on a host, feeds and results in a shared folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tests.cluster.feed import AREA, ZipfFeed, write_rows
from tests.cluster.hosts import Host, Hosts
from tests.cluster.spark_cluster import SparkCluster, variables
from tests.support.stream_results import complete, read_files

_BATCH_S = 300.0
"""A guard against waiting for ever."""
_ONCE_S = 900.0
"""All that there is, on a machine that has other things to do."""
_STOPPED_S = 60.0


class Size(NamedTuple):
    """How much a job has to do."""

    subscriptions: int = 20_000
    window: int = 20_000
    batch: int = 1_000
    """Messages of a file, and of a batch."""
    partitions: int = 4


class JobError(Exception):
    """The job does not go on; the message has the end of its log."""


class ClusterJob:
    """A job and its feeds.

    Parameters
    ----------
    hosts, cluster
        Where it runs.
    folder
        Shared by all hosts.
    mechanism
        How subscriptions are divided.
    size
        How much it has to do.
    seed
        Of the feeds.
    options
        More of the command's.
    """

    def __init__(
        self,
        hosts: Hosts,
        cluster: SparkCluster,
        folder: Path,
        mechanism: str,
        size: Size,
        seed: int = 1,
        options: Sequence[str] = (),
    ) -> None:
        self.hosts, self.cluster, self.folder = hosts, cluster, folder
        self.out, self.checkpoint = folder / "out", folder / "checkpoint"
        self.size = size
        self._mechanism, self._options = mechanism, options
        self._feed = ZipfFeed(seed)
        self.once = False
        """Whether drivers read what there is, and end."""
        self._files = self._end = 0
        self._drivers: list[tuple[Host, subprocess.Popen[bytes]]] = []
        self._write("messages", self._feed.messages(size.window))
        self._write("subscriptions", self._feed.subscriptions(size.subscriptions))

    # -- feeds ---------------------------------------------------------------------------------------

    def add(self, batches: int) -> None:
        """Let messages come for so many batches."""
        for _ in range(batches):
            self._write("messages", self._feed.messages(self.size.batch))

    def _write(self, feed: str, rows: list[dict[str, object]]) -> None:
        write_rows(self.folder / feed, self._files, feed, rows)
        self._files += 1

    # -- the driver ------------------------------------------------------------------------------------

    def start(self, host: int) -> None:
        """Start a driver on a host: that of the job from now on."""
        self._end = self.message_files
        where = self.hosts[host]
        folders = ("messages", "subscriptions", "out", "checkpoint")
        command = [
            *(sys.executable, "-m", "cli", "stream", "run"),
            *self.cluster.options(where),
            *(f"--{name}={self.folder / name}" for name in folders),
            f"--area={','.join(map(str, AREA))}",
            f"--window={self.size.window}",
            f"--mechanism={self._mechanism}",
            f"--partitions={self.size.partitions}",
            "--files-per-batch=1",
            *self._options,
            *(["--once"] if self.once else []),
        ]
        with self._log(len(self._drivers)).open("ab") as log:
            self._drivers.append((where, where.start(command, log, variables(where))))

    def driver(self) -> subprocess.Popen[bytes]:
        """Return the process of the driver; raise JobError if it has ended by itself."""
        _, process = self._drivers[-1]
        if process.poll() is not None:
            raise JobError(f"the driver has ended with {process.returncode}: {self.last_words()}")
        return process

    @property
    def driver_count(self) -> int:
        """How many drivers there were, with the last one."""
        return len(self._drivers)

    def older(self) -> subprocess.Popen[bytes]:
        """Return the process of the driver before the last one."""
        return self._drivers[-2][1]

    def kill(self) -> None:
        """Kill the driver at once, and its JVM with it."""
        _signal_all(self.driver(), signal.SIGKILL)
        self._drivers[-1][1].wait(_STOPPED_S)

    def pause(self, *, stopped: bool) -> None:
        """Stop the last driver's processes where they are, or let them go on."""
        _signal_all(self._drivers[-1][1], signal.SIGSTOP if stopped else signal.SIGCONT)

    def resume_older(self) -> None:
        """Let the processes of the driver before the last go on."""
        _signal_all(self.older(), signal.SIGCONT)

    def stop(self) -> None:
        """Ask the driver to end."""
        self.driver().send_signal(signal.SIGTERM)
        self._drivers[-1][1].wait(_STOPPED_S)

    def wait(self, seconds: float = _ONCE_S) -> int:
        """Wait until the driver ends by itself; return its status."""
        return self._drivers[-1][1].wait(seconds)

    def close(self) -> None:
        """End all that is left of the drivers."""
        for _, process in self._drivers:
            if process.poll() is None:
                with suppress(ProcessLookupError):
                    _signal_all(process, signal.SIGKILL)
                process.wait(_STOPPED_S)

    def _log(self, number: int) -> Path:
        return self.folder / f"driver-{number}.log"

    def last_words(self, number: int = -1) -> str:
        """Return the end of a driver's log."""
        path = self._log(len(self._drivers) - 1 if number < 0 else number)
        return path.read_text(errors="replace")[-3000:]

    # -- what it has done ------------------------------------------------------------------------------

    def batches(self) -> list[int]:
        """Return the numbers of the batches that are complete."""
        return complete(self.out)

    def read_count(self) -> int:
        """Return how many files of messages batches have read."""
        return len(read_files(self.out, "messages"))

    def await_read(self, count: int, seconds: float = _BATCH_S) -> float:
        """Wait until so many files of messages were read; return how long that took."""
        began_s = time.monotonic()
        while self.read_count() < count:
            self.driver()
            if time.monotonic() > began_s + seconds:
                raise JobError(f"{self.read_count()} files read, not {count}: {self.last_words()}")
            time.sleep(0.2)
        return time.monotonic() - began_s

    @property
    def ahead(self) -> int:
        """How many files of messages there were when the driver started, and are not read yet."""
        return self._end - self.read_count()

    @property
    def message_files(self) -> int:
        """How many files of messages there are."""
        return len(list((self.folder / "messages").glob("[0-9]*")))


def _signal_all(process: subprocess.Popen[bytes], number: int) -> None:
    """Send a signal to a process and to all that it has started."""
    found = [process.pid]
    for one in found:
        found += _children(one)
    for one in reversed(found):
        with suppress(ProcessLookupError):
            os.kill(one, number)


def _children(process: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):
            found += map(int, task.read_text().split())
    return found
