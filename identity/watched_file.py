"""Files whose contents may change while the server runs.

They are checked when they are needed, and never polled. Files that could not be used are read again every
30 s, because the cause may go away without a change of the files: rights, the time from which a
certificate is valid, a lack of open files.
"""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

_log = logging.getLogger(__name__)

LOOK_S = 1.0
"""Minimum interval between two checks: a thousand uses a second cost one check."""

RETRY_S = 30.0
"""Interval between two attempts to read files that could not be used and have not changed since."""

_Content = TypeVar("_Content")
_Stamp = tuple[tuple[int, int, int], ...]
_NO_FILE = (0, 0, 0)


class FileError(Exception):
    """A file is not as required. The message names the file, and nothing secret."""


class WatchedFiles(Generic[_Content]):
    """The combined content of some files.

    Parameters
    ----------
    paths
        The files.
    read
        Reads them all.
    clock
        Monotonic seconds.

    Raises
    ------
    FileError
        If they cannot be read now.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        read: Callable[[], _Content],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.paths = paths
        self._read = read
        self._clock = clock
        self._looked_s = clock()
        self._stamp = self._stamped()
        self._retry_s = math.inf
        self._failure = ""
        self.content = read()
        self.generation = 1
        """Incremented whenever the files have changed."""

    def look(self) -> _Content:
        """Return the content; the previous one if the present one is wrong. One `stat` a second."""
        now_s = self._clock()
        if now_s - self._looked_s < LOOK_S:
            return self.content
        self._looked_s = now_s
        stamp = self._stamped()
        is_changed = stamp != self._stamp
        if is_changed or now_s >= self._retry_s:
            self._stamp = stamp
            self._retry_s = now_s + RETRY_S
            self._reload(is_changed=is_changed)
        return self.content

    def _reload(self, *, is_changed: bool) -> None:
        """Read the files; log a failure, unless it is that of the last attempt at the same files."""
        files = ", ".join(map(str, self.paths))
        try:
            self.content = self._read()
        except FileError as error:
            failure = str(error)
        except Exception as error:  # noqa: BLE001 - any error of a library on the content
            failure = f"{files}: {type(error).__name__}"
        else:
            self._retry_s = math.inf
            self._failure = ""
            self.generation += 1
            _log.info("%s: reloaded", files)
            return
        if is_changed or failure != self._failure:
            _log.error("reload failed, the previous contents stay in force: %s", failure)
        self._failure = failure

    def _stamped(self) -> _Stamp:
        found = []
        for path in self.paths:
            try:
                status = os.stat(path)  # noqa: PTH116 - the fields, once
            except OSError:
                found.append(_NO_FILE)  # reading it names the error
            else:
                found.append((status.st_mtime_ns, status.st_size, status.st_ino))
        return tuple(found)


def read_bytes(path: Path) -> bytes:
    """Return the content of a file.

    Raises
    ------
    FileError
        If it cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}") from None
