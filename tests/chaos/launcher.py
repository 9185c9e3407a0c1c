"""Run the real command line, on a clock and a disk that a test can bend.

    python -m tests.chaos.launcher CONTROL serve ...

CONTROL is a file of two numbers, mapped into memory, that the test writes while the server runs: how far
the wall clock is off, in nanoseconds, and how much longer every commit takes, in seconds. The server's
own code runs unchanged; only `time.time_ns` and `SqliteStore.commit` are wrapped.
"""

from __future__ import annotations

import mmap
import struct
import sys
import time
from pathlib import Path
from typing import Any

LAYOUT = struct.Struct("<qd")
"""Offset of the wall clock in nanoseconds, delay of a commit in seconds."""


def bend(control: Path) -> None:
    """Let the clock and the store of this process follow a control file."""
    from server.store import SqliteStore  # noqa: PLC0415 - the command line sets up numba first

    with control.open("rb") as file:
        page = mmap.mmap(file.fileno(), LAYOUT.size, access=mmap.ACCESS_READ)
    true_time_ns = time.time_ns
    true_commit = SqliteStore.commit

    def time_ns() -> int:
        return true_time_ns() + LAYOUT.unpack_from(page)[0]

    def commit(self: SqliteStore, *arguments: Any) -> None:
        delay_s = LAYOUT.unpack_from(page)[1]
        if delay_s:
            time.sleep(delay_s)
        true_commit(self, *arguments)

    time.time_ns = time_ns
    SqliteStore.commit = commit


def main() -> None:
    """Bend, then run `nearcast`."""
    from cli import main as nearcast  # noqa: PLC0415

    bend(Path(sys.argv.pop(1)))
    nearcast()


if __name__ == "__main__":
    main()
