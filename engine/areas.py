"""Hold areas of objects: rectangles and polygons without holes, beside the rows of objects that have one.

An object with an area has its point inside the area. The object index has the points of all objects.
Those with areas are in a second index as well, also by their points. A search of it extends farther out:
by the largest reach of an area from its point. After removals this is computed anew, once as many areas
are gone as the table has rows.

Operations (per object that has an area, beyond the index): insert and remove O(vertices) amortised.
Objects that are points take four bytes each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.layout import AREA_DTYPE, POINT
from engine.polygons import Polygons, RingPool, Rings
from index.batches import Boxes, Floats, Ints, KeywordLists, ObjectBatch
from index.contracts import InconsistentIndexError, ObjectIndex
from index.tables import SlotTable
from index.tables.growth import longer
from index.tables.slots import Slots


class AreaArrays(NamedTuple):
    """The arrays of areas that kernels read."""

    of_object: Slots
    """By slot of the object: one more than the row of its area, or POINT."""
    rows: npt.NDArray[np.void]
    rings: RingPool


class Areas:
    """Areas of live objects.

    Parameters
    ----------
    index
        The index of the objects that have one.
    objects
        The table of all live objects.
    """

    def __init__(self, index: ObjectIndex, objects: SlotTable) -> None:
        self.index = index
        self._objects = objects
        self._table = SlotTable(AREA_DTYPE)
        self._polygons = Polygons()
        self._of_object: Slots = np.zeros(16, dtype=np.int32)
        self._beyond_m = np.zeros(4)
        """The farthest reach of areas from their points, or more: west, south, east, north."""
        self._gone_count = 0
        """Areas that were removed since this was computed."""

    def __len__(self) -> int:
        return len(self._table)

    @property
    def arrays(self) -> AreaArrays:
        """Return the arrays that kernels read."""
        return AreaArrays(self._of_object, self._table.rows, self._polygons.pool)

    def insert(self, objects: ObjectBatch, slots: Slots, rings: Rings | None) -> None:
        """Add the areas of new objects; `rings` has a row for each object."""
        if len(slots):
            self._of_object = longer(self._of_object, int(slots.max()) + 1)
        which = _with_area(objects)
        if not len(which):
            return
        keywords = KeywordLists.of([objects.keywords.row(i) for i in which.tolist()])
        boxes = objects.extents().part(which)
        part = ObjectBatch(objects.ids[which], objects.x_m[which], objects.y_m[which], keywords)
        rings = _rings_of(rings, which)
        areas = self._table.append(
            part.ids,
            keywords,
            {
                "x1_m": boxes.x1_m,
                "y1_m": boxes.y1_m,
                "x2_m": boxes.x2_m,
                "y2_m": boxes.y2_m,
                "ring_start": self._polygons.append(rings),
                "ring_count": np.diff(rings.offsets),
            },
        )
        self._of_object[slots[which]] = areas + 1
        self._beyond_m = np.maximum(self._beyond_m, boxes.reach_m(part.x_m, part.y_m))
        self.index.insert(part)

    def remove(self, ids: Ints, slots: Slots) -> None:
        """Remove the areas of objects; `slots` are those that the objects had."""
        has_area = self._of_object[slots] != POINT
        if not has_area.any():
            return
        self._of_object[slots[has_area]] = POINT
        rows = self._table.rows
        areas = self._table.remove(ids[has_area])
        self.index.remove(ids[has_area])
        self._polygons.discard(int(rows["ring_count"][areas].sum()))
        if self._polygons.is_wasteful:
            used = self._table.used()
            columns = (rows[name][used].astype(np.int64) for name in ("ring_start", "ring_count"))
            rows["ring_start"][used] = self._polygons.pack(*columns)
        self._gone_count += len(areas)
        if not len(self) or self._gone_count >= self._table.end:
            self._beyond_m, self._gone_count = self._reach_m(), 0

    def _reach_m(self) -> Floats:
        """Return the farthest reach of the areas in the table. O(rows)."""
        rows, used = self._table.rows, self._table.used()
        items = self._objects.rows[self._objects.slots(rows["id"][used])]
        boxes = Boxes(*(rows[name][used] for name in ("x1_m", "y1_m", "x2_m", "y2_m")))
        return boxes.reach_m(items["x_m"], items["y_m"])

    def are_points(self, slots: Slots) -> npt.NDArray[np.bool_]:
        """Return whether each object has no area."""
        found: npt.NDArray[np.bool_] = self._of_object[slots] == POINT
        return found

    def boxes(self, slots: Slots, x_m: Floats, y_m: Floats) -> Boxes | None:
        """Return the boxes about objects with these points; None if all of them are points."""
        areas = self._of_object[slots]
        has_area = areas != POINT
        if not has_area.any():
            return None
        columns = [x_m.copy(), y_m.copy(), x_m.copy(), y_m.copy()]
        for column, name in zip(columns, ("x1_m", "y1_m", "x2_m", "y2_m"), strict=True):
            column[has_area] = self._table.rows[name][areas[has_area] - 1]
        return Boxes(*columns)

    def grown(self, boxes: Boxes) -> Boxes:
        """Return boxes that contain the points of all areas that meet the given boxes.

        Let b be the exact distance by which an area reaches west of its point p, and B, as kept, no less.
        If the area meets the box, p - b <= x2, so p <= x2 + B, which is below the float64 after x2 + B as
        computed. The same holds on the other sides.
        """
        west_m, south_m, east_m, north_m = self._beyond_m.tolist()
        return Boxes(
            np.nextafter(boxes.x1_m - east_m, -np.inf),
            np.nextafter(boxes.y1_m - north_m, -np.inf),
            np.nextafter(boxes.x2_m + west_m, np.inf),
            np.nextafter(boxes.y2_m + south_m, np.inf),
        )

    def memory_bytes(self) -> int:
        """Return the size of all arrays, including the index."""
        parts = (self._table, self._polygons, self.index)
        return self._of_object.nbytes + sum(part.memory_bytes() for part in parts)

    def check(self) -> None:
        """Verify that areas are those of live objects.

        Raises
        ------
        InconsistentIndexError
            Names the invariant that does not hold.
        """
        self._table.check()
        self.index.check()
        used = self._objects.used()
        slots = used[~self.are_points(used)]
        if len(slots) != len(self) or len(self.index) != len(self):
            raise InconsistentIndexError("areas without objects, or objects without areas")
        if np.count_nonzero(self._of_object) != len(slots):
            raise InconsistentIndexError("a free slot has an area")
        rows = self._table.rows[self._of_object[slots] - 1]
        items = self._objects.rows[slots]
        if (rows["id"] != items["id"]).any():
            raise InconsistentIndexError("an object has the area of another object")
        reach_m = (
            items["x_m"] - rows["x1_m"],
            items["y_m"] - rows["y1_m"],
            rows["x2_m"] - items["x_m"],
            rows["y2_m"] - items["y_m"],
        )
        for found, most in zip(reach_m, self._beyond_m.tolist(), strict=True):
            if (found < 0.0).any() or (found > most).any():
                raise InconsistentIndexError(
                    "an area extends beyond the search radius, or does not contain its point"
                )


def _with_area(objects: ObjectBatch) -> Ints:
    """Return the rows of objects that are not just points: a rectangle may be a point."""
    boxes = objects.boxes
    if boxes is None:
        return np.empty(0, dtype=np.int64)
    is_wide = (boxes.x1_m != boxes.x2_m) | (boxes.y1_m != boxes.y2_m)
    return np.flatnonzero(is_wide)


def _rings_of(rings: Rings | None, which: Ints) -> Rings:
    """Return the rings of some rows, each of which has at most one."""
    if rings is None:
        none: Ints = np.zeros(len(which) + 1, dtype=np.int64)
        return Rings(none, none[:1], np.empty(0), np.empty(0))
    counts = np.diff(rings.offsets)[which]
    first = rings.offsets[which[counts > 0]]
    vertices = [np.arange(rings.vertex_offsets[i], rings.vertex_offsets[i + 1]) for i in first.tolist()]
    flat = np.concatenate([*vertices, np.empty(0, dtype=np.int64)]).astype(np.int64)
    return Rings(
        np.cumsum([0, *counts.tolist()], dtype=np.int64),
        np.cumsum([0, *map(len, vertices)], dtype=np.int64),
        rings.x_m[flat],
        rings.y_m[flat],
    )
