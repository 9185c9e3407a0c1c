"""Areas of objects as arrays for the engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from engine.polygons import Rings
from index.batches import Boxes, ObjectBatch
from safe_region.earth.frame import Frame
from safe_region.earth.shapes import ObjectArea
from safe_region.geometry.areas import plane_area
from safe_region.geometry.shapes import PolygonShape


def with_areas(
    objects: ObjectBatch, areas: Mapping[int, ObjectArea], frame: Frame
) -> tuple[ObjectBatch, Rings | None]:
    """Return a batch with the boxes of its objects, and the rings of polygons among them.

    Parameters
    ----------
    objects
        Points.
    areas
        Areas by row of the batch, for objects that have one.
    frame
        The service area.
    """
    if not areas:
        return objects, None
    columns = [objects.x_m.copy(), objects.y_m.copy(), objects.x_m.copy(), objects.y_m.copy()]
    counts = np.zeros(len(objects), dtype=np.int64)
    rings: list[tuple[tuple[float, float], ...]] = []
    for row in sorted(areas):
        shape = plane_area(areas[row], frame)
        box = shape.box()
        for column, value in zip(columns, (box.x1_m, box.y1_m, box.x2_m, box.y2_m), strict=True):
            column[row] = value
        if isinstance(shape, PolygonShape):
            counts[row] = 1
            rings += shape.rings
    points = np.array([vertex for ring in rings for vertex in ring], dtype=np.float64).reshape(-1, 2)
    x_m, y_m = np.ascontiguousarray(points.T)
    packed = Rings(
        np.append(0, np.cumsum(counts)), np.cumsum([0, *map(len, rings)], dtype=np.int64), x_m, y_m
    )
    return replace(objects, boxes=Boxes(*columns)), packed
