"""A file beside a store while a snapshot of it, or for it, is made: private, and removed at the end."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from server.store import files, opening

_SUFFIX = ".snapshot"


@contextmanager
def scratch_file(store: str) -> Iterator[Path]:
    """Yield the name of a new file on the disk of a store; one at a time for each store."""
    if store == opening.MEMORY:
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder) / "store.db"
        return
    remove_scratch(store)
    try:
        yield Path(f"{store}{_SUFFIX}")
    finally:
        remove_scratch(store)


def remove_scratch(store: str) -> None:
    """Remove the file that a process which was killed may have left."""
    if store == opening.MEMORY:
        return
    for suffix in ("", *files.BESIDE):
        Path(f"{store}{_SUFFIX}{suffix}").unlink(missing_ok=True)
