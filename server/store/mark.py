"""The mark of acknowledged commits: a file of one record beside the store.

After each commit, and before it is acknowledged, the number of commits is written there. The file is
*not* synced: a kill of the process leaves it exact, a power cut may leave an earlier mark, and none that
is ahead of the store. So at the start:

* a store that has fewer commits than its mark has lost acknowledged ones, for whatever reason (a damaged
  last commit, a log that was truncated or removed, an older copy of the file);
* a store that has more commits has been through a power cut.

The system writes the mark to the disk within half a minute or so, the server with each checkpoint. The
mark also has the next id and the latest time, so that neither goes back when a loss is accepted.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import struct
from typing import NamedTuple
from zlib import crc32

from server.store import files

_RECORD = struct.Struct("<8s16sqqq")
_CHECKSUM = struct.Struct("<I")
_MAGIC = b"ncmark\x00\x01"
_BYTES = _RECORD.size + _CHECKSUM.size


class Mark(NamedTuple):
    """The progress of a store."""

    store_id: str
    """A random id from the creation of the store: 32 hexadecimal digits."""
    commit_count: int
    next_object_id: int
    time_ms: int


class MarkError(Exception):
    """A mark is not as it was written."""


def new_store_id() -> str:
    """Return a random id for a store."""
    return secrets.token_hex(16)


def read(path: str) -> Mark | None:
    """Return the mark of a store; None if there is none, or none that has reached the disk.

    Raises
    ------
    MarkError
        If it is not as it was written.
    """
    try:
        number = os.open(f"{path}{files.MARK}", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise MarkError(str(error)) from error
    try:
        data = os.read(number, _BYTES + 1)
    finally:
        os.close(number)
    if not data.strip(b"\0"):
        return None
    if len(data) != _BYTES or _CHECKSUM.pack(crc32(data[: _RECORD.size])) != data[_RECORD.size :]:
        raise MarkError("it does not match its checksum")
    magic, store_id, *numbers = _RECORD.unpack_from(data)
    if magic != _MAGIC:
        raise MarkError("it has another version")
    return Mark(store_id.hex(), *numbers)


class MarkFile:
    """The mark of an open store, for writing. Costs microseconds per commit."""

    def __init__(self, path: str) -> None:
        name = f"{path}{files.MARK}"
        if files.create_private(name):
            with contextlib.suppress(OSError):  # a file system that cannot sync folders
                files.sync_folder(path)
        self._number = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        os.ftruncate(self._number, _BYTES)

    def write(self, mark: Mark) -> None:
        """Write the mark; the system writes it to the disk some time later."""
        store_id, *numbers = mark
        data = _RECORD.pack(_MAGIC, bytes.fromhex(store_id), *numbers)
        os.pwrite(self._number, data + _CHECKSUM.pack(crc32(data)), 0)

    def sync(self) -> None:
        """Make the mark durable."""
        os.fsync(self._number)

    def close(self) -> None:
        """Close the file."""
        os.close(self._number)
