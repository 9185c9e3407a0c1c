"""Boolean subscriptions of a feed: converts expressions to keywords with marks, and projects ranges.

Operations: O(keywords) a row, in Python; a repeated expression costs a look-up.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from index.batches import Floats
from nearcast.errors import RefusedError
from nearcast.expressions import clauses_of
from nearcast.limits import DEFAULT_LIMITS as LIMITS
from nearcast.limits import EXPRESSION_LENGTH_MAX
from nearcast.spec_checks import checked_bounds
from safe_region.earth.frame import Frame
from safe_region.earth.shapes import Bounds
from streaming.arrays.blocks import Marks
from streaming.arrays.validator import Bools, Validator

MARKS_MAX = 2 * LIMITS.clauses_max
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
    most_m = LIMITS.range_m_max
    in_limits = (radius_m > 0.0) & (radius_m <= most_m)
    validator.require(~(wanted & has_radius) | in_limits, f"radius_m must be above 0, at most {most_m:g}")
    is_box = wanted & has_bounds
    corners = np.zeros((len(radius_m), _BOUNDS))
    rows = np.flatnonzero(is_box)
    right = np.ones(len(radius_m), dtype=np.bool_)
    for row, given in zip(rows.tolist(), bounds.take(pa.array(rows)).to_pylist(), strict=True):
        corners[row], right[row] = _corners(given, frame)
    limit = f"west, south, east, north in degrees, at most {2 * most_m:g} m from side to side"
    validator.require(right, f"bounds must be {limit}")
    is_circle = wanted & has_radius
    columns = [column.copy() for column in corners.T]
    return FoundRanges(is_circle, is_box, np.where(is_circle, radius_m, 0.0), *columns)


def _corners(given: list[float | None], frame: Frame) -> tuple[tuple[float, ...], bool]:
    """Return a rectangle on the plane, and whether it is valid."""
    numbers = [math.nan if one is None else one for one in given]
    if len(numbers) != _BOUNDS:
        return (0.0,) * _BOUNDS, False
    west, south, east, north = numbers
    try:
        checked_bounds(Bounds(*numbers), LIMITS, frame)
    except RefusedError:
        return (0.0,) * _BOUNDS, False
    area = frame.area
    is_near = west <= area.lon_max and east >= area.lon_min
    is_near &= south <= area.lat_max and north >= area.lat_min
    return (*frame.project(west, south), *frame.project(east, north)), is_near


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
    if expression is None or len(expression) > EXPRESSION_LENGTH_MAX:
        return f"expression must be present, with at most {EXPRESSION_LENGTH_MAX} characters", None
    try:
        clauses = clauses_of(expression)
    except RefusedError as error:
        return f"expression: {error}", None
    most = LIMITS.clause_keywords_max
    if any(max(len(one.required), len(one.excluded)) > most for one in clauses):
        return f"expression must have at most {most} keywords per clause", None
    return "", tuple(
        (word, 2 * number + is_excluded)
        for number, clause in enumerate(clauses)
        for is_excluded, words in enumerate((clause.required, clause.excluded))
        for word in sorted(words)
    )
