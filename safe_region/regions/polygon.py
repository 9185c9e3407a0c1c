"""Draw the anchored region as a polygon, for pictures.

For an object o of the buffer, the points p with |p o| + r(o) + |a p| < reach form an ellipse with foci a
and o, whose boundary seen from a is rho(theta) = (l^2 - d^2) / (2 (l - d cos(theta - phi))) with
l = reach - r(o), d = |a o| and phi the direction of o. The region requires k such objects, so its
boundary is the k-th largest of these radii: it is star-shaped about a, and no intersection has to be
computed. The reach is reduced as in the device's test, so an ellipse that is no more than a line counts
as empty.
"""

from __future__ import annotations

import math

from shapely import Polygon

from safe_region.regions.anchored import AnchoredRegion
from safe_region.scoring.formulas import REACH_SLACK

_VERTICES = 180


def boundary(region: AnchoredRegion, now_ms: int, vertex_count: int = _VERTICES) -> Polygon | None:
    """Return the region in plane metres; None if it is the whole plane.

    The polygon is inscribed (vertices lie on the boundary), so it may be drawn but not used for tests. It
    is empty if the buffer holds fewer than k live objects. O(vertices * buffer log buffer).
    """
    if math.isinf(region.reach_m):
        return None
    live = [entry for entry in region.buffer.values() if entry.expiry_ms > now_ms]
    if len(live) < region.k:
        return Polygon()
    reach_m = region.reach_m * (1.0 - REACH_SLACK)
    ellipses = []
    for entry in live:
        dx = entry.x_m - region.anchor.x_m
        dy = entry.y_m - region.anchor.y_m
        ellipses.append((reach_m - entry.r_m, math.hypot(dx, dy), math.atan2(dy, dx)))
    ring = []
    for step in range(vertex_count):
        theta = 2.0 * math.pi * step / vertex_count
        radii = sorted((_radius(*ellipse, theta) for ellipse in ellipses), reverse=True)
        radius = radii[region.k - 1]
        ring.append(
            (
                region.anchor.x_m + radius * math.cos(theta),
                region.anchor.y_m + radius * math.sin(theta),
            )
        )
    return Polygon(ring)


def _radius(major_m: float, focus_m: float, phi: float, theta: float) -> float:
    if major_m <= focus_m:
        return 0.0
    return (major_m * major_m - focus_m * focus_m) / (2.0 * (major_m - focus_m * math.cos(theta - phi)))
