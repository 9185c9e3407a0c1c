"""A disk that is full, for the files of this process."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_ROOM_BYTES = 65_536


@contextmanager
def full_disk(store: str) -> Iterator[None]:
    """While the block runs, no file may grow beyond the largest of a store, and 64 KiB.

    The limit is that of the process (`RLIMIT_FSIZE`): a write beyond it fails as on a full disk.
    """
    files = [Path(f"{store}{suffix}") for suffix in ("", "-wal")]
    before, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = max(file.stat().st_size for file in files if file.exists())
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + _ROOM_BYTES, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, hard))
