"""Networks of the 9th DIMACS challenge: arcs in a `.gr` file, coordinates in a `.co` file.

Lines start with a letter: `c` for a comment, `p` for the type of the file and the number of its items,
`a` for an arc (two nodes and a weight), `v` for a vertex (x and y). The number is checked, so that a
truncated file is detected. The challenge's road networks of the USA have coordinates in millionths of a
degree.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from simulator.maps.errors import MapError
from simulator.maps.files import text_of
from simulator.maps.rows import Row

DEG_PER_UNIT = 1e-6
"""Degrees a unit, of coordinates that are degrees."""


class _Kind(NamedTuple):
    """The format of one of the two files.

    Parameters
    ----------
    names
        The fields of a line.
    letter
        The first letter of a line.
    problem
        The words of the line `p` before its counts.
    counts
        The number of counts that follow; the last is the number of lines.
    """

    names: tuple[str, ...]
    letter: str
    problem: tuple[str, ...]
    counts: int


_VERTICES = _Kind(("id", "x", "y"), "v", ("aux", "sp", "co"), 1)
_ARCS = _Kind(("source", "target", "weight"), "a", ("sp",), 2)


def vertex_rows(path: Path) -> Iterator[Row]:
    """Yield the vertices of a `.co` file: id, x, y."""
    return _rows(path, _VERTICES)


def arc_rows(path: Path) -> Iterator[Row]:
    """Yield the arcs of a `.gr` file: source, target, weight."""
    return _rows(path, _ARCS)


def _rows(path: Path, kind: _Kind) -> Iterator[Row]:
    expected = -1
    found = 0
    for line, text in enumerate(text_of(path).split("\n"), 1):
        letter, *values = text.split() or ["c"]
        if letter == "c":
            continue
        if letter == "p":
            expected = _count(path, line, values, kind)
            continue
        if letter != kind.letter:
            raise MapError(
                f"{path}, line {line}: begins with {letter[:20]!r}, must begin with one of "
                f"c, p, {kind.letter}"
            )
        if expected < 0:
            raise MapError(f"{path}, line {line}: comes before the line p, which must be the first")
        if len(values) != len(kind.names):
            raise MapError(
                f"{path}, line {line}: {len(values)} fields, must be {len(kind.names)}: "
                f"{', '.join(kind.names)}"
            )
        found += 1
        yield Row(path, line, dict(zip(kind.names, values, strict=True)))
    if expected < 0:
        raise MapError(f"{path} has no line p: it is not a file of the DIMACS challenge")
    if found != expected:
        raise MapError(
            f"{path} has {found} lines {kind.letter}, must have {expected} according to its line p: is "
            "the file truncated?"
        )


def _count(path: Path, line: int, values: list[str], kind: _Kind) -> int:
    """Return the number of lines that a file declares."""
    words = values[: len(kind.problem)]
    counts = values[len(kind.problem) :]
    is_number = all(one.isascii() and one.isdecimal() for one in counts)
    if tuple(words) != kind.problem or len(counts) != kind.counts or not is_number:
        wanted = " ".join(("p", *kind.problem, *(("nodes", "arcs")[: kind.counts])))
        raise MapError(f"{path}, line {line}: is {' '.join(('p', *values))[:80]!r}, must be {wanted!r}")
    return int(counts[-1])
