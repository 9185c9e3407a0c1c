"""Files of a simulation: on the local disk, without Spark, or on a file system that Spark has.

A simulation, and each of its tables, lies at a `Root`. `files_at` gives both kinds the same operations,
those of `feeds.storage.Stored`, so that code that reads or writes a table is the same for both.
"""

from __future__ import annotations

import shutil
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from feeds.storage import Stored

Root: TypeAlias = "Path | Stored"
"""The location of a folder or a file: a local path, or a location on a file system of Spark."""


def files_at(root: Root) -> OnDisk | Stored:
    """Return the operations on a location."""
    return OnDisk(root) if isinstance(root, Path) else root


def parquet_files(folder: Root) -> list[OnDisk | Stored]:
    """Return the files of a table, in order."""
    files = files_at(folder)
    return [files / path for path in files.files() if path.endswith(".parquet")]


class OnDisk:
    """A local file or folder, which need not exist.

    Parameters
    ----------
    path
        The path.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def __str__(self) -> str:
        return str(self._path)

    def __truediv__(self, name: str) -> OnDisk:
        return OnDisk(self._path / name)

    def exists(self) -> bool:
        """Whether the file or folder exists."""
        return self._path.exists()

    def is_folder(self) -> bool:
        """Whether the folder exists."""
        return self._path.is_dir()

    def files(self) -> dict[str, int]:
        """Return the size of each file below a folder, by relative path, in order; none without it."""
        found = {
            path.relative_to(self._path).as_posix(): path.stat().st_size
            for path in self._path.rglob("*")
            if path.is_file()
        }
        return dict(sorted(found.items()))

    def read(self) -> bytes:
        """Return the contents of the file."""
        return self._path.read_bytes()

    def opened(self) -> AbstractContextManager[Any]:
        """Return a file for Arrow to read."""
        import pyarrow as pa  # noqa: PLC0415 - readers of world.json alone need no pyarrow

        found: AbstractContextManager[Any] = pa.OSFile(str(self._path))
        return found

    def replace(self, data: bytes) -> None:
        """Write the file atomically, in place of any existing one."""
        draft = self._path.with_name(f"{self._path.name}.new")
        draft.write_bytes(data)
        draft.replace(self._path)

    def move(self, where: str) -> None:
        """Move the file to another path, where no file exists."""
        self._path.rename(where)

    def make_folder(self) -> None:
        """Create the folder and its parents; an existing folder is unchanged."""
        self._path.mkdir(parents=True, exist_ok=True)

    def remove(self) -> None:
        """Remove the file, or the folder with its contents, if it exists."""
        if self._path.is_dir():
            shutil.rmtree(self._path)
        else:
            self._path.unlink(missing_ok=True)
