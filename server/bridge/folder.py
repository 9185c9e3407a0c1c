"""A folder as a feed: Parquet files in the order of their names, which are the offsets.

A file that cannot be read is set aside under `NAME.refused`, where its writer finds it, and the feed
continues. A file that cannot be set aside, because the folder is read-only, is remembered and skipped.
Only regular files are opened: a writer of the folder could make the server wait with a pipe, or make it
read files of others with a link.
"""

from __future__ import annotations

import errno
import heapq
import os
import stat
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from feeds.bounds import UnreadableError
from server.bridge.chunk import ROWS_MAX, Chunk, described, shown
from server.bridge.file_reader import FileReader

_FILES = "files"
"""The only stream of a folder."""

_SUFFIX = ".parquet"
_REFUSED = ".refused"
_NAMES_MAX = 1_000
"""Maximum number of names tried for a file that is set aside beside others of its name."""

_RUN_MAX = 10_000
"""Maximum number of names that are kept."""
_SCAN_S = 10.0
"""How long names are used: some file systems have no times of changes."""
_TICK_S = 2.0
"""How coarse the times of a file system may be."""

_PASSING = frozenset(
    {errno.EINTR, errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC, errno.ESTALE}
)
"""System errors with causes other than the file, which is then read again."""


class FolderSourceFeed:
    """The files of a folder.

    Parameters
    ----------
    folder
        The path of the folder.
    """

    def __init__(self, folder: Path) -> None:
        self.streams: tuple[str, ...] = (_FILES,)
        self._folder = folder
        self._reader = FileReader()
        self._passed_over: set[str] = set()
        """Names of files that can be neither read nor set aside."""
        self._names = _Names(folder)

    def begin(self, stream: str) -> str:  # noqa: ARG002 - there is one
        """Return the offset before all names."""
        return ""

    def next(
        self,
        stream: str,  # noqa: ARG002
        after: str,
        wait_s: float,  # noqa: ARG002 - the caller waits
    ) -> Iterator[Chunk]:
        """Yield the rows of the next file; all but its last chunk have the offset before it."""
        name = self._names.first(after, self._passed_over)
        if name is None:
            return
        try:
            with _opened(self._folder / name) as file:
                name.encode()  # it will be the offset
                yield from _chunks(self._reader.chunks(file), after, name)
        except FileNotFoundError:
            pass  # it was removed after the folder was listed
        except UnreadableError as error:
            yield self._set_aside(name, after, str(error))
        except UnicodeEncodeError:
            yield self._set_aside(name, after, "its name is not UTF-8 text")
        except OSError as error:
            if error.errno in _PASSING:
                raise
            yield self._set_aside(name, after, f"it cannot be read ({described(error)})")
        except Exception as error:  # noqa: BLE001 - any error of the libraries on data from others
            yield self._set_aside(name, after, f"it cannot be read ({described(error)})")

    def close(self) -> None:
        """End the process that reads files."""
        self._reader.close()

    def _set_aside(self, name: str, after: str, reason: str) -> Chunk:
        """Rename a file that cannot be read; skip it for good if that fails."""
        path = self._folder / name
        try:
            new_path = _renamed(path)
        except OSError as error:
            self._passed_over.add(name)
            message = (
                f"file {shown(name)} is skipped and cannot be set aside ({described(error)}): {reason}"
            )
            return Chunk(name if _is_text(name) else after, [], message)
        return Chunk(after, [], f"file {shown(name)} is set aside as {shown(new_path.name)}: {reason}")


class _Names:
    """The names of files in a folder, which is looked through only if it may have changed.

    Parameters
    ----------
    folder
        The path of the folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._run: list[str] = []
        """The next names, the first one at the end."""
        self._after = ""
        """The name before them."""
        self._is_all = False
        """Whether there were no others."""
        self._until_s = 0.0
        """When the folder is to be looked through again, even if it has not changed."""
        self._changed_ns = -1
        self._changed_s = 0.0
        """When the folder has changed, and when that was seen."""

    def first(self, after: str, passed_over: Collection[str]) -> str | None:
        """Return the first name after another one that is not passed over. O(1) mostly, else O(files)."""
        now_s = time.monotonic()
        changed_ns = self._folder.stat().st_mtime_ns
        if changed_ns != self._changed_ns:
            self._changed_ns, self._changed_s, self._until_s = changed_ns, now_s, 0.0
        run = self._run
        while run and (run[-1] <= after or run[-1] in passed_over):
            run.pop()
        is_over = not run and not self._is_all
        if now_s >= self._until_s or after < self._after or is_over:
            self._scan(after, passed_over)
            # Later changes in a tick of the file system's clock are not seen by its time.
            is_settled = now_s >= self._changed_s + _TICK_S
            self._until_s = now_s + _SCAN_S if is_settled else 0.0
        return self._run[-1] if self._run else None

    def _scan(self, after: str, passed_over: Collection[str]) -> None:
        """Look through the folder."""
        with os.scandir(self._folder) as entries:
            names = (
                entry.name
                for entry in entries
                if entry.name > after
                and entry.name.endswith(_SUFFIX)
                and entry.name[0] not in "._"
                and entry.name not in passed_over
            )
            self._run = heapq.nsmallest(_RUN_MAX, names)
        self._is_all = len(self._run) < _RUN_MAX
        self._run.reverse()
        self._after = after


def _chunks(batches: Iterator[pa.RecordBatch], after: str, name: str) -> Iterator[Chunk]:
    """Yield chunks of a file, the last one with its name as the offset."""
    last: pa.RecordBatch | None = None
    for batch in batches:
        for start in range(0, batch.num_rows, ROWS_MAX):
            if last is not None:
                yield Chunk(after, last.to_pylist())
            last = batch.slice(start, ROWS_MAX)
    yield Chunk(name, [] if last is None else last.to_pylist())


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """Open a regular file, and nothing else.

    Raises
    ------
    UnreadableError
        If it is something else.
    OSError
        If it cannot be opened.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.ENODEV):
            raise UnreadableError("it is not a regular file") from None
        raise
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UnreadableError("it is not a regular file")
        yield file


def _renamed(path: Path) -> Path:
    """Rename a file to an unused name; return that."""
    for number in count(1):
        new_path = path.with_name(f"{path.name}{_REFUSED}{'' if number == 1 else f'-{number}'}")
        if number > _NAMES_MAX:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(new_path))
        if not os.path.lexists(new_path):
            break
    path.rename(new_path)
    return new_path


def _is_text(name: str) -> bool:
    """Return whether a name can be stored as text."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
