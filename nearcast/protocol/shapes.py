"""Convert positions, rectangles and polygons to messages and back."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable
from numbers import Real
from typing import TypeVar

from nearcast.errors import invalid
from nearcast.v1 import geometry_pb2, objects_pb2
from safe_region.earth.shapes import Bounds, ObjectArea, Polygon, Position

_Item = TypeVar("_Item")


def number(value: float, field: str, limit: str = "a finite number") -> float:
    """Validate a finite number and return it; `limit` describes the valid numbers in the error."""
    if isinstance(value, int | float | Real) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):  # an integer that is too large for a float
            found = float(value)
            if math.isfinite(found):
                return found
    raise invalid(field, value, limit)


def position_message(lon: float, lat: float, field: str = "position") -> geometry_pb2.Position:
    """Convert a position to a message."""
    return geometry_pb2.Position(lon=number(lon, f"{field}.lon"), lat=number(lat, f"{field}.lat"))


def pair_message(position: Position, field: str) -> geometry_pb2.Position:
    """Convert a position that is given as a pair to a message."""
    try:
        lon, lat = position
    except (TypeError, ValueError):
        raise invalid(field, position, "a pair of longitude and latitude") from None
    return position_message(lon, lat, field)


def bounds_message(bounds: Bounds, field: str) -> geometry_pb2.Bounds:
    """Convert a rectangle to a message."""
    names = ("lon_min", "lat_min", "lon_max", "lat_max")
    return geometry_pb2.Bounds(
        **{name: number(getattr(bounds, name), f"{field}.{name}") for name in names}
    )


def ring_message(ring: Iterable[Position], field: str) -> geometry_pb2.Ring:
    """Convert the corners of a ring to a message."""
    vertices = listed(ring, field, "pairs of longitude and latitude")
    return geometry_pb2.Ring(
        vertices=[pair_message(one, f"{field}.vertices[{i}]") for i, one in enumerate(vertices)]
    )


def listed(items: Iterable[_Item], field: str, limit: str) -> list[_Item]:
    """Return an iterable as a list; refuse a value that is not iterable."""
    try:
        return list(items)
    except TypeError:
        raise invalid(field, items, limit) from None


def area_message(area: ObjectArea, field: str) -> objects_pb2.ObjectArea:
    """Convert the area of an object to a message.

    Raises
    ------
    RefusedError
        If the value is not an area, has holes, or has a field that cannot be converted.
    """
    match area:
        case Bounds():
            return objects_pb2.ObjectArea(rectangle=bounds_message(area, f"{field}.rectangle"))
        case Polygon():
            if area.holes != ():
                raise invalid(f"{field}.polygon.holes", area.holes, "a polygon without holes")
            return objects_pb2.ObjectArea(polygon=ring_message(area.outer, f"{field}.polygon"))
        case _:
            raise invalid(field, area, "Bounds or a Polygon")


def bounds_from(message: geometry_pb2.Bounds) -> Bounds:
    """Convert a message to a rectangle."""
    return Bounds(message.lon_min, message.lat_min, message.lon_max, message.lat_max)


def position_from(message: geometry_pb2.Position) -> Position:
    """Convert a message to a position."""
    return message.lon, message.lat


def ring_from(message: geometry_pb2.Ring) -> tuple[Position, ...]:
    """Convert a message to the corners of a ring."""
    return tuple(map(position_from, message.vertices))


def area_from(message: objects_pb2.ObjectArea) -> ObjectArea | None:
    """Convert a message to the area of an object; None if its kind is unknown here."""
    match message.WhichOneof("shape"):
        case "rectangle":
            return bounds_from(message.rectangle)
        case "polygon":
            return Polygon(ring_from(message.polygon))
        case _:
            return None
