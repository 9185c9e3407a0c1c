"""Files of a simulation: on this machine's disk, without Spark, or on a file system that Spark has.

A simulation, and each of its tables, lies at a `Root`. `files_at` gives both kinds the same operations,
those of `feeds.storage.Stored`: whoever reads or writes a table does not ask which of them it is.
"""

from __future__ import annotations

import shutil
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from feeds.storage import Stored

Root: TypeAlias = "Path | Stored"
"""Where a folder or a file is: a path of this machine, or wherever Spark reads and writes."""


def files_at(root: Root) -> OnDisk | Stored:
    """Return the operations on what lies there."""
    return OnDisk(root) if isinstance(root, Path) else root


def parquet_files(folder: Root) -> list[OnDisk | Stored]:
    """Return the files of a table, in order."""
    files = files_at(folder)
    return [files / path for path in files.files() if path.endswith(".parquet")]


class OnDisk:
    """A file or folder of this machine, which need not be there.

    Parameters
    ----------
    path
        Where.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def __str__(self) -> str:
        return str(self._path)

    def __truediv__(self, name: str) -> OnDisk:
        return OnDisk(self._path / name)

    def exists(self) -> bool:
        """Whether there is a file or folder."""
        return self._path.exists()

    def is_folder(self) -> bool:
        """Whether there is a folder."""
        return self._path.is_dir()

    def files(self) -> dict[str, int]:
        """Return the size of each file below a folder, by its path in it, in order; without it none."""
        found = {
            path.relative_to(self._path).as_posix(): path.stat().st_size
            for path in self._path.rglob("*")
            if path.is_file()
        }
        return dict(sorted(found.items()))

    def read(self) -> bytes:
        """Return what a file has."""
        return self._path.read_bytes()

    def opened(self) -> AbstractContextManager[Any]:
        """Return a file for Arrow to read."""
        import pyarrow as pa  # noqa: PLC0415 - who reads only world.json needs none

        found: AbstractContextManager[Any] = pa.OSFile(str(self._path))
        return found

    def replace(self, data: bytes) -> None:
        """Write a file in place of what is there, if anything: whole, or not at all."""
        draft = self._path.with_name(f"{self._path.name}.new")
        draft.write_bytes(data)
        draft.replace(self._path)

    def move(self, where: str) -> None:
        """Give a file another path, where nothing is."""
        self._path.rename(where)

    def make_folder(self) -> None:
        """Make a folder and those above it; one that is there stays as it is."""
        self._path.mkdir(parents=True, exist_ok=True)

    def remove(self) -> None:
        """Remove a file, or a folder with all that is in it, if it is there."""
        if self._path.is_dir():
            shutil.rmtree(self._path)
        else:
            self._path.unlink(missing_ok=True)
