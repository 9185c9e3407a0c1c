"""Validate specs of subscriptions, in plain Python. `nearcast.checks` explains the functions.

Operations: O(keywords + vertices), and O(vertices^2) for the flaw of a polygon.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from nearcast.canonical import NO_WINDOW, Boolean, Clause, Spec, TopK, Window
from nearcast.checks import checked_keywords, checked_position, require
from nearcast.errors import Reason, RefusedError
from nearcast.limits import DWELL_MS_MAX, Limits
from safe_region.earth.frame import Frame
from safe_region.earth.shapes import Bounds, Circle, Polygon, Position, Range, Rectangle
from safe_region.geometry.polygon_validity import flaw as polygon_flaw
from safe_region.regions.region import RegionMode
from safe_region.scoring.formulas import Similarity

_BOOLEAN = "spec.boolean"
_WITH_WINDOWS = (RegionMode.ANCHORED, RegionMode.STATIONARY)

PolygonFlaw: TypeAlias = Callable[[Sequence[Sequence[Position]]], str | None]
"""Returns a description of the flaw of a polygon with holes; None if it is valid."""


def checked_top_k(spec: TopK, limits: Limits) -> TopK:
    """Return a normalised spec."""
    field = "spec.top_k"
    require(1 <= spec.k <= limits.k_max, f"{field}.k", spec.k, f"1 to {limits.k_max}")
    require(
        limits.alpha_min <= spec.alpha <= limits.alpha_max,
        f"{field}.alpha",
        spec.alpha,
        f"{limits.alpha_min} to {limits.alpha_max}",
    )
    scale_m, most_m = spec.distance_scale_m, limits.distance_scale_m_max
    require(
        scale_m == 0.0 or 1.0 <= scale_m <= most_m,
        f"{field}.distance_scale_m",
        scale_m,
        f"1 to {most_m:.0f}, or absent",
    )
    keywords = checked_keywords(
        spec.keywords, f"{field}.keywords", limits.subscription_keywords_max, limits.keyword_length_max
    )
    _check_window(spec, limits)
    if spec.similarity is Similarity.TFIDF:
        _require_mode(spec, "since the similarity is TFIDF", _WITH_WINDOWS)
    return replace(spec, keywords=keywords, distance_scale_m=scale_m or 0.0)


def checked_boolean(
    spec: Boolean, limits: Limits, frame: Frame, flaw: PolygonFlaw = polygon_flaw
) -> Boolean:
    """Return a normalised spec: clauses sorted, each once."""
    field = f"{_BOOLEAN}.clauses"
    most = limits.clauses_max
    require(1 <= len(spec.clauses) <= most, field, f"{len(spec.clauses)} clauses", f"1 to {most}")
    clauses = {_checked_clause(one, f"{field}[{i}]", limits) for i, one in enumerate(spec.clauses)}
    where = checked_range(spec.range, limits, frame, is_moving=spec.is_moving, flaw=flaw)
    is_known = spec.is_moving or spec.region is RegionMode.ANCHORED
    require(is_known, "spec.region", spec.region.name, "ANCHORED, since the range does not move")
    limit = f"0 to {DWELL_MS_MAX}"
    require(0 <= spec.dwell_ms <= DWELL_MS_MAX, f"{_BOOLEAN}.dwell_ms", spec.dwell_ms, limit)
    _check_window(spec, limits)
    return replace(spec, clauses=tuple(sorted(clauses)), range=where)


def _checked_clause(clause: Clause, field: str, limits: Limits) -> Clause:
    bounds = limits.clause_keywords_max, limits.keyword_length_max
    required = checked_keywords(clause.required, f"{field}.required", *bounds)
    excluded: tuple[str, ...] = ()
    if clause.excluded:
        excluded = checked_keywords(clause.excluded, f"{field}.excluded", *bounds)
    both = sorted(set(required) & set(excluded))
    limit = "no keyword that is also required"
    require(not both, f"{field}.excluded", repr(both[0]) if both else "", limit)
    return Clause(required, excluded)


def _check_window(spec: Spec, limits: Limits) -> None:
    window = spec.window
    if window == NO_WINDOW:
        return
    check_window(window, limits)
    _require_mode(spec, "since there is a window", _WITH_WINDOWS)


def check_window(window: Window, limits: Limits) -> None:
    """Require a window of a valid duration and count."""
    for field, value, most in (
        ("duration_ms", window.duration_ms, limits.window_ms_max),
        ("count", window.count, limits.window_count_max),
    ):
        require(0 <= value <= most, f"spec.window.{field}", value, f"1 to {most}")


def _require_mode(spec: Spec, why: str, known: Sequence[RegionMode]) -> None:
    """Refuse the papers' modes, in which a device holds its result only and gets location requests."""
    known = [mode for mode in known if mode in spec.region_modes]
    names = " or ".join(one.name for one in known)
    require(spec.region in known, "spec.region", spec.region.name, f"{names}, {why}")


