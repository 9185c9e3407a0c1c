"""Estimate the number of objects in a box, to choose the first radius of a search.

Operations: O(1) a box, O(1) a new object. No result depends on the estimate.
"""

from __future__ import annotations

import numpy as np

from engine.contracts import Bools
from engine.objects import Objects
from index.batches import Boxes, Floats, ObjectBatch


class Crowds:
    """The box about all objects that ever existed, over which live objects are assumed to be spread.

    Parameters
    ----------
    objects
        The live objects.
    """

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._low_m: Floats = np.full(2, np.inf)
        self._high_m: Floats = np.full(2, -np.inf)

    def came(self, objects: ObjectBatch) -> None:
        """Extend the box by new objects."""
        if len(objects):
            points = np.stack([objects.x_m, objects.y_m])
            self._low_m = np.minimum(self._low_m, points.min(axis=1))
            self._high_m = np.maximum(self._high_m, points.max(axis=1))

    def is_all(self, boxes: Boxes, part: Boxes) -> Bools:
        """Return whether all objects that meet each box have their points near a part of the box.

        Points lie in the box about all objects; and if an area reaches a box, its point is no farther
        from that part of the box than from the box (`Areas.grown`, axis by axis).
        """
        (west_m, south_m), (east_m, north_m) = self._low_m.tolist(), self._high_m.tolist()
        found: Bools = part.x1_m <= np.maximum(boxes.x1_m, west_m)
        found &= part.x2_m >= np.minimum(boxes.x2_m, east_m)
        found &= part.y1_m <= np.maximum(boxes.y1_m, south_m)
        found &= part.y2_m >= np.minimum(boxes.y2_m, north_m)
        return found

    def expected(self, boxes: Boxes) -> Floats:
        """Return the number of objects in each box if they are spread evenly."""
        if not len(self._objects):
            return np.zeros(len(boxes))
        found: Floats = np.full(len(boxes), float(len(self._objects)))
        edges = ((boxes.x1_m, boxes.x2_m), (boxes.y1_m, boxes.y2_m))
        bounds = zip(self._low_m.tolist(), self._high_m.tolist(), strict=True)
        for (low_m, high_m), (least_m, most_m) in zip(edges, bounds, strict=True):
            common_m = np.minimum(high_m, most_m) - np.maximum(low_m, least_m)
            whole_m = most_m - least_m
            share = common_m / whole_m if whole_m > 0.0 else np.where(common_m >= 0.0, 1.0, 0.0)
            found *= np.clip(share, 0.0, 1.0)
        return found

    def half_side_m(self, count: int) -> float:
        """Return half the side of a square that is expected to contain `count` objects."""
        width_m, height_m = (self._high_m - self._low_m).tolist()
        area_m2 = width_m * height_m
        if not len(self._objects) or not area_m2 > 0.0:
            return float(np.inf)
        return float(np.sqrt(area_m2 * count / len(self._objects))) / 2.0
