"""Start server processes, measure them from outside, and stop them."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.errors import BenchError

_STOP_S = 20.0
_FILES_SPARE = 200
"""Open files of a process in addition to its connections."""
_CPU_CLOCK = 2
"""Linux numbers the CPU clock of a process by the complement of its number and this kind of clock."""
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Process:
    """A server that runs as its own process.

    Parameters
    ----------
    pid
        Number of the process.
    address
        Address at which it listens.
    """

    def __init__(self, pid: int, address: str) -> None:
        self.pid = pid
        self.address = address

    def rss_bytes(self) -> int:
        """Return the resident memory of the process."""
        return self._pages()[1] * _PAGE_BYTES

    def own_bytes(self) -> int:
        """Return the resident memory without pages of files, which the system can reclaim."""
        _, occupied, of_files, *_ = self._pages()
        return (occupied - of_files) * _PAGE_BYTES

    def cpu_s(self) -> float:
        """Return the CPU time of the process, all threads together.

        The time has the resolution of the process's CPU clock (clock_getcpuclockid), while the counts in
        /proc are in ticks of 10 ms.
        """
        return time.clock_gettime(~self.pid << 3 | _CPU_CLOCK)

    def is_alive(self) -> bool:
        """Return whether the process still runs."""
        try:
            state = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return False
        return state != "Z"

    def kill(self) -> None:
        """Kill the process, as `kill -9` does."""
        os.kill(self.pid, signal.SIGKILL)

    def _pages(self) -> list[int]:
        return [int(count) for count in Path(f"/proc/{self.pid}/statm").read_text().split()]


@contextmanager
def running(
    arguments: Sequence[str],
    ready: str,
    log: Path,
    *,
    command: Sequence[str] = (),
    folder: Path | None = None,
) -> Iterator[Process]:
    """Run a Python module, or another command, until the block ends.

    Parameters
    ----------
    arguments
        Module and its arguments.
    ready
        Start of the line in which the process reports its address.
    log
        File for its messages.
    command
        Command that takes the arguments; by default this Python, which runs a module.
    folder
        Working directory; by default the current one.

    Raises
    ------
    BenchError
        If the process ends before it listens.
    """
    with log.open("w") as messages:
        process = subprocess.Popen(  # noqa: S603 - our own program
            [*(command or (sys.executable, "-m")), *arguments],
            cwd=folder,
            env=_other_environment() if command else None,
            stdout=subprocess.PIPE,
            stderr=messages,
            text=True,
        )
        try:
            line = process.stdout.readline() if process.stdout is not None else ""
            if not line.startswith(ready):
                raise BenchError(f"{arguments[0]} did not start:\n{log.read_text()[-2000:]}")
            yield Process(process.pid, line.removeprefix(ready).strip())
        finally:
            process.terminate()
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _other_environment() -> dict[str, str]:
    """Return the variables for another installation, which has its own packages."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def files_max() -> int:
    """Return the maximum number of connections of this process."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if hard == resource.RLIM_INFINITY else hard - _FILES_SPARE


def require_files(connections: int) -> None:
    """Raise the limit of open files of this process and of those that it starts.

    Raises
    ------
    BenchError
        If the system does not allow so many connections.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if connections > files_max():
        raise BenchError(
            f"devices is {connections}, must be at most {files_max()} here: "
            f"a process may open {hard} files (ulimit -Hn)"
        )