def checked_range(
    where: Range, limits: Limits, frame: Frame, *, is_moving: bool, flaw: PolygonFlaw = polygon_flaw
) -> Range:
    """Return a range that is within its limits."""
    match where:
        case Circle():
            return _checked_circle(where, limits, is_moving=is_moving)
        case Bounds():
            _require_fixed("rectangle.bounds", is_moving=is_moving)
            return checked_bounds(where, limits, frame)
        case Rectangle():
            return _checked_rectangle(where, limits, is_moving=is_moving)
        case Polygon():
            _require_fixed("polygon", is_moving=is_moving)
            return _checked_polygon(where, limits, frame, flaw)


def _require_fixed(name: str, *, is_moving: bool) -> None:
    require(not is_moving, f"{_BOOLEAN}.moving", value=True, limit=f"false: {name} is fixed in place")


def _checked_circle(circle: Circle, limits: Limits, *, is_moving: bool) -> Circle:
    field = f"{_BOOLEAN}.circle"
    limit = f"greater than 0, at most {limits.range_m_max}"
    require(0.0 < circle.radius_m <= limits.range_m_max, f"{field}.radius_m", circle.radius_m, limit)
    if is_moving:
        require(circle.center is None, f"{field}.center", "present", "absent: the circle moves")
    else:
        if circle.center is None:
            limit = "present: the circle is fixed in place (moving is false)"
            raise RefusedError(Reason.INVALID_FIELD, f"{field}.center", "absent", limit)
        checked_position(*circle.center, f"{field}.center")
    return circle


def _checked_rectangle(rectangle: Rectangle, limits: Limits, *, is_moving: bool) -> Rectangle:
    field, most_m = f"{_BOOLEAN}.rectangle", 2.0 * limits.range_m_max
    require(is_moving, f"{_BOOLEAN}.moving", value=False, limit="true: the rectangle moves")
    for name, value_m in (("width_m", rectangle.width_m), ("height_m", rectangle.height_m)):
        require(0.0 < value_m <= most_m, f"{field}.{name}", value_m, f"greater than 0, at most {most_m}")
    return rectangle


def checked_bounds(bounds: Bounds, limits: Limits, frame: Frame) -> Bounds:
    """Return a rectangle that is fixed in place."""
    field = f"{_BOOLEAN}.rectangle.bounds"
    low, high = (bounds.lon_min, bounds.lat_min), (bounds.lon_max, bounds.lat_max)
    checked_position(*low, field, ("lon_min", "lat_min"))
    checked_position(*high, field, ("lon_max", "lat_max"))
    for axis, least, most in (
        ("lon", bounds.lon_min, bounds.lon_max),
        ("lat", bounds.lat_min, bounds.lat_max),
    ):
        require(least < most, f"{field}.{axis}_max", most, f"greater than {axis}_min, {least}")
    _check_extent(field, low, high, limits, frame)
    return bounds


def _checked_polygon(polygon: Polygon, limits: Limits, frame: Frame, flaw: PolygonFlaw) -> Polygon:
    field = f"{_BOOLEAN}.polygon"
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
            checked_position(*vertex, f"{name}.vertices[{j}]")
    rings = polygon.rings
    found = flaw(rings)
    if found is not None:
        limit = "a simple polygon, holes inside and apart; a ring closes by itself"
        raise RefusedError(Reason.INVALID_FIELD, field, f"a polygon whose {found}", limit)
    lons, lats = zip(*polygon.outer, strict=True)
    _check_extent(field, (min(lons), min(lats)), (max(lons), max(lats)), limits, frame)
    return Polygon(rings[0], rings[1:])


def _check_extent(field: str, low: Position, high: Position, limits: Limits, frame: Frame) -> None:
    """Require that a range is not too large."""
    (west_m, south_m), (east_m, north_m) = frame.project(*low), frame.project(*high)
    most_m = 2.0 * limits.range_m_max
    for name, extent_m in (("width", east_m - west_m), ("height", north_m - south_m)):
        limit = f"a {name} greater than 0, at most {most_m} m"
        require(0.0 < extent_m <= most_m, field, f"a {name} of {extent_m} m", limit)
