"""A lock of the operating system, which many processes hold together or one alone.

The lock is released when its process ends.
"""

from __future__ import annotations

import fcntl
import time
from pathlib import Path
from types import TracebackType
from typing import IO, Self

_POLLS_S = (0.002,) * 100
"""The first intervals between attempts; then `_POLL_S`."""
_POLL_S = 0.05


class LockedError(Exception):
    """Other processes hold a lock, and do not release it."""


class FileLock:
    """A lock on a file, which is created if it does not exist.

    Parameters
    ----------
    path
        The file.
    wait_s
        How long to wait for other processes.
    """

    def __init__(self, path: Path, wait_s: float) -> None:
        self._path = path
        self._wait_s = wait_s
        self._file: IO[bytes]
        self.is_exclusive = False

    def __enter__(self) -> Self:
        """Open the file; hold nothing yet."""
        self._file = self._path.open("wb")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Release the lock."""
        self._file.close()

    def share(self) -> None:
        """Hold the lock together with others. If it is held alone, others may have it in between.

        Raises
        ------
        LockedError
            If another process holds it alone for too long.
        """
        self._lock(fcntl.LOCK_SH)
        self.is_exclusive = False

    def own(self) -> None:
        """Hold the lock alone. If it is held together with others, others may have it in between.

        Raises
        ------
        LockedError
            If other processes hold it for too long.
        """
        self._lock(fcntl.LOCK_EX)
        self.is_exclusive = True

    def _lock(self, how: int) -> None:
        # A lock that is converted is released first, even if the attempt fails.
        polls, end_s = iter(_POLLS_S), time.monotonic() + self._wait_s
        while True:
            try:
                fcntl.flock(self._file, how | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= end_s:
                    raise LockedError(f"{self._path.parent} is in use by another process") from None
                time.sleep(next(polls, _POLL_S))
            else:
                return
