"""Convert ranges of boolean subscriptions to messages and back."""

from __future__ import annotations

from nearcast.errors import invalid
from nearcast.protocol.shapes import (
    bounds_from,
    bounds_message,
    listed,
    number,
    pair_message,
    position_from,
    ring_from,
    ring_message,
)
from nearcast.v1 import subscriptions_pb2
from safe_region.earth.shapes import Bounds, Circle, Polygon, Range, Rectangle

_FIELD = "spec.boolean"


def write_range(where: Range, message: subscriptions_pb2.Boolean) -> None:
    """Write a range to a message; `message.moving` is set already.

    Raises
    ------
    RefusedError
        If the value is not a range, or has a field that cannot be converted.
    """
    match where:
        case Circle():
            circle = message.circle
            circle.radius_m = number(where.radius_m, f"{_FIELD}.circle.radius_m")
            if where.center is not None:
                circle.center.CopyFrom(pair_message(where.center, f"{_FIELD}.circle.center"))
            elif not message.moving:
                limit = (
                    "given: Circle(radius_m, center=(lon, lat)); or moving=True for a circle around the "
                    "device"
                )
                raise invalid(f"{_FIELD}.circle.center", None, limit)
        case Bounds():
            message.rectangle.bounds.CopyFrom(bounds_message(where, f"{_FIELD}.rectangle.bounds"))
        case Rectangle():
            if not message.moving:
                limit = (
                    "Bounds, which are fixed in place; or moving=True for a rectangle around the device"
                )
                raise invalid(f"{_FIELD}.rectangle.bounds", None, limit)
            rectangle = message.rectangle
            rectangle.width_m = number(where.width_m, f"{_FIELD}.rectangle.width_m")
            rectangle.height_m = number(where.height_m, f"{_FIELD}.rectangle.height_m")
        case Polygon():
            polygon = message.polygon
            polygon.outer.CopyFrom(ring_message(where.outer, f"{_FIELD}.polygon.outer"))
            holes = listed(where.holes, f"{_FIELD}.polygon.holes", "rings, or none")
            for i, hole in enumerate(holes):
                polygon.holes.append(ring_message(hole, f"{_FIELD}.polygon.holes[{i}]"))
        case _:
            raise invalid(f"{_FIELD}.range", where, "a Circle, Bounds, a Rectangle or a Polygon")


def range_from(message: subscriptions_pb2.Boolean) -> Range | None:
    """Convert a message to a range; None if its kind is unknown here."""
    kind = message.WhichOneof("range")
    if kind == "circle":
        circle = message.circle
        return Circle(
            circle.radius_m, position_from(circle.center) if circle.HasField("center") else None
        )
    if kind == "rectangle" and message.rectangle.HasField("bounds") and not message.moving:
        return bounds_from(message.rectangle.bounds)
    if kind == "rectangle" and message.moving:
        return Rectangle(message.rectangle.width_m, message.rectangle.height_m)
    if kind == "polygon" and not message.moving:
        return Polygon(ring_from(message.polygon.outer), tuple(map(ring_from, message.polygon.holes)))
    return None
