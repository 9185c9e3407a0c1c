"""Outlines of sea and lakes, for pictures.

OpenStreetMap draws coasts as lines with the land on their left. Together with the frame of the
picture they divide it into faces; a face to the right of its coasts is sea. If coasts end within the
picture, as at the border of an extract, a face can be on both sides: it counts as land. Lakes are closed
ways; those that consist of several ways (multipolygons) are left out.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import shapely

from safe_region.earth.frame import Frame
from simulator.maps.osm import Records
from simulator.terrain import Ring

_TOLERANCE_M = 5.0
"""The tolerance by which outlines are simplified: they are in a file that people read."""

_LAKE_M2_MIN = 4_000.0
_SIDE_M = 0.5
"""The distance from a coast at which its sides are looked up."""

_SEA_SHARE = 0.9
"""A face is sea if it is to the right of at least this fraction of the coasts around it."""

_WIDER = 1.1
"""The picture is a square about the area, and a little larger."""

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]
Polygons = npt.NDArray[np.object_]


def water(records: Records, frame: Frame) -> list[Ring]:
    """Return rings of (lon, lat) without holes: the water of a square about the area."""
    side_m = _WIDER * max(
        (frame.area.lon_max - frame.area.lon_min) * frame.x_m_per_deg,
        (frame.area.lat_max - frame.area.lat_min) * frame.y_m_per_deg,
    )
    window = shapely.box(-side_m / 2.0, -side_m / 2.0, side_m / 2.0, side_m / 2.0)
    coasts = [_course(records, refs, frame) for refs in records.coasts]
    lakes = [_course(records, refs, frame) for refs in records.lakes]
    found = [*_sea([one for one in coasts if len(one) > 1], window), *_lakes(lakes, window)]
    rings = []
    for polygon in found:
        for piece in _without_holes(polygon):
            corners = shapely.get_coordinates(piece.exterior)
            rings.append([_rounded(frame.unproject(float(x), float(y))) for x, y in corners])
    return rings


def _course(records: Records, refs: Longs, frame: Frame) -> Floats:
    """Return the known corners of a way on the plane, shape (n, 2)."""
    nodes, is_known = records.known(refs)
    nodes = nodes[is_known]
    xs_m = (records.lons[nodes] - frame.lon0_deg) * frame.x_m_per_deg
    ys_m = (records.lats[nodes] - frame.lat0_deg) * frame.y_m_per_deg
    return np.column_stack([xs_m, ys_m])


def _sea(coasts: list[Floats], window: shapely.Polygon) -> list[shapely.Polygon]:
    """Return the faces of the window that are sea."""
    lines = [shapely.LineString(one) for one in coasts]
    cut = shapely.unary_union([window.exterior, *(shapely.intersection(lines, window))])
    faces = shapely.get_parts(shapely.polygonize(shapely.get_parts(cut)))
    if not lines or not len(faces):
        return []
    middles, rightwards, lengths_m = _segments(coasts, window)
    tree = shapely.STRtree(faces)
    metres = []
    for side_m in (_SIDE_M, -_SIDE_M):
        spots = np.asarray(shapely.points(middles + side_m * rightwards))
        spot, face = tree.query(spots, predicate="within")
        metres.append(np.bincount(face, lengths_m[spot], len(faces)))
    wet_m, dry_m = metres
    is_sea = wet_m > _SEA_SHARE * (wet_m + dry_m)
    return [_simple(one) for one in faces[is_sea]]


def _segments(coasts: list[Floats], window: shapely.Polygon) -> tuple[Floats, Floats, Floats]:
    """Return middle, direction to the right and length of each straight piece within the window."""
    ends = np.concatenate([np.stack([one[:-1], one[1:]], axis=1) for one in coasts])
    inside = np.asarray(shapely.intersection(np.asarray(shapely.linestrings(ends)), window))
    lengths_m = np.asarray(shapely.length(inside))
    kept = lengths_m > 2.0 * _SIDE_M
    middles = shapely.line_interpolate_point(inside[kept], 0.5, normalized=True)
    along = ends[kept, 1] - ends[kept, 0]
    along /= np.sqrt((along * along).sum(axis=1))[:, np.newaxis]
    rightwards = np.column_stack([along[:, 1], -along[:, 0]])
    return shapely.get_coordinates(middles), rightwards, lengths_m[kept]


def _lakes(courses: list[Floats], window: shapely.Polygon) -> list[shapely.Polygon]:
    found = []
    for course in courses:
        if len(course) > 2:  # noqa: PLR2004 a triangle
            lake = shapely.intersection(shapely.make_valid(shapely.Polygon(course)), window)
            parts = shapely.get_parts(lake)
            found += [one for one in parts if one.geom_type == "Polygon" and one.area >= _LAKE_M2_MIN]
    return [_simple(one) for one in found]


def _simple(polygon: shapely.Polygon) -> shapely.Polygon:
    simple = shapely.simplify(polygon, _TOLERANCE_M, preserve_topology=True)
    return shapely.Polygon(
        simple.exterior, [hole for hole in simple.interiors if shapely.Polygon(hole).area > _LAKE_M2_MIN]
    )


def _without_holes(polygon: shapely.Polygon) -> list[shapely.Polygon]:
    """Cut a polygon through its holes until there are none: islands must not be drawn as water."""
    if not polygon.interiors:
        return [polygon]
    x0, y0, x1, y1 = polygon.bounds
    hole = polygon.interiors[0].bounds
    middle = (hole[0] + hole[2]) / 2.0
    halves = [shapely.box(x0, y0, middle, y1), shapely.box(middle, y0, x1, y1)]
    found = []
    for half in halves:
        parts = shapely.get_parts(shapely.intersection(polygon, half))
        for part in parts:
            if part.geom_type == "Polygon":
                found += _without_holes(part)
    return found


def _rounded(position: tuple[float, float]) -> tuple[float, float]:
    lon, lat = position
    return round(lon, 6), round(lat, 6)
