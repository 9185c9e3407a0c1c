"""Positions, rectangles and polygons on the wire."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable
from numbers import Real
from typing import TypeVar

from nearcast.errors import invalid
from nearcast.v1 import geometry_pb2, objects_pb2
from safe_region.earth import Bounds, ObjectArea, Polygon, Position

_Item = TypeVar("_Item")


def number(value: float, field: str, limit: str = "a finite number") -> float:
    """Return a finite number; the limit says which, where it is known."""
    if isinstance(value, int | float | Real) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):  # a whole number beyond all others
            found = float(value)
            if math.isfinite(found):
                return found
    raise invalid(field, value, limit)


def position_message(lon: float, lat: float, field: str = "position") -> geometry_pb2.Position:
    """Write a position."""
    return geometry_pb2.Position(lon=number(lon, f"{field}.lon"), lat=number(lat, f"{field}.lat"))


def pair_message(position: Position, field: str) -> geometry_pb2.Position:
    """Write a position that is given as a pair."""
    try:
        lon, lat = position
    except (TypeError, ValueError):
        raise invalid(field, position, "a pair of longitude and latitude") from None
    return position_message(lon, lat, field)


def bounds_message(bounds: Bounds, field: str) -> geometry_pb2.Bounds:
    """Write a rectangle."""
    names = ("lon_min", "lat_min", "lon_max", "lat_max")
    return geometry_pb2.Bounds(
        **{name: number(getattr(bounds, name), f"{field}.{name}") for name in names}
    )


def ring_message(ring: Iterable[Position], field: str) -> geometry_pb2.Ring:
    """Write the corners of a polygon."""
    vertices = listed(ring, field, "pairs of longitude and latitude")
    return geometry_pb2.Ring(
        vertices=[pair_message(one, f"{field}.vertices[{i}]") for i, one in enumerate(vertices)]
    )


def listed(items: Iterable[_Item], field: str, limit: str) -> list[_Item]:
    """Return what can be iterated as a list; refuse what cannot."""
    try:
        return list(items)
    except TypeError:
        raise invalid(field, items, limit) from None


def area_message(area: ObjectArea, field: str) -> objects_pb2.ObjectArea:
    """Write the area of an object.

    Raises
    ------
    RefusedError
        If it is none, has holes, or has a field that cannot be written.
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
    """Read a rectangle."""
    return Bounds(message.lon_min, message.lat_min, message.lon_max, message.lat_max)


def position_from(message: geometry_pb2.Position) -> Position:
    """Read a position."""
    return message.lon, message.lat


def ring_from(message: geometry_pb2.Ring) -> tuple[Position, ...]:
    """Read the corners of a polygon."""
    return tuple(map(position_from, message.vertices))


def area_from(message: objects_pb2.ObjectArea) -> ObjectArea | None:
    """Read the area of an object; None if in a way that is not known here."""
    match message.WhichOneof("shape"):
        case "rectangle":
            return bounds_from(message.rectangle)
        case "polygon":
            return Polygon(ring_from(message.polygon))
        case _:
            return None
