"""A value whose arrays outlive the process: in files in memory, mapped by whoever takes it next.

Spark sends a partition to any worker process of a machine, so its engine lies where each of them finds
it: large arrays in a file each, the rest, a few kilobytes, in another, the head. To take the value is to
rename the head, map the arrays and change them in place; to keep it is to write the arrays that are new,
and a head. Who dies between leaves no head: the value is lost, and never half changed.

A lock of the operating system, which ends with the process that has it, keeps others out: one that was
given up and still runs, for one.

Operations: take and keep O(arrays), beside what is written of arrays that have moved.
"""

from __future__ import annotations

import fcntl
import io
import mmap
import os
import pickle
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

_LARGE_BYTES = 16 * 1024
"""Arrays of less are part of the head."""
_LOCK_S = 600.0
_LOCK_POLL_S = 0.05


class ResidentError(Exception):
    """Somebody else has the value, and does not give it back."""


class Note(NamedTuple):
    """What is known of a value without taking it."""

    version: int
    digest: bytes
    """Of what made this version of the one before."""
    answer: bytes
    """What was said to that."""


class Resident:
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
        ResidentError
            If that takes more than ten minutes.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / "lock").open("wb") as lock:
            end_s = time.monotonic() + _LOCK_S
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > end_s:
                        raise ResidentError(f"{self._folder} is in use by another process") from None
                    time.sleep(_LOCK_POLL_S)
            yield

    def note(self) -> Note | None:
        """Return what is known of the value; None if there is none. Locked."""
        try:
            with self._head.open("rb") as file:
                return Note(*pickle.load(file))  # noqa: S301 - a file of our own
        except FileNotFoundError:
            return None

    def take(self) -> Any:  # noqa: ANN401
        """Return the value, which is gone unless it is kept afterwards. Locked."""
        taken = self._folder / "taken"
        self._head.rename(taken)
        with taken.open("rb") as file:
            pickle.load(file)  # noqa: S301 - the same
            files: list[tuple[str, int]] = pickle.load(file)  # noqa: S301 - the same
            buffers = [memoryview(self._map(name))[:size] for name, size in files]
            return pickle.load(file, buffers=buffers)  # noqa: S301 - the same

    def keep(self, value: object, note: Note) -> None:
        """Keep a value in place of any before. Locked."""
        body = io.BytesIO()
        buffers: list[pickle.PickleBuffer] = []
        pickle.Pickler(body, protocol=5, buffer_callback=lambda one: _is_small(one, buffers)).dump(value)
        files = [(self._file_of(one), one.raw().nbytes) for one in buffers]
        fresh = self._folder / "fresh"
        with fresh.open("wb") as file:
            pickle.dump(tuple(note), file)
            pickle.dump(files, file)
            file.write(body.getbuffer())
        fresh.rename(self._head)
        self._remove_all_but({"lock", "head", *(name for name, _ in files)})

    def room(self, count: int) -> mmap.mmap:
        """Return a new file of so many bytes, mapped: for an array of the value that grows. Locked."""
        descriptor, name = _new_file(self._folder)
        with descriptor as file:
            file.truncate(count)
        return self._map(name)

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

    def _file_of(self, buffer: pickle.PickleBuffer) -> str:
        """Return the file at whose beginning an array lies; write one, if it lies in none."""
        view = buffer.raw()
        if (known := self._mapped.get(_address(view))) is not None:
            return known[0]
        descriptor, name = _new_file(self._folder)
        with descriptor as file:
            file.write(view)
        return name

    def _remove_all_but(self, names: set[str]) -> None:
        for one in self._folder.iterdir():
            if one.name not in names:
                one.unlink()


def _is_small(buffer: pickle.PickleBuffer, large: list[pickle.PickleBuffer]) -> bool:
    """Whether an array is to be part of the head; otherwise note it."""
    if buffer.raw().nbytes < _LARGE_BYTES:
        return True
    large.append(buffer)
    return False


def _new_file(folder: Path) -> tuple[IO[bytes], str]:
    while True:
        name = f"array-{os.urandom(8).hex()}"
        try:
            return (folder / name).open("xb"), name
        except FileExistsError:
            continue


def _address(buffer: Any) -> int:  # noqa: ANN401 - whatever numpy takes
    return int(np.frombuffer(buffer, dtype=np.uint8).__array_interface__["data"][0])
