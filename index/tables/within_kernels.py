"""Queries for the objects in boxes, and the exact test of an object.

Operations: open a query O(1), test an object O(keywords).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy.typing as npt

from index.batches import Floats, Ints, KeywordIds
from safe_region.jit import array_leaf, leaf


class BoxQueries(NamedTuple):
    """Required keywords and closed boxes: a row for each."""

    keyword_offsets: Ints
    keyword_ids: KeywordIds
    x1_m: Floats
    y1_m: Floats
    x2_m: Floats
    y2_m: Floats


class Wanted(NamedTuple):
    """The query of one row."""

    words: KeywordIds  # strictly increasing
    x1_m: float
    y1_m: float
    x2_m: float
    y2_m: float


@array_leaf
def wanted_of(queries: BoxQueries, i: int) -> Wanted:
    """Return the query of a row."""
    words = queries.keyword_ids[queries.keyword_offsets[i] : queries.keyword_offsets[i + 1]]
    return Wanted(words, queries.x1_m[i], queries.y1_m[i], queries.x2_m[i], queries.y2_m[i])


@leaf
def holds_point(wanted: Wanted, x_m: float, y_m: float) -> bool:
    """Return whether the box contains a point."""
    return bool(wanted.x1_m <= x_m <= wanted.x2_m and wanted.y1_m <= y_m <= wanted.y2_m)


@leaf
def has_all(required: KeywordIds, pool: KeywordIds, start: int, count: int) -> bool:
    """Return whether a strictly increasing list in the pool has all required keywords. O(count)."""
    place = start
    end = start + count
    for i in range(required.shape[0]):
        while place < end and pool[place] < required[i]:
            place += 1
        if place == end or pool[place] != required[i]:
            return False
        place += 1
    return True


@leaf
def is_wanted(wanted: Wanted, row: Any, pool: KeywordIds) -> bool:  # noqa: ANN401
    """Return whether an object lies in the box and has all keywords."""
    if not holds_point(wanted, row["x_m"], row["y_m"]):
        return False
    return has_all(wanted.words, pool, int(row["keyword_start"]), int(row["keyword_count"]))


@leaf
def keep(found: npt.NDArray[Any], total: int, one: int) -> int:
    """Write an id if the array has space for it; return the number of ids including it."""
    if total < found.shape[0]:
        found[total] = one
    return total + 1
