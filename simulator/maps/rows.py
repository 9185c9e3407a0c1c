"""Rows of text files: fields by name, each checked when it is read.

An invalid field is an error that names file, line, field, value and limit.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from simulator.maps.errors import MapError
from simulator.maps.files import text_of

ID_MAX = 2**63 - 1

_SHOWN_MAX = 80
"""The maximum number of characters of a value in a message."""


class Row(NamedTuple):
    """One line of a file.

    Parameters
    ----------
    path, line
        The file and the number of the line, from 1.
    fields
        Its values, by the name of the field.
    kind
        The unit that is counted: a binary file has records.
    """

    path: Path
    line: int
    fields: dict[str, str]
    kind: str = "line"

    def integer(self, name: str) -> int:
        """Return a field that contains an integer of 64 bits."""
        value = self.fields[name]
        try:
            found = int(_plain(value))
        except ValueError:
            raise self.error(name, "must be a whole number") from None
        if not -ID_MAX <= found <= ID_MAX:
            raise self.error(name, f"must be within {-ID_MAX}..{ID_MAX}")
        return found

    def number(self, name: str, low: float, high: float, hint: str = "") -> float:
        """Return a field that contains a number between two limits."""
        value = self.fields[name]
        try:
            found = float(_plain(value))
        except ValueError:
            raise self.error(name, "must be a number") from None
        if not (math.isfinite(found) and low <= found <= high):
            raise self.error(name, f"must be within {low:g}..{high:g}{hint}")
        return found

    def optional(self, name: str | None, low: float, high: float) -> float:
        """Return a field that may be missing or empty; NaN then."""
        if name is None or not self.fields[name]:
            return math.nan
        return self.number(name, low, high)

    def error(self, name: str, rule: str) -> MapError:
        """Return the error for a field that violates a rule."""
        value = repr(self.fields[name][:_SHOWN_MAX])
        return MapError(f"{self.path}, {self.kind} {self.line}: {name} is {value}, {rule}")


def _plain(value: str) -> str:
    """Refuse numbers that only Python accepts."""
    if not value.isascii() or "_" in value:
        raise ValueError
    return value


class Header(NamedTuple):
    """The names of a CSV file's columns."""

    path: Path
    names: tuple[str, ...]

    def find(self, known: Sequence[str]) -> str | None:
        """Return the first of some names that is a column."""
        return next((one for one in known if one in self.names), None)

    def require(self, known: Sequence[str], meaning: str) -> str:
        """Return the first of some names that is a column.

        Raises
        ------
        MapError
            If none is.
        """
        found = self.find(known)
        if found is None:
            raise MapError(
                f"{self.path}, line 1: no column for {meaning}: must be one of {', '.join(known)}; "
                f"there are {', '.join(self.names)}"
            )
        return found


def plain_rows(path: Path, names: Sequence[str]) -> Iterator[Row]:
    """Yield the lines of a file with fields separated by blanks; empty lines are skipped.

    Parameters
    ----------
    path
        The file.
    names
        The names of its fields, in order.
    """
    for line, text in enumerate(text_of(path).split("\n"), 1):
        values = text.split()
        if not values:
            continue
        if len(values) != len(names):
            raise MapError(_wrong_count(path, line, len(values), names))
        yield Row(path, line, dict(zip(names, values, strict=True)))


def csv_rows(path: Path) -> tuple[Header, Iterator[Row]]:
    """Return the columns of a CSV file (comma-separated, with a header) and its rows.

    Names are in lower case; rows without any field are skipped. A row that spans several lines has the
    number of the first of them.
    """
    reader = csv.reader(io.StringIO(text_of(path), newline=""), strict=True)
    lines = _lines(path, reader)
    _, header = next(lines, (1, [""]))
    names = tuple(one.strip().lower() for one in header)
    for name in names:
        if not name or names.count(name) > 1:
            raise MapError(
                f"{path}, line 1: the name {name!r} of a column must be unique; there are "
                f"{', '.join(map(repr, names))}"
            )
    return Header(path, names), _csv_rows(path, names, lines)


def _csv_rows(
    path: Path, names: tuple[str, ...], lines: Iterator[tuple[int, list[str]]]
) -> Iterator[Row]:
    for line, values in lines:
        if len(values) != len(names):
            raise MapError(_wrong_count(path, line, len(values), names))
        fields = (one.strip() for one in values)
        yield Row(path, line, dict(zip(names, fields, strict=True)))


def _lines(path: Path, reader: Iterator[list[str]]) -> Iterator[tuple[int, list[str]]]:
    """Yield rows that have fields, with the number of the line on which each starts."""
    line = 0
    while True:
        try:
            values = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise MapError(f"{path}, line {line + 1}: not CSV: {error}") from None
        if values:
            yield line + 1, values
        line = reader.line_num  # type: ignore[attr-defined]


def _wrong_count(path: Path, line: int, count: int, names: Sequence[str]) -> str:
    return f"{path}, line {line}: {count} fields, must be {len(names)}: {', '.join(names)}"
