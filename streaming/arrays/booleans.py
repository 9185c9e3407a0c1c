"""Boolean subscriptions of a feed: converts expressions to keywords with marks, and projects ranges.

Operations: O(keywords) a row, in Python; a repeated expression costs a look-up.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from index.batches import Floats
from nearcast.errors import RefusedError
from nearcast.expressions import CLAUSES_MAX, clauses_of
from safe_region.earth.frame import Frame
from streaming.arrays.blocks import Marks
from streaming.arrays.validator import Bools, Validator

MARKS_MAX = 2 * CLAUSES_MAX
CLAUSE_KEYWORDS_MAX = 16
RANGE_M_MAX = 50_000.0
_EXPRESSION_LENGTH_MAX = 4096
_BOUNDS = 4


class FoundRanges(NamedTuple):
    """Ranges on the plane, with a value for each row; zeros where there is none."""

    is_circle: Bools
    is_box: Bools
    radius_m: Floats
    x1_m: Floats
    y1_m: Floats
    x2_m: Floats
    y2_m: Floats


def read_ranges(
    radii: pa.Array, bounds: pa.Array, validator: Validator, wanted: Bools, frame: Frame
) -> FoundRanges:
    """Read the ranges of the rows in `wanted`: a circle or a rectangle."""
    radius_m = np.asarray(radii.to_numpy(zero_copy_only=False), dtype=np.float64)
    has_bounds: Bools = bounds.is_valid().to_numpy(zero_copy_only=False)
    has_radius = ~np.isnan(radius_m)
    validator.require(~wanted | (has_radius ^ has_bounds), "either radius_m or bounds must be present")
    in_limits = (radius_m > 0.0) & (radius_m <= RANGE_M_MAX)
    validator.require(
        ~(wanted & has_radius) | in_limits, f"radius_m must be above 0, at most {RANGE_M_MAX:g}"
    )
    is_box = wanted & has_bounds
    corners = np.zeros((len(radius_m), _BOUNDS))
    rows = np.flatnonzero(is_box)
    right = np.ones(len(radius_m), dtype=np.bool_)
    for row, given in zip(rows.tolist(), bounds.take(pa.array(rows)).to_pylist(), strict=True):
        corners[row], right[row] = _corners(given, frame)
    limit = f"west, south, east, north in degrees, at most {2 * RANGE_M_MAX:g} m from side to side"
    validator.require(right, f"bounds must be {limit}")
    is_circle = wanted & has_radius
    columns = [column.copy() for column in corners.T]
    return FoundRanges(is_circle, is_box, np.where(is_circle, radius_m, 0.0), *columns)


def _corners(given: list[float | None], frame: Frame) -> tuple[tuple[float, ...], bool]:
    """Return a rectangle on the plane, and whether it is valid."""
    numbers = [np.nan if one is None else one for one in given]
    if len(numbers) != _BOUNDS or not np.isfinite(numbers).all():
        return (0.0,) * _BOUNDS, False
    west, south, east, north = numbers
    area = frame.area
    x1_m, y1_m = frame.project(west, south)
    x2_m, y2_m = frame.project(east, north)
    is_right = west <= east and south <= north and max(x2_m - x1_m, y2_m - y1_m) <= 2 * RANGE_M_MAX
    is_near = west <= area.lon_max and east >= area.lon_min
    is_near &= south <= area.lat_max and north >= area.lat_min
    return (x1_m, y1_m, x2_m, y2_m), bool(is_right and is_near)


def marked_keywords(
    expressions: pa.Array, keywords: pa.Array, validator: Validator, wanted: Bools
) -> tuple[pa.Array, Marks]:
    """Return the keyword lists and marks; rows in `wanted` get the keywords of their clauses."""
    lists = keywords.to_pylist()
    marks = [[0] * len(one or ()) for one in lists]
    for row in np.flatnonzero(wanted & validator.is_good).tolist():
        reason, found = _clauses(expressions[row].as_py())
        if found is None:
            validator.refuse(row, reason)
        lists[row], marks[row] = ([one for one, _ in found or ()], [one for _, one in found or ()])
    flat = [one for row in marks for one in row]
    return pa.array(lists, keywords.type), np.array(flat, dtype=np.int16)


@lru_cache(100_000)
def _clauses(expression: str | None) -> tuple[str, tuple[tuple[str, int], ...] | None]:
    """Return the keywords of an expression's clauses with their marks, or the reason of a refusal."""
    if expression is None or len(expression) > _EXPRESSION_LENGTH_MAX:
        return f"expression must be present, with at most {_EXPRESSION_LENGTH_MAX} characters", None
    try:
        clauses = clauses_of(expression)
    except RefusedError as error:
        return f"expression: {error}", None
    if any(max(len(one.required), len(one.excluded)) > CLAUSE_KEYWORDS_MAX for one in clauses):
        return f"expression must have at most {CLAUSE_KEYWORDS_MAX} keywords per clause", None
    return "", tuple(
        (word, 2 * number + is_excluded)
        for number, clause in enumerate(clauses)
        for is_excluded, words in enumerate((clause.required, clause.excluded))
        for word in sorted(words)
    )
