"""Ranges of boolean subscriptions on the wire."""

from __future__ import annotations

from collections.abc import Iterable

from nearcast.errors import invalid
from nearcast.protocol.converters import number, position_message
from nearcast.v1 import geometry_pb2, subscriptions_pb2
from safe_region.earth import Bounds, Circle, Polygon, Position, Range

_FIELD = "spec.boolean"


def write_range(where: Range, message: subscriptions_pb2.Boolean) -> None:
    """Write where an object must be.

    Raises
    ------
    RefusedError
        If it is no range, or has a field that cannot be written.
    """
    match where:
        case Circle():
            circle = message.circle
            circle.radius_m = number(where.radius_m, f"{_FIELD}.circle.radius_m")
            if where.center is not None:
                circle.center.CopyFrom(_position_message(where.center, f"{_FIELD}.circle.center"))
        case Bounds():
            names = ("lon_min", "lat_min", "lon_max", "lat_max")
            field = f"{_FIELD}.rectangle.bounds"
            degrees = {name: number(getattr(where, name), f"{field}.{name}") for name in names}
            message.rectangle.bounds.CopyFrom(geometry_pb2.Bounds(**degrees))
        case Polygon():
            polygon = message.polygon
            polygon.outer.CopyFrom(_ring_message(where.outer, f"{_FIELD}.polygon.outer"))
            for i, hole in enumerate(where.holes):
                polygon.holes.append(_ring_message(hole, f"{_FIELD}.polygon.holes[{i}]"))
        case _:
            raise invalid(f"{_FIELD}.range", where, "a Circle, Bounds or a Polygon")


def range_from(message: subscriptions_pb2.Boolean) -> Range | None:
    """Read where an object must be; None if in a way that is not known here."""
    kind = message.WhichOneof("range")
    if kind == "circle":
        circle = message.circle
        return Circle(circle.radius_m, _position(circle.center) if circle.HasField("center") else None)
    if kind == "rectangle" and message.rectangle.HasField("bounds") and not message.moving:
        bounds = message.rectangle.bounds
        return Bounds(bounds.lon_min, bounds.lat_min, bounds.lon_max, bounds.lat_max)
    if kind == "polygon" and not message.moving:
        return Polygon(_ring(message.polygon.outer), tuple(map(_ring, message.polygon.holes)))
    return None


def _position_message(position: Position, field: str) -> geometry_pb2.Position:
    try:
        lon, lat = position
    except (TypeError, ValueError):
        raise invalid(field, position, "a pair of longitude and latitude") from None
    return position_message(lon, lat, field)


def _ring_message(ring: Iterable[Position], field: str) -> geometry_pb2.Ring:
    try:
        vertices = list(ring)
    except TypeError:
        raise invalid(field, ring, "pairs of longitude and latitude") from None
    return geometry_pb2.Ring(
        vertices=[_position_message(one, f"{field}.vertices[{i}]") for i, one in enumerate(vertices)]
    )


def _position(message: geometry_pb2.Position) -> Position:
    return message.lon, message.lat


def _ring(message: geometry_pb2.Ring) -> tuple[Position, ...]:
    return tuple(map(_position, message.vertices))
