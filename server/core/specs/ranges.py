"""Ranges of boolean subscriptions: validated, and as JSON for the store."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from safe_region.earth.frame import Frame
from safe_region.earth.shapes import Bounds, Circle, Polygon, Position, Range, Rectangle
from safe_region.geometry.polygon_checks import polygon_flaw
from server.core.specs.checks import require
from server.errors import Reason, RefusalError
from server.limits import Limits

_FIELD = "spec.boolean"
_LON_MAX_DEG = 180.0
_LAT_MAX_DEG = 90.0
_TINY_DEG = 1e-17


def checked_range(where: Range, limits: Limits, frame: Frame, *, is_moving: bool) -> Range:
    """Return a range that is within its limits.

    Raises
    ------
    RefusalError
        Naming the field that is out of its limits.
    """
    match where:
        case Circle():
            return _checked_circle(where, limits, is_moving=is_moving)
        case Bounds():
            _require_fixed("rectangle.bounds", is_moving=is_moving)
            return _checked_bounds(where, limits, frame)
        case Rectangle():
            return _checked_rectangle(where, limits, is_moving=is_moving)
        case Polygon():
            _require_fixed("polygon", is_moving=is_moving)
            return _checked_polygon(where, limits, frame)


def _require_fixed(name: str, *, is_moving: bool) -> None:
    require(not is_moving, f"{_FIELD}.moving", value=True, limit=f"false: {name} is fixed in place")


def _checked_circle(circle: Circle, limits: Limits, *, is_moving: bool) -> Circle:
    field = f"{_FIELD}.circle"
    limit = f"greater than 0, at most {limits.range_m_max}"
    require(0.0 < circle.radius_m <= limits.range_m_max, f"{field}.radius_m", circle.radius_m, limit)
    if is_moving:
        require(circle.center is None, f"{field}.center", "present", "absent: the circle moves")
    else:
        if circle.center is None:
            limit = "present: the circle is fixed in place (moving is false)"
            raise RefusalError(Reason.INVALID_FIELD, f"{field}.center", "absent", limit)
        _check_position(circle.center, f"{field}.center")
    return circle


def _checked_rectangle(rectangle: Rectangle, limits: Limits, *, is_moving: bool) -> Rectangle:
    field, most_m = f"{_FIELD}.rectangle", 2.0 * limits.range_m_max
    require(is_moving, f"{_FIELD}.moving", value=False, limit="true: the rectangle moves")
    for name, value_m in (("width_m", rectangle.width_m), ("height_m", rectangle.height_m)):
        require(0.0 < value_m <= most_m, f"{field}.{name}", value_m, f"greater than 0, at most {most_m}")
    return rectangle


def _checked_bounds(bounds: Bounds, limits: Limits, frame: Frame) -> Bounds:
    field = f"{_FIELD}.rectangle.bounds"
    for corner, names in (
        ((bounds.lon_min, bounds.lat_min), ("lon_min", "lat_min")),
        ((bounds.lon_max, bounds.lat_max), ("lon_max", "lat_max")),
    ):
        _check_position(corner, field, names)
    for axis, least, most in (
        ("lon", bounds.lon_min, bounds.lon_max),
        ("lat", bounds.lat_min, bounds.lat_max),
    ):
        require(least < most, f"{field}.{axis}_max", most, f"greater than {axis}_min, {least}")
    _check_extent(
        field, (bounds.lon_min, bounds.lat_min), (bounds.lon_max, bounds.lat_max), limits, frame
    )
    return bounds


def _checked_polygon(polygon: Polygon, limits: Limits, frame: Frame) -> Polygon:
    field = f"{_FIELD}.polygon"
    count, most = len(polygon.holes), limits.holes_max
    require(count <= most, f"{field}.holes", f"{count} holes", f"at most {most} holes")
    rings = (polygon.outer, *polygon.holes)
    count, most = sum(map(len, rings)), limits.vertices_max
    require(
        count <= most, field, f"{count} vertices", f"at most {most} vertices, those of holes included"
    )
    for i, ring in enumerate(rings):
        name = f"{field}.outer" if i == 0 else f"{field}.holes[{i - 1}]"
        for j, vertex in enumerate(ring):
            _check_position(vertex, f"{name}.vertices[{j}]")
    rings = tuple(tuple(map(_without_tiny, ring)) for ring in rings)
    flaw = polygon_flaw(rings)
    if flaw is not None:
        raise RefusalError(Reason.INVALID_FIELD, field, flaw, "a simple polygon, holes inside and apart")
    lons, lats = zip(*polygon.outer, strict=True)
    _check_extent(field, (min(lons), min(lats)), (max(lons), max(lats)), limits, frame)
    return Polygon(rings[0], rings[1:])


def _without_tiny(position: Position) -> Position:
    """Return a corner in which coordinates below a millionth of a micrometre are 0.

    Kernels are exact with coordinates that are 0 or not as small as a float64 can be.
    """
    lon, lat = position
    return lon if abs(lon) >= _TINY_DEG else 0.0, lat if abs(lat) >= _TINY_DEG else 0.0


def _check_position(position: Position, field: str, names: tuple[str, str] = ("lon", "lat")) -> None:
    """Require a position on Earth."""
    if abs(position[0]) <= _LON_MAX_DEG and abs(position[1]) <= _LAT_MAX_DEG:
        return
    for name, value, most in zip(names, position, (_LON_MAX_DEG, _LAT_MAX_DEG), strict=True):
        is_right = math.isfinite(value) and abs(value) <= most
        require(is_right, f"{field}.{name}", value, f"a finite number from -{most} to {most}")


def _check_extent(field: str, low: Position, high: Position, limits: Limits, frame: Frame) -> None:
    """Require that a range is not too large."""
    (west_m, south_m), (east_m, north_m) = frame.project(*low), frame.project(*high)
    most_m = 2.0 * limits.range_m_max
    for name, extent_m in (("width", east_m - west_m), ("height", north_m - south_m)):
        limit = f"a {name} greater than 0, at most {most_m} m"
        require(0.0 < extent_m <= most_m, field, f"a {name} of {extent_m} m", limit)


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
