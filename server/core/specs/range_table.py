"""Ranges of boolean subscriptions in arrays: on the plane for the matcher, in degrees as received."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.boolean.layout import CIRCLE, POLYGON, RECTANGLE, Ranges
from engine.polygons import Rings
from index.batches import Boxes, Floats
from index.tables import SlotTable
from index.tables.growth import longer
from index.tables.slots import Slots
from safe_region.earth.frame import Frame, Point
from safe_region.earth.shapes import Bounds, Circle, Polygon, Range, Rectangle

_ROOM_MIN = 16
_NOWHERE = Point(0.0, 0.0)


class RangeTable:
    """The original degrees of ranges, by the slot of the subscription. O(1) per look-up.

    Parameters
    ----------
    subscriptions
        The matcher's rows, which have the shape of each range.
    """

    def __init__(self, subscriptions: SlotTable) -> None:
        self._subscriptions = subscriptions
        self._degrees: Floats = np.zeros((_ROOM_MIN, 4))
        self._polygons: dict[int, Polygon] = {}

    def put(self, slots: Slots, ranges: Sequence[Range]) -> None:
        """Store ranges."""
        self._degrees = longer(self._degrees, self._subscriptions.end)
        for slot, where in zip(slots.tolist(), ranges, strict=True):
            match where:
                case Circle(_, None) | Rectangle():
                    pass
                case Circle(_, center):
                    self._degrees[slot, :2] = center
                case Bounds(lon_min, lat_min, lon_max, lat_max):
                    self._degrees[slot] = lon_min, lat_min, lon_max, lat_max
                case Polygon():
                    self._polygons[slot] = where

    def get(self, slot: int) -> Range:
        """Return a range."""
        row = self._subscriptions.rows[slot]
        if row["shape"] == POLYGON:
            return self._polygons[slot]
        if row["shape"] == RECTANGLE and row["is_moving"]:
            return Rectangle(float(row["x2_m"] - row["x1_m"]), float(row["y2_m"] - row["y1_m"]))
        degrees = self._degrees[slot].tolist()
        if row["shape"] == RECTANGLE:
            return Bounds(*degrees)
        return Circle(float(row["radius_m"]), None if row["is_moving"] else (degrees[0], degrees[1]))

    def remove(self, slot: int) -> None:
        """Remove a range."""
        self._polygons.pop(slot, None)


def plane_ranges(ranges: Sequence[Range], frame: Frame) -> Ranges:
    """Return ranges as columns for the matcher."""
    rows = [_row(where, frame) for where in ranges]
    table = np.array([one[1:] for one in rows], dtype=np.float64).reshape(-1, 7).T
    x_m, y_m, radius_m, *box = np.ascontiguousarray(table)
    return Ranges(
        np.array([one[0] for one in rows], dtype=np.int8),
        np.array([_is_moving(one) for one in ranges], dtype=np.bool_),
        x_m,
        y_m,
        radius_m,
        Boxes(*box),
        _rings(ranges, frame),
    )


def _row(where: Range, frame: Frame) -> tuple[float, ...]:
    """Return shape, middle, radius and box of a range."""
    match where:
        case Circle(radius_m, center):
            middle = _NOWHERE if center is None else frame.project(*center)
            return CIRCLE, *middle, radius_m, 0.0, 0.0, 0.0, 0.0
        case Bounds(lon_min, lat_min, lon_max, lat_max):
            low, high = frame.project(lon_min, lat_min), frame.project(lon_max, lat_max)
            return RECTANGLE, *_middle(low, high), 0.0, *low, *high
        case Rectangle(width_m, height_m):
            half_x_m, half_y_m = width_m / 2.0, height_m / 2.0
            return RECTANGLE, *_NOWHERE, 0.0, -half_x_m, -half_y_m, half_x_m, half_y_m
        case Polygon(outer):
            x_m, y_m = zip(*(frame.project(*vertex) for vertex in outer), strict=True)
            low, high = Point(min(x_m), min(y_m)), Point(max(x_m), max(y_m))
            return POLYGON, *_middle(low, high), 0.0, *low, *high


def _is_moving(where: Range) -> bool:
    return isinstance(where, Rectangle) or (isinstance(where, Circle) and where.center is None)


def _middle(low: Point, high: Point) -> Point:
    return Point((low.x_m + high.x_m) / 2.0, (low.y_m + high.y_m) / 2.0)


def _rings(ranges: Sequence[Range], frame: Frame) -> Rings:
    """Return the rings of the polygons among ranges."""
    rings = [(one.outer, *one.holes) if isinstance(one, Polygon) else () for one in ranges]
    flat = [ring for row in rings for ring in row]
    points = [frame.project(*vertex) for ring in flat for vertex in ring]
    x_m, y_m = np.ascontiguousarray(np.array(points, dtype=np.float64).reshape(-1, 2).T)
    return Rings(
        np.cumsum([0, *map(len, rings)], dtype=np.int64),
        np.cumsum([0, *map(len, flat)], dtype=np.int64),
        x_m,
        y_m,
    )
