"""A value whose arrays outlive the process: in files in memory, mapped by whoever takes it next.

Spark sends a partition to any worker process of a machine, so its engine lies where each of them finds
it: large arrays in a file each, the rest, some kilobytes, in another, the head. To take the value is to
rename the head, map the arrays and change them in place; to keep it is to write the arrays that are new,
and a head. Who dies between leaves no head: the value is lost, and never half changed.

The head is a line of JSON, which says what is known without taking the value and how long what follows
is: the answer, the value in its plain form (`plain`), and its small arrays. The folder is this user's
alone, or it is not used: what it has comes from this program.

A lock of the operating system, which ends with the process that has it, keeps others out: one that was
given up and still runs, for one.

Operations: take and keep O(arrays), beside what is written of arrays that have moved.
"""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import platform
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from streaming.own_folder import own_folder
from streaming.tasks.plain import PlainError, decoded, encoded

_FORMAT = 1
_LARGE_BYTES = 16 * 1024
"""Arrays of less are part of the head."""
_ALIGNED_BYTES = 16
_LINE_MAX = 1_000
_ARRAY = re.compile(r"array-[0-9a-f]{16}")
_BLOCK_BYTES = 512
"""The unit of `st_blocks`."""
_SPARE_BYTES = 32 << 20
_LOCK_S = 600.0
_LOCK_POLL_S = 0.05


class SharedArraysError(Exception):
    """Somebody else has the value, and does not give it back."""


class MemoryFullError(Exception):
    """There is too little memory for what is to come."""


class LostError(Exception):
    """There is no value that can be taken. It must be made again."""


class Note(NamedTuple):
    """What is known of a value without taking it."""

    version: int
    digest: bytes
    """Of what made this version of the one before."""
    answer: bytes
    """What was said to that."""


class SharedArrays:
    """The value in a folder.

    Parameters
    ----------
    folder
        Of its own, on a file system in memory.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._head = folder / "head"
        self._mapped: dict[int, tuple[str, mmap.mmap]] = {}
        """File names by address; what is mapped stays, so that nothing else comes to lie there."""

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep everybody else out; wait for whoever is there.

        Raises
        ------
        SharedArraysError
            If that takes more than ten minutes.
        OwnFolderError
            If the folder is not this user's alone.
        """
        own_folder(self._folder)
        with (self._folder / "lock").open("wb") as lock:
            end_s = time.monotonic() + _LOCK_S
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > end_s:
                        raise SharedArraysError(f"{self._folder} is in use by another process") from None
                    time.sleep(_LOCK_POLL_S)
            yield

    def note(self) -> Note | None:
        """Return what is known of the value; None if there is none that can be read. Locked."""
        try:
            with self._head.open("rb") as file:
                head = _Head.read(file)
                return Note(head.version, head.digest, _exactly(file, head.answer_bytes))
        except (FileNotFoundError, LostError):
            return None

    def take(self) -> Any:  # noqa: ANN401
        """Return the value, which is gone unless it is kept afterwards. Locked.

        Raises
        ------
        LostError
            If there is none that can be read.
        """
        taken = self._folder / "taken"
        try:
            self._head.rename(taken)
            with taken.open("rb") as file:
                head = _Head.read(file)
                _exactly(file, head.answer_bytes)
                form = json.loads(_exactly(file, head.form_bytes))
                small = memoryview(bytearray(file.read()))
            return decoded(form, lambda place, count: self._bytes(place, count, small))
        except (FileNotFoundError, PlainError, ValueError, RecursionError) as error:
            raise LostError(f"{self._folder} has no value that can be read") from error

    def keep(self, value: object, note: Note) -> None:
        """Keep a value in place of any before. Locked."""
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

        form = json.dumps(encoded(value, put)).encode()
        temporary = self._folder / "new"
        with temporary.open("wb") as file:
            file.write(_Head(note.version, note.digest, len(note.answer), len(form)).line())
            file.write(note.answer)
            file.write(form)
            file.write(small)
        temporary.rename(self._head)
        self._remove_all_but({"lock", "head", *files})

    def room(self, count: int) -> mmap.mmap:
        """Return a new file of so many bytes, mapped: for an array of the value that grows. Locked."""
        descriptor, name = _new_file(self._folder)
        with descriptor as file:
            file.truncate(count)
        return self._map(name)

    @property
    def occupied_bytes(self) -> int:
        """What the folder's files take of the memory: arrays with room to grow are files with holes."""
        return sum(path.stat().st_blocks * _BLOCK_BYTES for path in self._folder.iterdir())

    def require_free(self, count: int) -> None:
        """Require that arrays can grow by so many bytes. Locked.

        Who writes to a mapped file for which there is no memory is killed at once.

        Raises
        ------
        MemoryFullError
            If less than that is free, and some more for others who write at the same time.
        """
        found, needed = os.statvfs(self._folder), count + _SPARE_BYTES
        free = found.f_bavail * found.f_frsize
        if free < needed:
            raise MemoryFullError(
                f"{self._folder.parent.parent} on {platform.node()} has {free >> 20} MiB free, must have "
                f"{needed >> 20} MiB for this batch"
            )

    def discard(self) -> None:
        """Remove the value. Locked."""
        self._mapped.clear()
        self._remove_all_but({"lock"})

    def _map(self, name: str) -> mmap.mmap:
        """Map a file, so that changes are seen by who maps it next."""
        with (self._folder / name).open("r+b") as file:
            found = mmap.mmap(file.fileno(), 0)
        if hasattr(mmap, "MADV_HUGEPAGE"):  # where the file system was mounted so that this is heeded
            with suppress(OSError):
                found.madvise(mmap.MADV_HUGEPAGE)
        self._mapped[_address(found)] = (name, found)
        return found

    def _bytes(self, place: Any, count: int, small: memoryview) -> memoryview:  # noqa: ANN401
        """Return the bytes of an array: of a file of its own, or among the small ones."""
        if isinstance(place, str):
            if not _ARRAY.fullmatch(place):
                raise PlainError(f"{place!r} is no file of an array")
            found = memoryview(self._map(place))[:count]
        else:
            found = small[place : place + count]
        if len(found) != count:
            raise PlainError("an array is cut short")
        return found

    def _file_of(self, data: memoryview) -> str:
        """Return the file at whose beginning an array lies; write one, if it lies in none."""
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


class _Head(NamedTuple):
    """The first line of a head."""

    version: int
    digest: bytes
    answer_bytes: int
    form_bytes: int

    def line(self) -> bytes:
        """Write it."""
        found = [_FORMAT, self.version, self.digest.hex(), self.answer_bytes, self.form_bytes]
        return json.dumps(found).encode() + b"\n"

    @classmethod
    def read(cls, file: IO[bytes]) -> _Head:
        """Read it.

        Raises
        ------
        LostError
            If it is none.
        """
        try:
            form, version, digest, *sizes = json.loads(file.readline(_LINE_MAX))
            answer_bytes, form_bytes = sizes
            numbers = (form, version, answer_bytes, form_bytes)
            if form == _FORMAT and all(type(one) is int and one >= 0 for one in numbers):
                return cls(version, bytes.fromhex(digest), answer_bytes, form_bytes)
        except (ValueError, TypeError, RecursionError):
            pass
        raise LostError("the head of a value cannot be read")


def _exactly(file: IO[bytes], count: int) -> bytes:
    """Read so many bytes, which must be there."""
    if count > os.fstat(file.fileno()).st_size:
        raise LostError("the head of a value is cut short")
    found = file.read(count)
    if len(found) != count:
        raise LostError("the head of a value is cut short")
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
