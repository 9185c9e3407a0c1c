"""Test exactly whether segments and rectangles on the plane meet, and measure distances to them.

Segments and rectangles are closed sets. A segment may be a point, and so may a rectangle, for which x1 <=
x2 and y1 <= y2.
"""

from __future__ import annotations

import math

from safe_region.geometry.orientation_kernels import orientation
from safe_region.jit import leaf


@leaf
def boxes_meet(
    x1_m: float,
    y1_m: float,
    x2_m: float,
    y2_m: float,
    other_x1_m: float,
    other_y1_m: float,
    other_x2_m: float,
    other_y2_m: float,
) -> bool:
    """Return whether two rectangles have a point in common. Either may be a point. O(1)."""
    return x1_m <= other_x2_m and other_x1_m <= x2_m and y1_m <= other_y2_m and other_y1_m <= y2_m


@leaf
def segments_meet(
    ax_m: float,
    ay_m: float,
    bx_m: float,
    by_m: float,
    cx_m: float,
    cy_m: float,
    dx_m: float,
    dy_m: float,
) -> bool:
    """Return whether the segments ab and cd have a point in common; either may be a point. O(1)."""
    if not boxes_meet(
        min(ax_m, bx_m),
        min(ay_m, by_m),
        max(ax_m, bx_m),
        max(ay_m, by_m),
        min(cx_m, dx_m),
        min(cy_m, dy_m),
        max(cx_m, dx_m),
        max(cy_m, dy_m),
    ):
        return False
    # Each segment must touch or cross the line of the other. The boxes decide for segments on one line.
    c_side = orientation(ax_m, ay_m, bx_m, by_m, cx_m, cy_m)
    if c_side * orientation(ax_m, ay_m, bx_m, by_m, dx_m, dy_m) > 0:
        return False
    a_side = orientation(cx_m, cy_m, dx_m, dy_m, ax_m, ay_m)
    return a_side * orientation(cx_m, cy_m, dx_m, dy_m, bx_m, by_m) <= 0


@leaf
def segment_meets_box(
    ax_m: float,
    ay_m: float,
    bx_m: float,
    by_m: float,
    x1_m: float,
    y1_m: float,
    x2_m: float,
    y2_m: float,
) -> bool:
    """Return whether the segment ab has a point in common with a rectangle. O(1)."""
    if not boxes_meet(
        min(ax_m, bx_m), min(ay_m, by_m), max(ax_m, bx_m), max(ay_m, by_m), x1_m, y1_m, x2_m, y2_m
    ):
        return False
    # Disjoint convex sets are separated by a line along a side of one of them. Only the line of the
    # segment is left. It separates them if the two corners farthest across it are on one side.
    if (ax_m < bx_m) == (ay_m < by_m):
        left = orientation(ax_m, ay_m, bx_m, by_m, x1_m, y2_m)
        return left * orientation(ax_m, ay_m, bx_m, by_m, x2_m, y1_m) <= 0
    left = orientation(ax_m, ay_m, bx_m, by_m, x1_m, y1_m)
    return left * orientation(ax_m, ay_m, bx_m, by_m, x2_m, y2_m) <= 0


@leaf
def segment_distance(x_m: float, y_m: float, ax_m: float, ay_m: float, bx_m: float, by_m: float) -> float:
    """Return the distance in metres from a point to the rounded nearest point of the segment ab. O(1).

    If an end is nearest, that point is the end; otherwise it is a few units in the last place of the
    coordinates away from the true nearest point. It is within the box about the segment: a share below 1
    is at most 1 - 2**-53, so its product with a rounded difference is at most the float64 before that,
    which is at most the exact difference; and the sum is rounded to no more than the other end.
    """
    along_x = bx_m - ax_m
    along_y = by_m - ay_m
    square = along_x * along_x + along_y * along_y
    share = 0.0
    if square > 0.0:
        share = ((x_m - ax_m) * along_x + (y_m - ay_m) * along_y) / square
    nearest_x = ax_m
    nearest_y = ay_m
    if share >= 1.0:
        nearest_x = bx_m
        nearest_y = by_m
    elif share > 0.0:
        nearest_x = ax_m + share * along_x
        nearest_y = ay_m + share * along_y
    dx = x_m - nearest_x
    dy = y_m - nearest_y
    return math.sqrt(dx * dx + dy * dy)


@leaf
def box_distance(x_m: float, y_m: float, x1_m: float, y1_m: float, x2_m: float, y2_m: float) -> float:
    """Return the distance from a point to a rectangle, metres; 0 within it. O(1)."""
    dx = max(x1_m - x_m, x_m - x2_m, 0.0)
    dy = max(y1_m - y_m, y_m - y2_m, 0.0)
    return math.sqrt(dx * dx + dy * dy)
