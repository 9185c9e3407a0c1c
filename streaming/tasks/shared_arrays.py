"""A value whose arrays outlive the process: they lie in files in memory, which the next process maps.

Spark sends a partition to any worker process of a machine, so the partition's engine lies where each
worker finds it: large arrays in a file each, and the rest, some kilobytes, in another file, the head. To
take the value, a process renames the head, maps the arrays and changes them in place. To keep it, the
process writes new arrays, and then a head. If the process is killed in between, there is no head: the
value is lost, and never half changed.

The head starts with a line of JSON, which contains the facts that are known without taking the value, and
the lengths of the parts that follow: the response, the value in its plain form (`plain`), and its small
arrays. The folder must be private to this user, or it is not used: its contents come from this program.

A lock of the operating system keeps other processes out, for example a task that Spark has given up and
that still runs. A value that is only read may have several readers at once.

Operations: take and keep O(arrays), plus writing the arrays that have moved.
"""

from __future__ import annotations

import errno
import json
import mmap
import os
import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple, Self

import numpy as np

from index.tables.growth import Capacity
from streaming.own_folder import own_folder
from streaming.tasks.file_lock import FileLock, LockedError
from streaming.tasks.plain import NOTHING, Outside, PlainError, decoded, encoded

_FORMAT = 1
_LARGE_BYTES = 16 * 1024
"""Smaller arrays are part of the head."""
_ALIGNED_BYTES = 16
_LINE_MAX = 1_000
_ARRAY = re.compile(r"array-[0-9a-f]{16}")
_BLOCK_BYTES = 512
"""The unit of `st_blocks`."""
_SPARE_BYTES = 32 << 20
_LOCK_S = 600.0
_MADV_POPULATE_WRITE = 23
"""Of Linux; the module `mmap` does not have it."""


class MemoryFullError(Exception):
    """There is too little memory for a batch."""


class LostError(Exception):
    """There is no value that can be taken. It must be rebuilt."""


class Note(NamedTuple):
    """The facts about a value that are known without taking it."""

    version: int
    digest: bytes
    """The digest of the input that led from the version before to this version."""
    answer: bytes
    """The response to that input."""
    token: str = ""
    """Names what the value refers to outside of it, or the value itself if others refer to it."""


