"""Areas of objects: validated, each with its representative point.

The point is the middle of a rectangle, or `inner_point` of a polygon, in degrees; its place on the plane
follows from the degrees as for every position. Both lie in the area exactly: projection keeps the order
of coordinates, so the middle of a rectangle stays between its sides; and the point of a polygon is tested
after the conversion to degrees and back. If rounding has moved it out of the polygon, a vertex represents
the polygon.
"""

from __future__ import annotations

import numpy as np

from nearcast.checks import check_covered, check_degrees, require
from nearcast.errors import Reason, RefusedError
from nearcast.limits import LAT_MAX_DEG, LON_MAX_DEG
from safe_region.earth.frame import Frame, Point
from safe_region.earth.shapes import Bounds, ObjectArea, Polygon, Position
from safe_region.geometry.areas import AreaShape, plane_area
from safe_region.geometry.polygon_checks import columns_of, contains, inner_point, ring_flaw
from safe_region.geometry.shape_kernels import Floats
from safe_region.geometry.shapes import RectangleShape
from server.limits import Limits


def checked_area(area: ObjectArea, limits: Limits, frame: Frame, field: str) -> Position:
    """Return the representative point of an area, in degrees. O(vertices^2) in a kernel.

    Raises
    ------
    RefusedError
        Naming the flaw of the area.
    """
    if isinstance(area, Bounds):
        _check_bounds(area, frame, f"{field}.rectangle")
        _check_extent(plane_area(area, frame), limits, f"{field}.rectangle")
        lon, lat = (area.lon_min + area.lon_max) / 2.0, (area.lat_min + area.lat_max) / 2.0
        return lon, lat
    return _checked_polygon(area, limits, frame, f"{field}.polygon")


def _check_bounds(bounds: Bounds, frame: Frame, field: str) -> None:
    for axis, most in (("lon", LON_MAX_DEG), ("lat", LAT_MAX_DEG)):
        low, high = getattr(bounds, f"{axis}_min"), getattr(bounds, f"{axis}_max")
        for name, value in ((f"{axis}_min", low), (f"{axis}_max", high)):
            check_degrees(f"{field}.{name}", value, most)
        require(low <= high, f"{field}.{axis}_max", high, f"at least {axis}_min, {low}")
    for corner in ((bounds.lon_min, bounds.lat_min), (bounds.lon_max, bounds.lat_max)):
        check_covered(frame, corner, field)


def _checked_polygon(polygon: Polygon, limits: Limits, frame: Frame, field: str) -> Position:
    count, most = len(polygon.outer), limits.area_vertices_max
    require(count <= most, field, f"{count} vertices", f"at most {most} vertices")
    lon, lat = columns_of(polygon.outer)
    _check_vertices(polygon, lon, lat, frame, field)
    # The same expressions as `Frame.project`.
    x_m, y_m = (lon - frame.lon0_deg) * frame.x_m_per_deg, (lat - frame.lat0_deg) * frame.y_m_per_deg
    flaw = ring_flaw(x_m, y_m, np.array([0, count], dtype=np.int64))
    if flaw is not None:
        limit = "a simple polygon without holes; its ring closes by itself"
        raise RefusedError(Reason.INVALID_FIELD, field, f"a polygon whose {flaw}", limit)
    box = (float(edge) for edge in (x_m.min(), y_m.min(), x_m.max(), y_m.max()))
    _check_extent(RectangleShape(*box), limits, field)
    position = frame.unproject(*inner_point(x_m, y_m))
    if frame.covers(*position) and contains(x_m, y_m, Point(*frame.project(*position))):
        return position
    return polygon.outer[0]


def _check_vertices(polygon: Polygon, lon: Floats, lat: Floats, frame: Frame, field: str) -> None:
    """Require corners on Earth, in the service area; name the first that is not."""
    area = frame.area
    is_right = (area.lon_min <= lon) & (lon <= area.lon_max)
    is_right &= (area.lat_min <= lat) & (lat <= area.lat_max)
    for i in np.flatnonzero(~is_right).tolist():
        name, position = f"{field}.vertices[{i}]", polygon.outer[i]
        check_degrees(f"{name}.lon", position[0], LON_MAX_DEG)
        check_degrees(f"{name}.lat", position[1], LAT_MAX_DEG)
        check_covered(frame, position, name)


def _check_extent(shape: AreaShape, limits: Limits, field: str) -> None:
    box, most_m = shape.box(), 2.0 * limits.range_m_max
    for name, extent_m in (("width", box.x2_m - box.x1_m), ("height", box.y2_m - box.y1_m)):
        require(extent_m <= most_m, field, f"a {name} of {extent_m} m", f"a {name} of at most {most_m} m")
