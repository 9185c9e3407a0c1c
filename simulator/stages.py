"""A run as stages: each writes the folder of one table, and is not repeated while that is complete.

The mark of a stage, `stages/<name>.json`, says from what the table was made (its key), how many rows and
bytes it has and how long it took. It is written when the table is, whole or not at all: what has a mark
is whole, after a program that was killed, too, and no folder is renamed for that. Whoever changes or
removes files of a table makes its stage run again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from simulator.errors import StageError
from simulator.files import Root, files_at, parquet_files

_CAUSED = "Caused by: "

STAGES_FOLDER = "stages"

Make = Callable[[Root], int | None]
"""Writes a table into a folder that is not there yet; returns how many rows were written, if it knows."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What is noted of a stage that is complete.

    Parameters
    ----------
    key
        What determines the table.
    rows
        How many it has.
    files, size_bytes
        What there is in its folder.
    seconds
        How long it took.
    """

    key: dict[str, Any]
    rows: int
    files: int
    size_bytes: int
    seconds: float


_FAILURES = (OSError, pa.ArrowException, PySparkException, Py4JError)


class Stages:
    """The stages of one run in a folder, which is made if it is not there.

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
        """Make a table, unless the very same is there.

        Parameters
        ----------
        name
            Of the table and its folder.
        key
            What determines it, ready for JSON.
        make
            Writes it.

        Raises
        ------
        StageError
            If it cannot be written; the folder is removed then.
        """
        folder = self._root / name
        found = read_mark(self._root, name)
        if found is not None and found.key == key and _content(folder) == (found.files, found.size_bytes):
            self.done[name] = found
            return found
        self.remove(name)
        began_s = time.monotonic()
        try:
            rows = _seen(folder, make(folder))
            seconds = round(time.monotonic() - began_s, 3)
            mark = Mark(key, rows, *_content(folder), seconds)
            self._write(name, mark)
        except BaseException as error:
            with suppress(*_FAILURES):
                files_at(folder).remove()
            if isinstance(error, _FAILURES) and not isinstance(error, StageError):
                raise StageError(f"{folder} cannot be written: {_reason(error)}") from error
            raise
        self.done[name] = mark
        return mark

    def remove(self, name: str) -> None:
        """Remove a table, its mark first."""
        (self._marks / f"{name}.json").remove()
        files_at(self._root / name).remove()

    def _write(self, name: str, mark: Mark) -> None:
        text = json.dumps(asdict(mark), indent=2) + "\n"
        (self._marks / f"{name}.json").replace(text.encode())


def _seen(folder: Root, written: int | None) -> int:
    """Return how many rows there are, which must be those that were written, where that is known."""
    found = row_count(folder)
    if written not in {None, found}:
        raise StageError(
            f"{folder}: {written} rows were written and {found} are there: all hosts must see this folder"
        )
    return found


def _reason(error: Exception) -> str:
    """Return why a stage failed; of an error of Spark what caused it."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    causes = [line for line in lines if line.startswith(_CAUSED)]
    return causes[-1].removeprefix(_CAUSED) if causes else lines[0]


def read_mark(root: Root, name: str) -> Mark | None:
    """Return what is noted of a stage; None if it is not complete, or its mark cannot be read."""
    try:
        return Mark(**json.loads(files_at(root / STAGES_FOLDER / f"{name}.json").read()))
    except (OSError, ValueError, TypeError):
        return None


def row_count(folder: Root) -> int:
    """Return how many rows the Parquet files below a folder have, as their footers say."""
    count = 0
    for file in parquet_files(folder):
        with file.opened() as source:
            count += pq.read_metadata(source).num_rows
    return count


def _content(folder: Root) -> tuple[int, int]:
    """Return how many files there are below a folder, and their bytes; without Spark's own."""
    found = files_at(folder).files()
    sizes = [size for path, size in found.items() if path.rpartition("/")[2][0] not in "._"]
    return len(sizes), sum(sizes)
