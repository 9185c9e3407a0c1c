"""Files that only their owner can read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PRIVATE = 0o600


def write_private(path: Path, data: bytes) -> None:
    """Write a new file, for its owner alone.

    Raises
    ------
    OSError
        If that is not possible; an existing file is not overwritten.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE)
    with removed_on_error(path), os.fdopen(descriptor, "wb") as file:
        file.write(data)


@contextmanager
def removed_on_error(path: Path) -> Iterator[None]:
    """Remove a new file if it, or another one that belongs to it, cannot be written completely."""
    try:
        yield
    except BaseException:
        path.unlink(missing_ok=True)
        raise
