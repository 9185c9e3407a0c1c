"""Enclose the approximate safe region of Lamps by a centre and a radius.

R = {p : |p o| + r(o) + |a p| <= gamma for each result o}: an intersection of ellipses that share the
focus a. Seen from a in the direction u, the boundary of the ellipse of o is at

    rho_o(u) = (l^2 - d^2) / (2 (l - (o - a) . u)),     l = gamma - r(o), d = |a o|

and the boundary of R is at the least of these. R is star-shaped about a, so no polygons have to be
intersected. `anchored.AnchoredRegion` with a buffer of k tests exactly where a device may be. This module
computes values for the subscription index: the approximate centroid, and an upper bound on the distance
of R's points from it.

The bound: between two neighbouring directions rho_o is at most the larger of its values at the two, or
its maximum (l + d) / 2 if o lies between them. So R lies within the sector of the least of these bounds,
and the sector lies within the triangle fan of its corners pushed outwards.

Cost: O(DIRECTIONS * k). Source: lamps.txt section 2.2 (ASR), definition 6 (dist_f). No polygon is
inscribed.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from safe_region.jit import leaf

Floats = npt.NDArray[np.float64]

DIRECTIONS = 24
"""More directions give a tighter bound. With 24 it is within a few per cent on streets of Malta's
size."""

_ANGLES = 2.0 * np.pi * np.arange(DIRECTIONS + 1) / DIRECTIONS
_U_X = np.cos(_ANGLES)
_U_Y = np.sin(_ANGLES)
_MID_X = np.cos(_ANGLES + np.pi / DIRECTIONS)
_MID_Y = np.sin(_ANGLES + np.pi / DIRECTIONS)
_CIRCUMSCRIBED = 1.0 / math.cos(math.pi / DIRECTIONS)
_OUTWARD = 1.0 + 1e-9


@leaf
def _radius(reach_m: float, square: float, along_m: float) -> float:
    """Return the radius of an object's ellipse in a direction; the object lies `along_m` ahead in it."""
    largest = (reach_m + math.sqrt(square)) / 2.0
    if along_m >= reach_m:
        return largest  # only by rounding: a needle that points at the object
    return min(largest, (reach_m * reach_m - square) / (2.0 * (reach_m - along_m)))


@leaf
def _least_radius(gamma_m: float, dx_m: Floats, dy_m: Floats, r_m: Floats, i: int) -> float:
    """Return the radius of R in direction i."""
    least = np.inf
    for j in range(dx_m.shape[0]):
        reach = gamma_m - r_m[j]
        square = dx_m[j] * dx_m[j] + dy_m[j] * dy_m[j]
        if reach * reach <= square:
            return 0.0
        along = dx_m[j] * _U_X[i] + dy_m[j] * _U_Y[i]
        least = min(least, _radius(reach, square, along))
    return least


@leaf
def _sector_bound(gamma_m: float, dx_m: Floats, dy_m: Floats, r_m: Floats, i: int) -> float:
    """Return an upper bound on the radius of R in any direction between i and i + 1."""
    least = np.inf
    for j in range(dx_m.shape[0]):
        reach = gamma_m - r_m[j]
        square = dx_m[j] * dx_m[j] + dy_m[j] * dy_m[j]
        if reach * reach <= square:
            return 0.0
        first = dx_m[j] * _U_X[i] + dy_m[j] * _U_Y[i]
        second = dx_m[j] * _U_X[i + 1] + dy_m[j] * _U_Y[i + 1]
        largest = _radius(reach, square, max(first, second))
        # The direction nearest to o is within the sector if o lies on the inner side of both its edges.
        left = _U_X[i] * dy_m[j] - _U_Y[i] * dx_m[j]
        right = dx_m[j] * _U_Y[i + 1] - dy_m[j] * _U_X[i + 1]
        if left >= 0.0 and right >= 0.0:
            largest = (reach + math.sqrt(square)) / 2.0
        least = min(least, largest)
    return least


@leaf
def enclose(gamma_m: float, dx_m: Floats, dy_m: Floats, r_m: Floats) -> tuple[float, float, float]:
    """Return a disc that contains R: its centre, relative to the anchor, and its radius, in metres.

    Parameters
    ----------
    gamma_m
        Finite: the length at the anchor of the best object that is not in the result.
    dx_m, dy_m, r_m
        The results: offsets from the anchor and constant parts of their lengths, metres. At least one.
    """
    twice_area = 0.0
    center_x = 0.0
    center_y = 0.0
    wedge = _U_X[0] * _U_Y[1] - _U_Y[0] * _U_X[1]
    radius = _least_radius(gamma_m, dx_m, dy_m, r_m, 0)
    first = radius
    for i in range(DIRECTIONS):
        following = first
        if i + 1 < DIRECTIONS:
            following = _least_radius(gamma_m, dx_m, dy_m, r_m, i + 1)
        area = radius * following * wedge
        twice_area += area
        center_x += area * (radius * _U_X[i] + following * _U_X[i + 1]) / 3.0
        center_y += area * (radius * _U_Y[i] + following * _U_Y[i + 1]) / 3.0
        radius = following
    if twice_area > 0.0:
        center_x /= twice_area
        center_y /= twice_area
    farthest = center_x * center_x + center_y * center_y  # the anchor itself
    for i in range(DIRECTIONS):
        bound = _sector_bound(gamma_m, dx_m, dy_m, r_m, i)
        farthest = max(farthest, _square(bound * _U_X[i] - center_x, bound * _U_Y[i] - center_y))
        farthest = max(farthest, _square(bound * _U_X[i + 1] - center_x, bound * _U_Y[i + 1] - center_y))
        corner = bound * _CIRCUMSCRIBED
        farthest = max(farthest, _square(corner * _MID_X[i] - center_x, corner * _MID_Y[i] - center_y))
    return center_x, center_y, math.sqrt(farthest) * _OUTWARD


@leaf
def _square(x_m: float, y_m: float) -> float:
    return x_m * x_m + y_m * y_m