class SharedArrays:
    """The value in a folder.

    Parameters
    ----------
    folder
        A folder for this value only, on a file system in memory.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._head = folder / "head"
        self._mapped: dict[int, tuple[str, Capacity]] = {}
        """File names by address; mapped files stay mapped, so that no other data gets their addresses."""

    @contextmanager
    def locked(self, wait_s: float = _LOCK_S) -> Iterator[None]:
        """Hold the lock of the folder alone; wait while another process holds it.

        Raises
        ------
        LockedError
            If that takes more than `wait_s`, ten minutes by default.
        OwnFolderError
            If the folder is not private to this user.
        """
        with self.lock(wait_s) as lock:
            lock.own()
            yield

    def lock(self, wait_s: float = _LOCK_S) -> FileLock:
        """Return the lock of the folder, which is not held yet.

        Raises
        ------
        OwnFolderError
            If the folder is not private to this user.
        """
        own_folder(self._folder)
        return FileLock(self._folder / "lock", wait_s)

    def note(self) -> Note | None:
        """Return the note of the value; None if there is no readable value. Requires the lock."""
        try:
            with self._head.open("rb") as file:
                head = _Head.read(file)
                return Note(head.version, head.digest, _exactly(file, head.answer_bytes), head.token)
        except (FileNotFoundError, LostError):
            return None

    def take(self, outside: Outside = NOTHING) -> Any:  # noqa: ANN401
        """Return the value, which is lost unless it is kept afterwards. Requires the lock alone.

        Parameters
        ----------
        outside
            What the value refers to (`plain`).

        Raises
        ------
        LostError
            If there is no readable value.
        """
        taken = self._folder / "taken"
        try:
            self._head.rename(taken)
        except FileNotFoundError as error:
            raise LostError(f"{self._folder} has no value") from error
        return self._read(taken, outside)

    def view(self, outside: Outside = NOTHING) -> Any:  # noqa: ANN401
        """Return the value to read it, as long as the lock is held, together with others.

        Raises
        ------
        LostError
            If there is no readable value.
        """
        return self._read(self._head, outside)

    def _read(self, path: Path, outside: Outside) -> Any:  # noqa: ANN401
        try:
            with path.open("rb") as file:
                head = _Head.read(file)
                _exactly(file, head.answer_bytes)
                form = json.loads(_exactly(file, head.form_bytes))
                small = memoryview(bytearray(file.read()))
            return decoded(form, lambda place, count: self._bytes(place, count, small), outside)
        except (FileNotFoundError, PlainError, ValueError, RecursionError) as error:
            raise LostError(f"{self._folder} has no readable value") from error

    def keep(self, value: object, note: Note, outside: Outside = NOTHING) -> None:
        """Keep a value, without what is `outside`, in place of any other. Requires the lock alone.

        Raises
        ------
        MemoryFullError
            If there is no memory for it. The value is lost then.
        """
        with _full_memory_named(self._folder):
            self._keep(value, note, outside)

    def _keep(self, value: object, note: Note, outside: Outside) -> None:
        small = bytearray()
        files: set[str] = set()

        def put(data: memoryview) -> str | int:
            if data.nbytes >= _LARGE_BYTES:
                name = self._file_of(data)
                files.add(name)
                return name
            small.extend(bytes(-len(small) % _ALIGNED_BYTES))
            place = len(small)
            small.extend(data)
            return place

        form = json.dumps(encoded(value, put, outside)).encode()
        temporary = self._folder / "new"
        with temporary.open("wb") as file:
            file.write(_Head(note.version, note.digest, note.token, len(note.answer), len(form)).line())
            file.write(note.answer)
            file.write(form)
            file.write(small)
        temporary.rename(self._head)
        self._remove_all_but({"lock", "head", *files})

    def room(self, count: int) -> Capacity:
        """Return a new mapped file of `count` bytes, for an array that grows. Requires the lock.

        The array occupies memory for its whole length. Where there is none for it, `MemoryFullError` is
        raised, and the array has not grown.
        """
        descriptor, name = _new_file(self._folder)
        with descriptor as file:
            file.truncate(count)
        return self._map(name)

    @property
    def occupied_bytes(self) -> int:
        """The memory that the folder's files occupy; arrays with spare capacity are sparse files."""
        return sum(path.stat().st_blocks * _BLOCK_BYTES for path in self._folder.iterdir())

    def require_free(self, count: int) -> None:
        """Require that arrays can grow by `count` bytes. Requires the lock.

        The sizes of arrays follow from what is added to them, and are known only when they grow (`room`).
        This finds most shortages earlier, when nothing has to be rebuilt afterwards.

        Raises
        ------
        MemoryFullError
            If less memory is free than that plus a reserve for processes that write at the same time.
        """
        needed = count + _SPARE_BYTES
        if _free_bytes(self._folder) < needed:
            raise _memory_full(self._folder, needed)

    def discard(self) -> None:
        """Remove the value. Requires the lock."""
        self._mapped.clear()
        self._remove_all_but({"lock"})

    def discard_outdated(self) -> None:
        """Remove the values that other versions of the program have left in folders of this name.

        Each version has a folder beside that of this one (`Plan.folder`). A value that is in use stays.
        """
        for folder in self._folder.parent.parent.glob(f"*/{self._folder.name}"):
            if folder != self._folder:
                other = SharedArrays(folder)
                with suppress(LockedError), other.locked(wait_s=0.0):
                    other.discard()

    def _map(self, name: str) -> Capacity:
        """Map a file, so that the next process that maps it sees the changes."""
        found = _FileCapacity(self._folder / name)
        if hasattr(mmap, "MADV_HUGEPAGE"):  # effective if the file system was mounted with this option
            with suppress(OSError):
                found.madvise(mmap.MADV_HUGEPAGE)
        self._mapped[_address(found)] = (name, found)
        return found

    def _bytes(self, place: Any, count: int, small: memoryview) -> memoryview:  # noqa: ANN401
        """Return the bytes of an array: of a file of its own, or among the small arrays."""
        if isinstance(place, str):
            if not _ARRAY.fullmatch(place):
                raise PlainError(f"{place!r} is not the file of an array")
            found = memoryview(self._map(place))[:count]
        else:
            found = small[place : place + count]
        if len(found) != count:
            raise PlainError("an array is truncated")
        return found

    def _file_of(self, data: memoryview) -> str:
        """Return the file at whose start an array lies; write a file, if it lies in none."""
        if (known := self._mapped.get(_address(data))) is not None:
            return known[0]
        descriptor, name = _new_file(self._folder)
        with descriptor as file:
            file.write(data)
        return name

    def _remove_all_but(self, names: set[str]) -> None:
        for one in self._folder.iterdir():
            if one.name not in names:
                one.unlink()


