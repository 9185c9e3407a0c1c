"""Tables of objects that expire: the live ones, and slots that are freed gradually.

Operations: admit and take O(1) an object amortised, pass time O(1), forget O(rows examined).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from index.batches import Boxes, Ints, KeywordLists, Matches, ObjectBatch
from index.tables.slots import Slots, SlotTable

LIVE_OBJECT_FIELDS = [
    ("id", np.int64),
    ("x_m", np.float64),
    ("y_m", np.float64),
    ("x1_m", np.float64),  # the closed box: the point, if it has no area
    ("y1_m", np.float64),
    ("x2_m", np.float64),
    ("y2_m", np.float64),
    ("expiry_ms", np.int64),  # alive before this time
    ("keyword_start", np.int64),  # first keyword id in the pool
    ("keyword_count", np.int32),
]
"""The least set of fields of such a table."""

_BEGINNING = np.iinfo(np.int64).min
_FORGOTTEN_LEAST = 1_024
_FORGOTTEN_SHARE = 8
"""`due` examines _FORGOTTEN_LEAST rows in a call, plus one for every _FORGOTTEN_SHARE in the table."""


class LiveObjects:
    """Objects, the time, and the objects that are alive at this time.

    Parameters
    ----------
    dtype
        Of a row: `LIVE_OBJECT_FIELDS`, and the fields that the caller adds.
    """

    def __init__(self, dtype: np.dtype[np.void]) -> None:
        self.table = SlotTable(dtype)
        self.now_ms = _BEGINNING
        self._cursor = 0

    def __len__(self) -> int:
        """Return the number of live objects. O(objects)."""
        rows = self.table.rows[: self.table.end]
        return int(np.count_nonzero((rows["keyword_count"] > 0) & (rows["expiry_ms"] > self.now_ms)))

    def pass_time(self, now_ms: int) -> None:
        """Set the time.

        Raises
        ------
        ValueError
            If a later time was set before.
        """
        if now_ms < self.now_ms:
            raise ValueError(f"now_ms is {now_ms}, must be at least {self.now_ms}")
        self.now_ms = now_ms

    def replaced(self, objects: ObjectBatch) -> Ints:
        """Verify objects before they are added; return the ids among them whose objects have expired.

        The caller removes these first.

        Raises
        ------
        KeyError
            If the object of an id is alive, or an id is twice in the batch.
        ValueError
            If an object has no keyword.
        """
        bare = np.flatnonzero(np.diff(objects.keywords.offsets) == 0)
        if len(bare):
            raise ValueError(f"object {objects.ids[bare[0]]} has no keyword, must have at least one")
        once, counts = np.unique(objects.ids, return_counts=True)
        if len(once) < len(objects):
            raise KeyError(f"id {once[counts > 1][0]} is in the batch twice")
        there = objects.ids[self.table.ids.present(objects.ids)]
        is_alive = self._is_alive(self.table.slots(there))
        if is_alive.any():
            raise KeyError(f"id {there[is_alive][0]} is already in the index")
        return there

    def append(self, objects: ObjectBatch, expiry_ms: Ints) -> Slots:
        """Add verified objects; return their slots."""
        extents = objects.extents()
        columns = {
            "x_m": objects.x_m,
            "y_m": objects.y_m,
            "x1_m": extents.x1_m,
            "y1_m": extents.y1_m,
            "x2_m": extents.x2_m,
            "y2_m": extents.y2_m,
            "expiry_ms": expiry_ms,
        }
        return self.table.append(objects.ids, objects.keywords, columns)

    def slots(self, ids: Ints) -> Slots:
        """Return the slots of live objects.

        Raises
        ------
        KeyError
            If no object of an id is alive, or an id is twice in the batch.
        """
        slots = self.table.distinct_slots(ids)
        is_alive = self._is_alive(slots)
        if not is_alive.all():
            raise KeyError(f"id {ids[~is_alive][0]} is not in the index")
        return slots

    def batch(self, slots: Slots) -> ObjectBatch:
        """Return objects as they were published."""
        rows = self.table.rows
        boxes = Boxes(*(rows[name][slots] for name in ("x1_m", "y1_m", "x2_m", "y2_m")))
        is_plain = bool((boxes.x1_m == boxes.x2_m).all() and (boxes.y1_m == boxes.y2_m).all())
        return ObjectBatch(
            rows["id"][slots],
            rows["x_m"][slots],
            rows["y_m"][slots],
            self.keywords(slots),
            None if is_plain else boxes,
        )

    def keywords(self, slots: Slots) -> KeywordLists:
        """Return the keywords of objects."""
        return self.table.keyword_lists(slots)

    def lying_within(self, boxes: Boxes, found: Matches) -> Matches:
        """Return the matches of each row that lie within the row's box."""
        rows = self.table.rows[self.table.slots(found.ids)]
        of = np.repeat(np.arange(len(boxes)), np.diff(found.offsets))
        kept = (
            (rows["x1_m"] >= boxes.x1_m[of])
            & (rows["y1_m"] >= boxes.y1_m[of])
            & (rows["x2_m"] <= boxes.x2_m[of])
            & (rows["y2_m"] <= boxes.y2_m[of])
        )
        return Matches.of(np.bincount(of[kept], minlength=len(boxes)), found.ids[kept])

    def due(self) -> Ints:
        """Examine a part of the table; return the ids there whose objects have expired."""
        count = _FORGOTTEN_LEAST + self.table.end // _FORGOTTEN_SHARE
        begin = self._cursor if self._cursor < self.table.end else 0
        rows = self.table.rows[begin : min(begin + count, self.table.end)]
        self._cursor = begin + len(rows)
        found: Ints = rows["id"][(rows["keyword_count"] > 0) & (rows["expiry_ms"] <= self.now_ms)]
        return found

    def _is_alive(self, slots: Slots) -> npt.NDArray[np.bool_]:
        alive: npt.NDArray[np.bool_] = self.table.rows["expiry_ms"][slots] > self.now_ms
        return alive
