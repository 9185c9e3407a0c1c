"""The objects that a moving range starts and ceases to cover: as boxes to query, and exactly.

Matches that start are in the new box, and not unchanged from the old one; matches that end are in the old
box and not in the new. The rest of a box after removal of a box that intersects it is cut into at most
four strips, west and east over the whole height, south and north between them. Their edges are adjacent
float64 numbers, so no point lies in two strips, or in a strip and the removed part.

Objects with areas are found by their points, so the query boxes are larger, and the removed parts
smaller. The old or new box is enlarged to contain the points of all objects that intersect it; `same` is
reduced by the reach of areas to contain only points of objects that lie within it. Each object found is
tested by its own box.

Operations: cut O(1) a clause, sort O(1) an object found.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from index.batches import Floats, Ints
from index.tables.id_map_kernels import Values, find
from index.tables.within_kernels import keep
from safe_region.jit import kernel, leaf

STRIPS_MAX = 8
"""Of a clause: four of the new box, four of the old one."""

ENTERED, LEFT = 0, 1
"""The purpose of a strip; its owner is twice the row of its clause, plus this."""


class Changes(NamedTuple):
    """Boxes of clauses, and the reach of areas: a row for each, x1, y1, x2, y2."""

    old: Floats  # inverted: the clause is new
    new: Floats
    same: Floats  # an object within it does not change if it intersects both the old and the new
    beyond_m: Floats  # one row: the reach of areas from their points, west, south, east, north


class Live(NamedTuple):
    """The table of objects."""

    rows: npt.NDArray[Any]
    keys: Ints
    values: Values
    now: Ints  # one number


class Rectangle(NamedTuple):
    """A closed box; inverted if it is empty."""

    x1_m: float
    y1_m: float
    x2_m: float
    y2_m: float


@leaf
def _rectangle(boxes: Floats, row: int) -> Rectangle:
    return Rectangle(boxes[row, 0], boxes[row, 1], boxes[row, 2], boxes[row, 3])


@leaf
def _below(coordinate_m: float) -> float:
    return float(np.nextafter(coordinate_m, -math.inf))


@leaf
def _above(coordinate_m: float) -> float:
    return float(np.nextafter(coordinate_m, math.inf))


@leaf
def _moved_down(edge_m: float, by_m: float) -> float:
    return edge_m if by_m == 0.0 else _below(edge_m - by_m)


@leaf
def _moved_up(edge_m: float, by_m: float) -> float:
    return edge_m if by_m == 0.0 else _above(edge_m + by_m)


@leaf
def _grown(box: Rectangle, beyond_m: Floats) -> Rectangle:
    """Return a box that contains the points of all objects that intersect a box."""
    return Rectangle(
        _moved_down(box.x1_m, beyond_m[2]),
        _moved_down(box.y1_m, beyond_m[3]),
        _moved_up(box.x2_m, beyond_m[0]),
        _moved_up(box.y2_m, beyond_m[1]),
    )


@leaf
def _shrunk(box: Rectangle, beyond_m: Floats) -> Rectangle:
    """Return a box that contains only points of objects that lie within a box."""
    return Rectangle(
        _moved_up(box.x1_m, beyond_m[0]),
        _moved_up(box.y1_m, beyond_m[1]),
        _moved_down(box.x2_m, beyond_m[2]),
        _moved_down(box.y2_m, beyond_m[3]),
    )


@leaf
def _common(one: Rectangle, other: Rectangle) -> Rectangle:
    return Rectangle(
        max(one.x1_m, other.x1_m),
        max(one.y1_m, other.y1_m),
        min(one.x2_m, other.x2_m),
        min(one.y2_m, other.y2_m),
    )


@leaf
def _is_empty(box: Rectangle) -> bool:
    return bool(box.x1_m > box.x2_m or box.y1_m > box.y2_m)


@leaf
def _add(strips: Floats, count: int, x1_m: float, y1_m: float, x2_m: float, y2_m: float) -> int:
    strips[0, count] = x1_m
    strips[1, count] = y1_m
    strips[2, count] = x2_m
    strips[3, count] = y2_m
    return count + 1


@leaf
def _cut(outer: Rectangle, hole: Rectangle, strips: Floats, count: int) -> int:
    """Write the rest of a box; return the new number of strips."""
    if _is_empty(outer):
        return count
    hole = _common(outer, hole)
    if _is_empty(hole):
        return _add(strips, count, outer.x1_m, outer.y1_m, outer.x2_m, outer.y2_m)
    if outer.x1_m < hole.x1_m:
        count = _add(strips, count, outer.x1_m, outer.y1_m, _below(hole.x1_m), outer.y2_m)
    if outer.x2_m > hole.x2_m:
        count = _add(strips, count, _above(hole.x2_m), outer.y1_m, outer.x2_m, outer.y2_m)
    if outer.y1_m < hole.y1_m:
        count = _add(strips, count, hole.x1_m, outer.y1_m, hole.x2_m, _below(hole.y1_m))
    if outer.y2_m > hole.y2_m:
        count = _add(strips, count, hole.x1_m, _above(hole.y2_m), hole.x2_m, outer.y2_m)
    return count


@kernel
def cut(changes: Changes, strips: Floats, owners: Ints) -> int:
    """Write the strips of all clauses, grouped by clause; return their number.

    `strips` has a row for each edge, with a capacity of STRIPS_MAX a clause.
    """
    beyond_m = changes.beyond_m
    count = 0
    for i in range(changes.new.shape[0]):
        old, new = _rectangle(changes.old, i), _rectangle(changes.new, i)
        for kind in (ENTERED, LEFT):
            begin = count
            if kind == ENTERED:
                unchanged = _common(old, _shrunk(_rectangle(changes.same, i), beyond_m))
                count = _cut(_grown(new, beyond_m), unchanged, strips, count)
            elif not _is_empty(old):
                count = _cut(_grown(old, beyond_m), new, strips, count)
            owners[begin:count] = 2 * i + kind
    return count


@leaf
def _meets(boxes: Floats, i: int, row: Any) -> bool:  # noqa: ANN401
    """Return whether an object intersects a box."""
    return bool(
        row["x1_m"] <= boxes[i, 2]
        and row["x2_m"] >= boxes[i, 0]
        and row["y1_m"] <= boxes[i, 3]
        and row["y2_m"] >= boxes[i, 1]
    )


@leaf
def _lies_within(boxes: Floats, i: int, row: Any) -> bool:  # noqa: ANN401
    """Return whether an object lies within a box."""
    return bool(
        row["x1_m"] >= boxes[i, 0]
        and row["y1_m"] >= boxes[i, 1]
        and row["x2_m"] <= boxes[i, 2]
        and row["y2_m"] <= boxes[i, 3]
    )


@leaf
def _is_change(changes: Changes, i: int, kind: int, row: Any) -> bool:  # noqa: ANN401
    """Return whether a clause starts, or ceases, to match an object that has its keywords."""
    is_old, is_new = _meets(changes.old, i, row), _meets(changes.new, i, row)
    if kind == LEFT:
        return bool(is_old and not is_new)
    return bool(is_new and not (is_old and _lies_within(changes.same, i, row)))


@kernel
def sort_out(
    changes: Changes,
    live: Live,
    owners: Ints,
    offsets: Ints,
    ids: Ints,
    entered_offsets: Ints,
    entered: Ints,
    left_offsets: Ints,
    left: Ints,
) -> None:
    """Write the matches that start and those that end, from the objects found in strips."""
    entered_count = 0
    left_count = 0
    done = 0
    for strip in range(owners.shape[0]):
        i, kind = owners[strip] // 2, owners[strip] % 2
        while done < i:
            done += 1
            entered_offsets[done] = entered_count
            left_offsets[done] = left_count
        for place in range(offsets[strip], offsets[strip + 1]):
            row = live.rows[find(live.keys, live.values, ids[place])]
            if row["expiry_ms"] <= live.now[0] or not _is_change(changes, i, kind, row):
                continue
            if kind == ENTERED:
                entered_count = keep(entered, entered_count, ids[place])
            else:
                left_count = keep(left, left_count, ids[place])
    while done < changes.new.shape[0]:
        done += 1
        entered_offsets[done] = entered_count
        left_offsets[done] = left_count
