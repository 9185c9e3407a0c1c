"""A run as stages: each writes the folder of one table, and is not repeated while the table is complete.

The mark of a stage, `stages/<name>.json`, contains the key of the table (all inputs that determine it),
its numbers of rows and bytes, and the time it took. The mark is written atomically after the table. A
table with a mark is therefore complete, even if the program was killed, without a rename of the folder.
If files of a table are changed or removed, its stage runs again.

`stages/<name>.started` exists while a stage writes or removes its table, and after a stage that has
failed, until it runs again. A folder that has the name of a table, but neither file, belongs to somebody
else. It is never removed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from simulator.errors import StageError
from simulator.files import OnDisk, Root, files_at, parquet_files

if TYPE_CHECKING:
    from feeds.storage import Stored

_CAUSED = "Caused by: "

STAGES_FOLDER = "stages"

Make = Callable[[Root], int | None]
"""Writes a table into a folder that does not exist yet; returns the number of rows, if known."""


@dataclass(frozen=True, slots=True)
class Mark:
    """The record of a complete stage.

    Parameters
    ----------
    key
        The inputs that determine the table.
    rows
        Its number of rows.
    files, size_bytes
        The number and the size of the files in its folder.
    seconds
        The time it took.
    """

    key: dict[str, Any]
    rows: int
    files: int
    size_bytes: int
    seconds: float


UNREADABLE = (pa.ArrowException, PySparkException, Py4JError)
"""Errors for files that Arrow or Spark cannot read, or Spark cannot write."""

_FAILURES = (OSError, *UNREADABLE)


class Stages:
    """The stages of one run in a folder, which is created if it does not exist.

    Parameters
    ----------
    root
        The folder of the simulation.
    """

    def __init__(self, root: Root) -> None:
        self._root = root
        self._marks = files_at(root / STAGES_FOLDER)
        files_at(root).make_folder()
        self._marks.make_folder()
        self.done: dict[str, Mark] = {}
        """The stages of this run so far, whether they were repeated or not."""

    def run(self, name: str, key: dict[str, Any], make: Make) -> Mark:
        """Make a table, unless an identical table exists.

        Parameters
        ----------
        name
            The name of the table and its folder.
        key
            The inputs that determine it, ready for JSON.
        make
            Writes it.

        Raises
        ------
        StageError
            If it cannot be written; the folder is removed then. Or if the folder exists and no stage has
            written it.
        OSError
            If it is not known whether the table exists.
        """
        folder = self._root / name
        found = read_mark(self._root, name)
        if found is not None and found.key == key and _content(folder) == (found.files, found.size_bytes):
            self.done[name] = found
            return found
        self.remove(name)
        self._started(name).replace(b"")
        began_s = time.monotonic()
        try:
            rows = _seen(folder, make(folder))
            seconds = round(time.monotonic() - began_s, 3)
            mark = Mark(key, rows, *_content(folder), seconds)
            self._write(name, mark)
        except BaseException as error:
            # `started` stays: tasks may still write for a while.
            with suppress(*_FAILURES):
                files_at(folder).remove()
            if isinstance(error, _FAILURES) and not isinstance(error, StageError):
                raise StageError(f"{folder} cannot be written: {reason_of(error)}") from error
            raise
        self.done[name] = mark
        return mark

    def remove(self, name: str) -> None:
        """Remove a table, its mark first.

        Raises
        ------
        StageError
            If no stage has written the folder.
        """
        require_own(self._root, [name])
        folder, started = files_at(self._root / name), self._started(name)
        if folder.exists():
            started.replace(b"")
        (self._marks / f"{name}.json").remove()
        folder.remove()
        started.remove()

    def remove_others(self, names: Iterable[str]) -> None:
        """Remove those of some tables that are not of this run."""
        for name in sorted(set(names) - self.done.keys()):
            self.remove(name)

    def _started(self, name: str) -> OnDisk | Stored:
        return self._marks / f"{name}.started"

    def _write(self, name: str, mark: Mark) -> None:
        text = json.dumps(asdict(mark), indent=2) + "\n"
        (self._marks / f"{name}.json").replace(text.encode())
        self._started(name).remove()


def require_own(root: Root, names: Iterable[str], inputs: Sequence[Path] = ()) -> None:
    """Require that a run may replace the folders of its tables.

    Parameters
    ----------
    root
        The folder of the simulation.
    names
        The names of the tables.
    inputs
        The files that the run reads.

    Raises
    ------
    StageError
        If a folder has the name of a table and no stage has written it, or an input is in such a folder.
    """
    marks, local = files_at(root / STAGES_FOLDER), _local(root)
    for name in sorted(names):
        marked = (marks / f"{name}.{ending}" for ending in ("json", "started"))
        if files_at(root / name).exists() and not any(one.exists() for one in marked):
            raise StageError(
                f"out is {root}, must be another folder: the table {name} would replace {root / name}, "
                "which no simulation has written"
            )
        for path in inputs:
            if local is not None and path.resolve().is_relative_to((local / name).resolve()):
                raise StageError(
                    f"out is {root}, must be another folder: the table {name} would replace {path}"
                )


def _local(root: Root) -> Path | None:
    """Return the path of a folder on this machine's disk; None if it is elsewhere."""
    if isinstance(root, Path):
        return root
    parts = urlsplit(root.uri)
    return Path(url2pathname(parts.path)) if parts.scheme == "file" else None


def _seen(folder: Root, written: int | None) -> int:
    """Return the number of rows, which must be the number written, if that is known."""
    found = row_count(folder)
    if written not in {None, found}:
        raise StageError(
            f"{folder}: {written} rows were written and {found} are present: all hosts must have access "
            "to this folder"
        )
    return found


def reason_of(error: Exception) -> str:
    """Return the reason of an error in one line; for an error of Spark its cause."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    causes = [line for line in lines if line.startswith(_CAUSED)]
    return causes[-1].removeprefix(_CAUSED) if causes else lines[0]


def read_mark(root: Root, name: str) -> Mark | None:
    """Return the mark of a stage; None if it is not complete, or its mark is damaged.

    Raises
    ------
    OSError
        If the mark cannot be read. The table may be complete.
    """
    file = files_at(root / STAGES_FOLDER / f"{name}.json")
    if not file.exists():
        return None
    try:
        return Mark(**json.loads(file.read()))
    except (ValueError, TypeError):
        return None


def row_count(folder: Root) -> int:
    """Return the number of rows of the Parquet files below a folder, from their footers."""
    count = 0
    for file in parquet_files(folder):
        with file.opened() as source:
            count += pq.read_metadata(source).num_rows
    return count


def _content(folder: Root) -> tuple[int, int]:
    """Return the number of files below a folder, and their bytes; without Spark's own files."""
    found = files_at(folder).files()
    sizes = [size for path, size in found.items() if path.rpartition("/")[2][0] not in "._"]
    return len(sizes), sum(sizes)
