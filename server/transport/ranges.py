"""Ranges of boolean subscriptions on the wire."""

from __future__ import annotations

from collections.abc import Iterable

from nearcast.v1 import geometry_pb2, subscriptions_pb2
from safe_region.earth.shapes import Bounds, Circle, Polygon, Position, Range, Rectangle
from server.errors import Reason, RefusalError
from server.transport.fields import missing

_FIELD = "spec.boolean"


def range_from(message: subscriptions_pb2.Boolean) -> Range:
    """Return the range in which objects match.

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
            if not rectangle.HasField("bounds"):
                if not message.moving:
                    raise missing(f"{_FIELD}.rectangle.bounds")
                return Rectangle(rectangle.width_m, rectangle.height_m)
            for name in ("width_m", "height_m"):
                if value := getattr(rectangle, name):
                    limit = "absent: the rectangle has bounds"
                    raise RefusalError(Reason.INVALID_FIELD, f"{_FIELD}.rectangle.{name}", value, limit)
            return bounds_from(rectangle.bounds)
        case "polygon":
            polygon = message.polygon
            return Polygon(ring_from(polygon.outer), tuple(map(ring_from, polygon.holes)))
        case _:
            raise missing(f"{_FIELD}.range")


def write_range(where: Range, message: subscriptions_pb2.Boolean) -> None:
    """Write the range in which objects match."""
    match where:
        case Circle(radius_m, center):
            message.circle.radius_m = radius_m
            if center is not None:
                message.circle.center.lon, message.circle.center.lat = center
        case Bounds():
            message.rectangle.bounds.CopyFrom(bounds_message(where))
        case Rectangle(width_m, height_m):
            message.rectangle.width_m, message.rectangle.height_m = width_m, height_m
        case Polygon(outer, holes):
            message.polygon.CopyFrom(
                geometry_pb2.Polygon(outer=ring_message(outer), holes=map(ring_message, holes))
            )


def bounds_from(message: geometry_pb2.Bounds) -> Bounds:
    """Return the rectangle in a message."""
    return Bounds(message.lon_min, message.lat_min, message.lon_max, message.lat_max)


def bounds_message(bounds: Bounds) -> geometry_pb2.Bounds:
    """Return the message of a rectangle."""
    return geometry_pb2.Bounds(
        lon_min=bounds.lon_min, lat_min=bounds.lat_min, lon_max=bounds.lon_max, lat_max=bounds.lat_max
    )


def _position(message: geometry_pb2.Position) -> Position:
    return message.lon, message.lat


def ring_from(message: geometry_pb2.Ring) -> tuple[Position, ...]:
    """Return the corners of a polygon in a message."""
    return tuple([(one.lon, one.lat) for one in message.vertices])


def ring_message(ring: Iterable[Position]) -> geometry_pb2.Ring:
    """Return the message of a polygon's corners."""
    return geometry_pb2.Ring(vertices=[geometry_pb2.Position(lon=lon, lat=lat) for lon, lat in ring])
