"""Files whose contents may change while the server runs.

They are checked when they are needed, and never polled.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

_log = logging.getLogger(__name__)

LOOK_S = 1.0
"""Minimum interval between two checks: a thousand uses a second cost one check."""

_Content = TypeVar("_Content")
_Stamp = tuple[tuple[int, int, int], ...]


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
        self.content = read()
        self.generation = 1
        """Incremented whenever the files have changed."""

    def look(self) -> _Content:
        """Return the content; the previous one if the present one is wrong. One `stat` a second."""
        now_s = self._clock()
        if now_s - self._looked_s < LOOK_S:
            return self.content
        self._looked_s = now_s
        try:
            stamp = self._stamped()
            if stamp != self._stamp:
                self._stamp = stamp
                self.content = self._read()
                self.generation += 1
                _log.info("%s: reloaded", ", ".join(map(str, self.paths)))
        except FileError as error:
            _log.error("reload failed, the previous contents stay in force: %s", error)
        except Exception as error:  # noqa: BLE001 - any error of a library on the content
            files = ", ".join(map(str, self.paths))
            _log.error(
                "reload failed, the previous contents stay in force: %s: %s", files, type(error).__name__
            )
        return self.content

    def _stamped(self) -> _Stamp:
        found = []
        for path in self.paths:
            try:
                status = os.stat(path)  # noqa: PTH116 - the fields, once
            except OSError as error:
                raise FileError(f"{path} cannot be read: {error.strerror}") from None
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
