"""Validate the types of positions, rectangles and polygons that apps write."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable
from numbers import Real
from typing import TypeVar

from nearcast.errors import invalid
from safe_region.earth.shapes import Bounds, ObjectArea, Polygon, Position, opened

_Item = TypeVar("_Item")


def number(value: float, field: str, limit: str = "a finite number") -> float:
    """Validate a finite number and return it; `limit` describes the valid numbers in the error."""
    if isinstance(value, int | float | Real) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):  # an integer that is too large for a float
            found = float(value)
            if math.isfinite(found):
                return found
    raise invalid(field, value, limit)


def checked_position(lon: float, lat: float, field: str = "position") -> Position:
    """Validate the numbers of a position, and return it."""
    return number(lon, f"{field}.lon"), number(lat, f"{field}.lat")


def checked_pair(position: Position, field: str) -> Position:
    """Validate a position that is given as a pair, and return it."""
    try:
        lon, lat = position
    except (TypeError, ValueError):
        raise invalid(field, position, "a pair of longitude and latitude") from None
    return checked_position(lon, lat, field)


def checked_bounds(bounds: Bounds, field: str) -> Bounds:
    """Validate the numbers of a rectangle, and return it."""
    names = ("lon_min", "lat_min", "lon_max", "lat_max")
    return Bounds(*(number(getattr(bounds, name), f"{field}.{name}") for name in names))


def checked_ring(ring: Iterable[Position], field: str) -> tuple[Position, ...]:
    """Validate the corners of a ring, and return them, without a repeated first one."""
    vertices = listed(ring, field, "pairs of longitude and latitude")
    corners = [checked_pair(one, f"{field}.vertices[{i}]") for i, one in enumerate(vertices)]
    return tuple(opened(corners))


def listed(items: Iterable[_Item], field: str, limit: str) -> list[_Item]:
    """Return an iterable as a list; refuse a value that is not iterable."""
    try:
        return list(items)
    except TypeError:
        raise invalid(field, items, limit) from None


def checked_area(area: ObjectArea, field: str) -> ObjectArea:
    """Validate the area of an object, and return it.

    Raises
    ------
    RefusedError
        If the value is not an area, has holes, or has a field that cannot be converted.
    """
    match area:
        case Bounds():
            return checked_bounds(area, f"{field}.rectangle")
        case Polygon():
            if area.holes != ():
                raise invalid(f"{field}.polygon.holes", area.holes, "a polygon without holes")
            return Polygon(checked_ring(area.outer, f"{field}.polygon"))
        case _:
            raise invalid(field, area, "Bounds or a Polygon")