class _FileCapacity(Capacity):
    """Capacity that is a mapped file. A process that writes to a page without memory is killed."""

    def __new__(cls, path: Path) -> Self:
        """Map a file."""
        with path.open("r+b") as file:
            found = super().__new__(cls, file.fileno(), 0)
        found._path = path
        return found

    _path: Path

    def occupy(self, start: int, end: int) -> None:
        """Give memory to these bytes of the file, in huge pages where they are used.

        Linux before 5.14 gives it in small pages.

        Raises
        ------
        MemoryFullError
            If there is too little.
        """
        folder, first = self._path.parent, start - start % mmap.PAGESIZE
        try:
            self.madvise(_MADV_POPULATE_WRITE, first, end - first)
        except OSError as error:
            if error.errno == errno.EFAULT:
                raise _memory_full(folder, end - start) from error
            if error.errno != errno.EINVAL:
                raise
            with _full_memory_named(folder, end - start), self._path.open("r+b") as file:
                os.posix_fallocate(file.fileno(), first, end - first)


class _Head(NamedTuple):
    """The first line of a head."""

    version: int
    digest: bytes
    token: str
    answer_bytes: int
    form_bytes: int

    def line(self) -> bytes:
        """Return the line as bytes."""
        sizes = self.answer_bytes, self.form_bytes
        found = [_FORMAT, self.version, self.digest.hex(), self.token, *sizes]
        return json.dumps(found).encode() + b"\n"

    @classmethod
    def read(cls, file: IO[bytes]) -> _Head:
        """Read the line.

        Raises
        ------
        LostError
            If it is not a valid head.
        """
        try:
            form, version, digest, token, *sizes = json.loads(file.readline(_LINE_MAX))
            answer_bytes, form_bytes = sizes
            numbers = (form, version, answer_bytes, form_bytes)
            are_numbers = all(type(one) is int and one >= 0 for one in numbers)
            if form == _FORMAT and are_numbers and type(token) is str:
                return cls(version, bytes.fromhex(digest), token, answer_bytes, form_bytes)
        except (ValueError, TypeError, RecursionError):
            pass
        raise LostError("the header of a value cannot be read")


@contextmanager
def _full_memory_named(folder: Path, count: int = 0) -> Iterator[None]:
    """Raise `MemoryFullError` if the file system of a folder has no room for `count` bytes."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise _memory_full(folder, count) from error
        raise


def _memory_full(folder: Path, count: int) -> MemoryFullError:
    free, needed = _free_bytes(folder), max(count, _SPARE_BYTES)
    return MemoryFullError(
        f"{folder.parent.parent} on {platform.node()} has {free >> 20} MiB free, "
        f"must have {needed >> 20} MiB for this batch"
    )


def _free_bytes(folder: Path) -> int:
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def _exactly(file: IO[bytes], count: int) -> bytes:
    """Read exactly `count` bytes; raise `LostError` if there are fewer."""
    if count > os.fstat(file.fileno()).st_size:
        raise LostError("the header of a value is truncated")
    found = file.read(count)
    if len(found) != count:
        raise LostError("the header of a value is truncated")
    return found


def _new_file(folder: Path) -> tuple[IO[bytes], str]:
    while True:
        name = f"array-{os.urandom(8).hex()}"
        try:
            return (folder / name).open("xb"), name
        except FileExistsError:
            continue


def _address(buffer: Any) -> int:  # noqa: ANN401 - whatever numpy takes
    return int(np.frombuffer(buffer, dtype=np.uint8).__array_interface__["data"][0])
