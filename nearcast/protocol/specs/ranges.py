"""Validate ranges of boolean subscriptions."""

from __future__ import annotations

from nearcast.errors import invalid
from nearcast.protocol.shapes import checked_bounds, checked_pair, checked_ring, listed, number
from safe_region.earth.shapes import Bounds, Circle, Polygon, Range, Rectangle

_FIELD = "spec.boolean"


def checked_range(where: Range, *, is_moving: bool) -> Range:
    """Validate the types in a range, and return it.

    Raises
    ------
    RefusedError
        If the value is not a range, or has a field that cannot be converted.
    """
    match where:
        case Circle():
            return _checked_circle(where, is_moving=is_moving)
        case Bounds():
            return checked_bounds(where, f"{_FIELD}.rectangle.bounds")
        case Rectangle():
            if not is_moving:
                limit = (
                    "Bounds, which are fixed in place; or moving=True for a rectangle around the device"
                )
                raise invalid(f"{_FIELD}.rectangle.bounds", None, limit)
            field = f"{_FIELD}.rectangle"
            width_m, height_m = number(where.width_m, f"{field}.width_m"), where.height_m
            return Rectangle(width_m, number(height_m, f"{field}.height_m"))
        case Polygon():
            outer = checked_ring(where.outer, f"{_FIELD}.polygon.outer")
            holes = listed(where.holes, f"{_FIELD}.polygon.holes", "rings, or none")
            fields = (f"{_FIELD}.polygon.holes[{i}]" for i in range(len(holes)))
            return Polygon(outer, tuple(map(checked_ring, holes, fields)))
        case _:
            raise invalid(f"{_FIELD}.range", where, "a Circle, Bounds, a Rectangle or a Polygon")


def _checked_circle(circle: Circle, *, is_moving: bool) -> Circle:
    radius_m = number(circle.radius_m, f"{_FIELD}.circle.radius_m")
    if circle.center is not None:
        return Circle(radius_m, checked_pair(circle.center, f"{_FIELD}.circle.center"))
    if not is_moving:
        limit = (
            "given: Circle(radius_m, center=(lon, lat)); or moving=True for a circle around the device"
        )
        raise invalid(f"{_FIELD}.circle.center", None, limit)
    return Circle(radius_m)
