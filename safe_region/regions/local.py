"""Build the local safe region (LSR), which Lamps' ASR replaced, from ellipses and dominant regions.

    R = {p : |p o| + r(o) + |a p| <= gamma for each result o}  and
        {p : |p o| + r(o) <= |p o'| + r(o') for each result o and each o' of O_s}

O_s has the objects whose length at the anchor is below gamma and that are not results. gamma is chosen
beyond the (k+1)-th length, so that the ellipses are larger than those of the ASR. In exchange, every
object in between has to be kept apart by its dominant region. Within R the result set does not change.

Polygons lie within the region. Convex parts are inscribed. Where the dominant region of o is the outside
of a convex set, a circumscribed polygon replaces that set. O(k * |O_s|) polygon intersections, some 250
microseconds each (14 ms a region, docs/performance.md): a baseline, not for a server.

Source: lamps.txt section 2.2, after W. Huang et al., CIKM 2012.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import shapely

from safe_region.earth.frame import Point

Floats = npt.NDArray[np.float64]
Shape = Any
"""A shapely geometry, whose methods have no types."""

_VERTICES = 48
_INWARD = 1.0 - 1e-9
"""The factor that shrinks inscribed polygons by more than the rounding error."""
_FAR = 16.0
"""Polygons end this many times farther out than the ellipses; beyond that nothing matters."""


class Circle(NamedTuple):
    """An object as a circle: its position and the constant part of its length, in metres."""

    x_m: float
    y_m: float
    r_m: float


def local_safe_region(
    anchor: Point, gamma_m: float, results: Sequence[Circle], others: Sequence[Circle]
) -> Shape:
    """Build the region, a shapely geometry.

    Parameters
    ----------
    anchor
        The position at which the subscription was evaluated.
    gamma_m
        A finite length; every object that is neither a result nor in `others` has at least this length.
    results
        The k results, at least one.
    others
        O_s.
    """
    region: Shape = _ellipses(anchor, gamma_m, results)
    for result in results:
        for other in others:
            if region.is_empty:
                return region
            region = _dominated(region, anchor, gamma_m, result, other)
    return region


def _ellipses(anchor: Point, gamma_m: float, results: Sequence[Circle]) -> shapely.Polygon:
    """Intersect the ellipses: seen from the focus that they share, take the least of their radii."""
    angles = 2.0 * np.pi * np.arange(_VERTICES) / _VERTICES
    directions = np.stack([np.cos(angles), np.sin(angles)])
    least = np.full(_VERTICES, np.inf)
    for one in results:
        dx, dy = one.x_m - anchor.x_m, one.y_m - anchor.y_m
        major = gamma_m - one.r_m
        gap = major * major - dx * dx - dy * dy
        if gap <= 0.0:
            return shapely.Polygon()
        along = dx * directions[0] + dy * directions[1]
        least = np.minimum(least, gap / (2.0 * np.maximum(major - along, 1e-300)))
        least = np.minimum(least, (major + math.hypot(dx, dy)) / 2.0)
    ring = np.array(anchor)[:, None] + directions * least * _INWARD
    return shapely.Polygon(ring.T)


def _dominated(region: Shape, anchor: Point, gamma_m: float, result: Circle, other: Circle) -> Shape:
    """Return the part of a region within the dominant region of a result over another object."""
    gap = other.r_m - result.r_m
    apart = math.hypot(other.x_m - result.x_m, other.y_m - result.y_m)
    if gap >= apart:
        return region  # the other object is better nowhere
    if gap <= -apart:
        return shapely.Polygon()
    far = _FAR * gamma_m + math.hypot(anchor.x_m - result.x_m, anchor.y_m - result.y_m)
    if gap <= 0.0:
        inside = _branch(result, other, -gap, anchor, far)
        return region.intersection(shapely.Polygon(inside))
    outside = _around_branch(other, result, gap, anchor, far)
    return region.difference(shapely.Polygon(outside))


def _hyperbola(
    focus: Circle, against: Circle, lead_m: float, anchor: Point, far_m: float
) -> tuple[Floats, Floats]:
    """Return points on the boundary of {p : |p focus| + lead <= |p against|} and its directions there.

    The points are centre + axis * a cosh t + across * b sinh t, in even steps of t, with smaller steps
    near the anchor. So the error of a polygon grows only with the distance from the anchor.
    """
    centre = np.array([focus.x_m + against.x_m, focus.y_m + against.y_m]) / 2.0
    axis = np.array([focus.x_m - against.x_m, focus.y_m - against.y_m])
    apart = float(np.hypot(*axis))
    axis /= apart
    across = np.array([-axis[1], axis[0]])
    a_m = lead_m / 2.0
    b_m = math.sqrt(max((apart - lead_m) * (apart + lead_m), 1e-18)) / 2.0
    beside = math.asinh(float((np.array(anchor) - centre) @ across) / b_m)
    end = max(math.asinh(far_m / b_m), abs(beside) + 1.0)
    steps = [np.linspace(-end, end, _VERTICES), beside + np.linspace(-0.5, 0.5, _VERTICES)]
    t = np.unique(np.concatenate(steps))[:, None]
    touch = centre + axis * a_m * np.cosh(t) + across * b_m * np.sinh(t)
    return touch, _unit(axis * a_m * np.sinh(t) + across * b_m * np.cosh(t))


def _branch(focus: Circle, against: Circle, lead_m: float, anchor: Point, far_m: float) -> Floats:
    """Return a polygon within {p : |p focus| + lead <= |p against|}, a convex set, out to `far_m`."""
    touch, _ = _hyperbola(focus, against, lead_m, anchor, far_m)
    away = _away(focus, against, far_m)
    inward = away * (1.0 - _INWARD)
    return np.concatenate([touch, [touch[-1] + away, touch[0] + away]]) + inward


def _around_branch(focus: Circle, against: Circle, lead_m: float, anchor: Point, far_m: float) -> Floats:
    """Return a polygon that contains that set; its corners are intersections of the set's tangents."""
    touch, along = _hyperbola(focus, against, lead_m, anchor, far_m)
    corners = [touch[0] - along[0] * far_m]
    between = range(len(touch) - 1)
    corners += [_meet(touch[i], along[i], touch[i + 1], along[i + 1]) for i in between]
    corners.append(touch[-1] + along[-1] * far_m)
    away = _away(focus, against, far_m)
    outward = away * (1.0 - _INWARD)
    return np.array([*corners, corners[-1] + away, corners[0] + away]) - outward


def _away(focus: Circle, against: Circle, far_m: float) -> Floats:
    """Return a long step in the direction in which the set about `focus` is unbounded."""
    axis = np.array([focus.x_m - against.x_m, focus.y_m - against.y_m])
    step: Floats = axis / np.hypot(*axis) * _FAR * far_m
    return step


def _unit(vectors: Floats) -> Floats:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Floats = vectors / np.maximum(lengths, 1e-300)
    return unit


def _meet(first: Floats, along: Floats, second: Floats, beside: Floats) -> Floats:
    """Return the point where two tangents meet, or the midpoint of their points if they are parallel."""
    cross = float(along[0] * beside[1] - along[1] * beside[0])
    if abs(cross) < 1e-9:  # noqa: PLR2004 - an angle too small to divide by
        middle: Floats = (first + second) / 2.0
        return middle
    step = second - first
    share = float(step[0] * beside[1] - step[1] * beside[0]) / cross
    met: Floats = first + along * share
    return met
