"""Describe the flaw of a polygon by kernels; `polygon_validity` does the same in plain Python."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from safe_region.earth.frame import Point
from safe_region.geometry import validity_kernels as kernels
from safe_region.geometry.exact_geometry import COORDINATE_M_MAX, Ring
from safe_region.geometry.shape_kernels import Floats, Ints

_VERBS = {kernels.MEET: "meet", kernels.OVERLAP: "overlap", kernels.CROSS: "cross"}


def polygon_flaw(rings: Sequence[Ring]) -> str | None:
    """Return a description of a polygon's flaw; None if it is valid.

    Coordinates below 1e-200 in magnitude are treated as 0. O(n^2) in a kernel.

    Parameters
    ----------
    rings
        The outer ring, then holes, as vertices of which the first is not repeated. In any unit; the
        description of a vertex that is too far away calls it a metre.
    """
    if not rings:
        return "a polygon needs an outer ring"
    offsets = np.cumsum([0, *map(len, rings)], dtype=np.int64)
    return ring_flaw(*columns_of(list(chain.from_iterable(rings))), offsets)


def ring_flaw(x: Floats, y: Floats, offsets: Ints) -> str | None:
    """Return the same for vertices in columns."""
    places = np.zeros(4, dtype=np.int64)
    found = kernels.find_flaw(x, y, offsets, places)
    return None if found == kernels.VALID else _in_words(found, *places.tolist())


def columns_of(ring: Ring) -> tuple[Floats, Floats]:
    """Return vertices in columns."""
    flat = np.fromiter(chain.from_iterable(ring), dtype=np.float64, count=2 * len(ring))
    return flat[::2].copy(), flat[1::2].copy()


def inner_point(x_m: Floats, y_m: Floats) -> Point:
    """Return the point that `shapes.inner_point` returns. O(n log n) in a kernel."""
    found = np.empty(2)
    if kernels.inner_point(x_m, y_m, found):
        return Point(*found.tolist())
    return Point(float(x_m[0]), float(y_m[0]))


def contains(x_m: Floats, y_m: Floats, point: Point) -> bool:
    """Return whether a point lies in a polygon without holes, exactly. O(n) in a kernel."""
    return bool(kernels.contains(x_m, y_m, *point))


def _in_words(found: int, ring: int, place: int, other: int, other_place: int) -> str:
    words = {
        kernels.FEW: f"ring {ring} has {place} vertices instead of 3 or more",
        kernels.NOT_FINITE: f"vertex {place} of ring {ring} is not finite",
        kernels.FAR: f"vertex {place} of ring {ring} has a coordinate beyond {COORDINATE_M_MAX:g} m",
        kernels.EQUAL: f"vertices {place} and {other_place} of ring {ring} are equal",
        kernels.STRAIGHT: f"ring {ring} has no area",
        kernels.NOT_WITHIN: f"ring {ring}, a hole, is not within the outer ring",
        kernels.HOLES_OVERLAP: f"rings {ring} and {other}, both holes, overlap",
    }
    if found in words:
        return words[found]
    if ring == other:
        return f"edges {place} and {other_place} of ring {ring} {_VERBS[found]}"
    return f"edge {place} of ring {ring} and edge {other_place} of ring {other} {_VERBS[found]}"
