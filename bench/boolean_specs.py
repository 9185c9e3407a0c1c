"""Create boolean subscriptions of benchmarks, as the engine takes them: a range and one clause each."""

from __future__ import annotations

from typing import cast

import numpy as np

from engine import Engine
from engine.boolean.layout import CIRCLE, BooleanSpecs, Ranges
from engine.boolean.matcher import BooleanMatcher
from engine.contracts import BOOLEAN
from engine.polygons import Rings
from index.batches import Boxes, Floats, KeywordLists
from safe_region.regions.region import RegionMode


def boolean_of(engine: Engine) -> BooleanMatcher:
    """Return an engine's matcher of boolean subscriptions."""
    return cast("BooleanMatcher", engine.matchers[BOOLEAN])


def circles(x_m: Floats, y_m: Floats, radius_m: float, *, are_moving: bool = False) -> Ranges:
    """Return circles of one radius; the centre of a moving circle is the device's position."""
    count = len(x_m)
    nothing = np.zeros(count)
    return Ranges(
        np.full(count, CIRCLE, dtype=np.int8),
        np.full(count, are_moving, dtype=np.bool_),
        np.ascontiguousarray(x_m),
        np.ascontiguousarray(y_m),
        np.full(count, radius_m),
        Boxes(nothing, nothing, nothing, nothing),
        Rings(np.zeros(count + 1, np.int64), np.zeros(1, np.int64), np.zeros(0), np.zeros(0)),
    )


def requiring(required: KeywordLists, ranges: Ranges) -> BooleanSpecs:
    """Return subscriptions for objects that have all keywords of a row and meet its range."""
    count = len(required)
    excluded = KeywordLists(np.zeros(count + 1, np.int64), np.zeros(0, np.int32))
    region = np.full(count, RegionMode.ANCHORED, dtype=np.int8)
    return BooleanSpecs(np.arange(count + 1, dtype=np.int64), required, excluded, ranges, region)
