"""Define the rows of boolean subscriptions, and their specs in arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from engine.polygons import Rings
from engine.windows import Lasts
from index.batches import Boxes, Floats, Ints, KeywordLists
from safe_region.regions.region import RegionMode

Rows = npt.NDArray[Any]

CIRCLE = 0
RECTANGLE = 1
POLYGON = 2

NEAREST = int(RegionMode.NEAREST)

CLAUSE_BITS = 6
"""A subscription has at most 2**CLAUSE_BITS clauses."""

SUBSCRIPTION_DTYPE = np.dtype(
    [
        ("id", np.int64),  # the handle
        ("x_m", np.float64),  # anchor, or centre of a range that is fixed
        ("y_m", np.float64),
        ("radius_m", np.float64),  # of a circle; 0 for others
        ("x1_m", np.float64),  # a rectangle, about its middle if it moves; or the box about a polygon
        ("y1_m", np.float64),
        ("x2_m", np.float64),
        ("y2_m", np.float64),
        ("margin_m", np.float64),  # of the position, when it was anchored
        ("slack_m", np.float64),
        ("speed_mps", np.float64),  # of the device, NaN while unknown
        ("anchored_ms", np.int64),  # time of the last evaluation
        ("held_m", np.float64),  # with too many matches: see `engine.boolean.capped`
        ("held_id", np.int64),
        ("next_id", np.int64),
        ("settled_ms", np.int64),
        ("keyword_start", np.int64),  # keywords of all clauses together
        ("keyword_count", np.int32),
        ("ring_start", np.int32),  # of a polygon: the first of its rings
        ("match_count", np.int32),  # objects held or pending, if there are not too many
        ("ring_count", np.int16),
        ("window", np.int16),  # number of its window
        ("clause_count", np.int8),
        ("shape", np.int8),
        ("region", np.int8),  # mode of the safe region
        ("is_moving", np.int8),
        ("is_awake", np.int8),
        ("too_many", np.int8),
        ("is_dirty", np.int8),  # with too many matches: to be settled
    ],
    align=True,
)

CLAUSE_DTYPE = np.dtype(
    [
        ("id", np.int64),  # slot of the subscription << CLAUSE_BITS | its place among the clauses
        ("keyword_start", np.int64),  # required keywords
        ("keyword_count", np.int32),
        ("excluded", np.int32),  # slot in the table of excluded keywords; NOTHING if there are none
        ("is_covered", np.int8),  # another clause of the subscription finds all its matches
    ],
    align=True,
)

EXCLUDED_DTYPE = np.dtype(
    [
        ("id", np.int64),  # id of the clause
        ("keyword_start", np.int64),
        ("keyword_count", np.int32),
    ],
    align=True,
)

NOTHING = -1


class Ranges(NamedTuple):
    """The regions where objects must be, a row each."""

    shape: npt.NDArray[np.int8]
    """CIRCLE, RECTANGLE or POLYGON."""
    is_moving: npt.NDArray[np.bool_]
    """Whether the range, a circle or a rectangle, moves with the device, which is its middle."""
    x_m: Floats
    """Centre of a range that is fixed in place: of a circle, or of the box about it."""
    y_m: Floats
    radius_m: Floats
    """Radius of circles; 0 for others."""
    boxes: Boxes
    """Rectangles, with moving ones about their middle; and the boxes about polygons. Unused for
    circles."""
    rings: Rings


def sizes(rows: Rows) -> Floats:
    """Return the radius of circles and, for other shapes, of circles of equal area, metres."""
    area = (rows["x2_m"] - rows["x1_m"]) * (rows["y2_m"] - rows["y1_m"])
    found: Floats = np.where(rows["shape"] == CIRCLE, rows["radius_m"], np.sqrt(area / np.pi))
    return found


class BooleanSpecs(NamedTuple):
    """The specs of boolean subscriptions, a row each."""

    clause_offsets: Ints
    """Row i has the clauses `clause_offsets[i] : clause_offsets[i + 1]`, at least one."""
    required: KeywordLists
    """Required keywords of each clause, at least one."""
    excluded: KeywordLists
    """Excluded keywords of each clause."""
    ranges: Ranges
    region: npt.NDArray[np.int8]
    """Mode of each safe region (`RegionMode`): ANCHORED or, if the range moves, NEAREST."""
    lasts: Lasts | None = None
    """Their windows; None for no windows, as in the mode NEAREST."""
