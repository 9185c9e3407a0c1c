"""Ranges of boolean subscriptions as JSON for the store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from safe_region.earth.shapes import Bounds, Circle, Polygon, Position, Range, Rectangle


def encoded_range(where: Range) -> dict[str, Any]:
    """Return a range as JSON, under the field name of the message."""
    match where:
        case Circle(radius_m, None):
            return {"circle": {"radius_m": radius_m}}
        case Circle(radius_m, center):
            return {"circle": {"radius_m": radius_m, "center": center}}
        case Bounds(lon_min, lat_min, lon_max, lat_max):
            return {"rectangle": {"bounds": [lon_min, lat_min, lon_max, lat_max]}}
        case Rectangle(width_m, height_m):
            return {"rectangle": {"width_m": width_m, "height_m": height_m}}
        case Polygon(outer, ()):
            return {"polygon": {"outer": outer}}
        case Polygon(outer, holes):
            return {"polygon": {"outer": outer, "holes": holes}}


def decoded_range(found: dict[str, Any]) -> Range:
    """Return the range in parsed JSON.

    Raises
    ------
    LookupError, TypeError, ValueError
        If it is not a range.
    """
    if "circle" in found:
        circle = found["circle"]
        center = circle.get("center")
        return Circle(float(circle["radius_m"]), None if center is None else _position(center))
    if "rectangle" in found:
        rectangle = found["rectangle"]
        if "bounds" in rectangle:
            return Bounds(*map(float, rectangle["bounds"]))
        return Rectangle(float(rectangle["width_m"]), float(rectangle["height_m"]))
    polygon = found["polygon"]
    return Polygon(_ring(polygon["outer"]), tuple(map(_ring, polygon.get("holes", ()))))


def _ring(found: Sequence[Any]) -> tuple[Position, ...]:
    return tuple(map(_position, found))


def _position(found: Any) -> Position:  # noqa: ANN401 - JSON
    lon, lat = found
    return float(lon), float(lat)
