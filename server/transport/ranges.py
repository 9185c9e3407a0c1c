"""Ranges of boolean subscriptions on the wire."""

from __future__ import annotations

from collections.abc import Iterable

from nearcast.v1 import geometry_pb2, subscriptions_pb2
from safe_region.earth import Bounds, Circle, Polygon, Position, Range
from server.transport.fields import missing, unimplemented

_FIELD = "spec.boolean"


def range_from(message: subscriptions_pb2.Boolean) -> Range:
    """Read where an object must be.

    Raises
    ------
    RefusalError
        INVALID_FIELD or UNIMPLEMENTED, with the field.
    """
    match message.WhichOneof("range"):
        case "circle":
            circle = message.circle
            center = _position(circle.center) if circle.HasField("center") else None
            return Circle(circle.radius_m, center)
        case "rectangle":
            rectangle = message.rectangle
            if message.moving or rectangle.width_m or rectangle.height_m:
                raise unimplemented(f"{_FIELD}.rectangle", "a rectangle that is fixed in place")
            if not rectangle.HasField("bounds"):
                raise missing(f"{_FIELD}.rectangle.bounds")
            bounds = rectangle.bounds
            return Bounds(bounds.lon_min, bounds.lat_min, bounds.lon_max, bounds.lat_max)
        case "polygon":
            polygon = message.polygon
            return Polygon(_ring(polygon.outer), tuple(map(_ring, polygon.holes)))
        case _:
            raise missing(f"{_FIELD}.range")


def write_range(where: Range, message: subscriptions_pb2.Boolean) -> None:
    """Write where an object must be."""
    match where:
        case Circle(radius_m, center):
            message.circle.radius_m = radius_m
            if center is not None:
                message.circle.center.lon, message.circle.center.lat = center
        case Bounds(lon_min, lat_min, lon_max, lat_max):
            message.rectangle.bounds.CopyFrom(
                geometry_pb2.Bounds(lon_min=lon_min, lat_min=lat_min, lon_max=lon_max, lat_max=lat_max)
            )
        case Polygon(outer, holes):
            message.polygon.CopyFrom(
                geometry_pb2.Polygon(outer=_ring_message(outer), holes=map(_ring_message, holes))
            )


def _position(message: geometry_pb2.Position) -> Position:
    return message.lon, message.lat


def _ring(message: geometry_pb2.Ring) -> tuple[Position, ...]:
    return tuple(map(_position, message.vertices))


def _ring_message(ring: Iterable[Position]) -> geometry_pb2.Ring:
    return geometry_pb2.Ring(vertices=[geometry_pb2.Position(lon=lon, lat=lat) for lon, lat in ring])
