"""Read files of subscriptions and of objects: tab-separated, plain plane coordinates.

A subscription is a line `id x1 y1 x2 y2 keyword,keyword,...`: a closed rectangle, and keywords all of
which are required. An object is a line `id x y keyword,keyword,...`. Keywords become numbers, common to
both files.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench.benchmark import Progress
from bench.errors import BenchError
from index.batches import Boxes, Ints, KeywordLists, ObjectBatch

_ID_MAX = 2**63 - 1
_STEP = 100_000
"""Lines between two progress reports."""


class Clauses(NamedTuple):
    """Subscriptions as clause indexes take them."""

    ids: Ints
    boxes: Boxes
    required: KeywordLists


class Words:
    """Numbers of keywords, in the order of their first occurrence."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def row(self, words: Iterable[str]) -> list[int]:
        """Return the numbers of keywords, increasing, each once."""
        numbers = self._numbers
        return sorted({numbers.setdefault(word, len(numbers)) for word in words})


class _Line(NamedTuple):
    """A line of a file, split into fields."""

    path: Path
    number: int
    fields: Sequence[str]

    def wrong(self, field: str, value: object, limit: str) -> BenchError:
        """Return an error that describes an invalid field of the line."""
        return BenchError(f"{self.path}, line {self.number}: {field} is {value!r}, must be {limit}")

    def id(self) -> int:
        """Return the number in the first field."""
        text = self.fields[0]
        if not text.isdecimal() or int(text) > _ID_MAX:
            raise self.wrong("id", text, f"a whole number from 0 to {_ID_MAX}")
        return int(text)

    def coordinate(self, place: int, name: str) -> float:
        """Return the number in a field."""
        try:
            value = float(self.fields[place])
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise self.wrong(name, self.fields[place], "a finite number")
        return value

    def keywords(self) -> list[str]:
        """Return the words of the last field, which are separated by commas."""
        words = self.fields[-1].split(",")
        if "" in words:
            raise self.wrong(
                "keywords", self.fields[-1], "keywords separated by commas, none of them empty"
            )
        return words


def read_subscriptions(path: Path, words: Words, progress: Progress) -> Clauses:
    """Read subscriptions.

    Raises
    ------
    BenchError
        If the file cannot be read or a line is invalid; it names the line, the field and the value.
    """
    ids: dict[int, int] = {}
    corners: list[tuple[float, ...]] = []
    rows: list[list[int]] = []
    for line in _lines(path, ("id", "x1", "y1", "x2", "y2", "keywords"), progress):
        _note_id(ids, line)
        x1, y1, x2, y2 = (line.coordinate(i + 1, name) for i, name in enumerate(("x1", "y1", "x2", "y2")))
        if x1 > x2 or y1 > y2:
            raise line.wrong("the rectangle", (x1, y1, x2, y2), "x1 <= x2 and y1 <= y2")
        corners.append((x1, y1, x2, y2))
        rows.append(words.row(line.keywords()))
    columns = np.ascontiguousarray(np.array(corners, dtype=np.float64).reshape(-1, 4).T)
    return Clauses(np.array(list(ids), dtype=np.int64), Boxes(*columns), KeywordLists.of(rows))


def read_objects(path: Path, words: Words, progress: Progress) -> ObjectBatch:
    """Read objects.

    Raises
    ------
    BenchError
        If the file cannot be read or a line is invalid; it names the line, the field and the value.
    """
    ids: dict[int, int] = {}
    points: list[tuple[float, float]] = []
    rows: list[list[int]] = []
    for line in _lines(path, ("id", "x", "y", "keywords"), progress):
        _note_id(ids, line)
        points.append((line.coordinate(1, "x"), line.coordinate(2, "y")))
        rows.append(words.row(line.keywords()))
    x_m, y_m = np.ascontiguousarray(np.array(points, dtype=np.float64).reshape(-1, 2).T)
    return ObjectBatch(np.array(list(ids), dtype=np.int64), x_m, y_m, KeywordLists.of(rows))


def _note_id(ids: dict[int, int], line: _Line) -> None:
    """Require that an id is new."""
    before = ids.setdefault(line.id(), line.number)
    if before != line.number:
        raise line.wrong("id", line.fields[0], f"different from that of line {before}")


def _lines(path: Path, names: Sequence[str], progress: Progress) -> Iterator[_Line]:
    """Yield the lines of a file, each with as many fields as there are names."""
    number = 0
    try:
        with path.open(encoding="utf-8") as file:
            for number, text in enumerate(file, 1):
                line = _Line(path, number, text.rstrip("\r\n").split("\t"))
                if len(line.fields) != len(names):
                    limit = f"{len(names)}, separated by tabs: {' '.join(names)}"
                    raise line.wrong("the number of fields", len(line.fields), limit)
                yield line
                if number % _STEP == 0:
                    progress(str(path), number, 0)
    except (OSError, UnicodeDecodeError) as error:
        raise BenchError(f"{path} cannot be read: {error}") from None
    progress(str(path), number, number)
