"""Places that are areas with parts or holes: computes a point inside."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import shapely

_CORNERS_MIN = 2
"""A piece of an outline has at least two nodes."""

Floats = npt.NDArray[np.float64]


def point_inside(outer: Sequence[Floats], inner: Sequence[Floats]) -> tuple[float, float] | None:
    """Return a point in the largest part of an area; None if its pieces do not close.

    Parameters
    ----------
    outer, inner
        Pieces of the outlines of its parts and of its holes, in any order and direction: corners, shape
        (n, 2). Pieces that meet at their ends are joined.
    """
    parts = _rings(outer)
    if not len(parts):
        return None
    holes = _rings(inner)
    whole = shapely.union_all(parts)
    if len(holes):
        whole = shapely.difference(whole, shapely.union_all(holes))
    polygons = shapely.get_parts(whole)
    areas = shapely.area(polygons)
    if not len(polygons) or not areas.max() > 0.0:
        return None
    inside = shapely.point_on_surface(polygons[int(np.argmax(areas))])
    return float(shapely.get_x(inside)), float(shapely.get_y(inside))


def _rings(pieces: Sequence[Floats]) -> npt.NDArray[np.object_]:
    """Return the polygons that pieces of outlines close."""
    lines: list[shapely.Geometry | None] = [
        shapely.LineString(piece) for piece in pieces if len(piece) >= _CORNERS_MIN
    ]
    found: npt.NDArray[np.object_] = shapely.get_parts(shapely.polygonize(lines))
    return shapely.make_valid(found)
