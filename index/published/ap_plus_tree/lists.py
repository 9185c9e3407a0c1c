"""The arrays of the m-lists: their creation and growth."""

from __future__ import annotations

import numpy as np

from index.batches import Floats, Ints
from index.published.ap_plus_tree import layout as L
from index.published.ap_plus_tree.layout import Lists
from index.published.ap_tree import layout as T
from index.published.ap_tree.layout import Numbers, Rows
from index.tables.growth import as_long, longer
from index.tables.live_objects import LiveObjects

_ROOM_MIN = 64
_SURE = 64
"""Entries of stacks beyond the computed number."""


class ListArrays:
    """The arrays of `Lists`.

    Parameters
    ----------
    copies_max
        The number of nodes that store an object before it is pushed no further down.
    fanout
        Maximum number of parts of a node.
    """

    def __init__(self, copies_max: int, fanout: int) -> None:
        self.objects = LiveObjects(L.OBJECT_DTYPE)
        self.state: Ints = np.zeros(L.STATE_SIZE, dtype=np.int64)
        self.state[L.COPIES_MAX] = copies_max
        self.state[L.NOW_MS] = self.objects.now_ms
        self._fanout = fanout
        self._heads: Numbers = np.zeros(_ROOM_MIN, dtype=np.int32)
        self._counts: Numbers = np.zeros(_ROOM_MIN, dtype=np.int32)
        self._items: Rows = np.zeros(_ROOM_MIN * L.CHUNK_LENGTH, dtype=L.ITEM_DTYPE)
        self._links: Numbers = np.zeros(_ROOM_MIN, dtype=np.int32)
        self.load: Numbers = np.zeros(_ROOM_MIN, dtype=np.int32)
        self._old: Floats = np.zeros(4)
        self._same: Floats = np.zeros(4)
        self._codes, self._stack, self._flags, self._path, self._walk = (
            np.zeros(0, dtype=np.int32) for _ in range(5)
        )
        self.know_keywords(0, 0)

    def know_keywords(self, object_keywords_max: int, clause_keywords_max: int) -> None:
        """Size the arrays for objects and clauses with this many keywords.

        A walk's stack has, for each node on the path, no more than its children: a k-node has one more
        than the remaining codes, and there are at most as many s-nodes as divisions of space.
        """
        count = max(object_keywords_max, clause_keywords_max)
        if count >= len(self._codes):
            count += count // 2
            depth = count + T.DEPTH_MAX + _SURE
            entries = (count + 2) * (count + 2) + (T.DEPTH_MAX + 1) * (max(4, self._fanout) + 2) + _SURE
            self._codes = as_long(self._codes, count + 1)
            self._stack = as_long(self._stack, 2 * entries)
            self._flags = as_long(self._flags, entries)
            self._path = as_long(self._path, 2 * depth)
            self._walk = as_long(self._walk, 2 * depth)

    def lists(self, node_count: int) -> Lists:
        """Return the arguments of kernels, for this many nodes."""
        self._heads = longer(self._heads, L.LISTS * node_count)
        self._counts = longer(self._counts, len(self._heads))
        table = self.objects.table
        return Lists(
            table.rows,
            table.pool,
            self._heads,
            self._counts,
            self._items,
            self._links,
            self._codes,
            self._stack,
            self._flags,
            self.load,
            self._path,
            self._walk,
            self._old,
            self._same,
            self.state,
        )

    def reserve_load(self) -> None:
        """Make space for loading all objects."""
        self.load = longer(self.load, self.objects.table.end)

    def grow(self) -> None:
        """Lengthen the arrays that a kernel reported as full."""
        wanted = int(self.state[L.CHUNKS_WANTED])
        if wanted:
            self._links = longer(self._links, len(self._links) + wanted)
            self._items = as_long(self._items, len(self._links) * L.CHUNK_LENGTH)
            self.state[L.CHUNKS_WANTED] = 0

    def clear(self) -> None:
        """Clear all lists."""
        kept = self.state[[L.COPIES_MAX, L.NOW_MS]].copy()
        self.state[:] = 0
        self.state[[L.COPIES_MAX, L.NOW_MS]] = kept
        self._heads[:] = 0
        self._counts[:] = 0
        rows = self.objects.table.rows
        for name in ("copies", "stops", "mark", "carried"):
            rows[name] = 0

    @property
    def dead_share(self) -> float:
        """Return the fraction of items whose objects were removed."""
        return float(self.state[L.DEAD_TOTAL] / max(1, self.state[L.ITEM_TOTAL]))

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""
        arrays = [
            self._heads,
            self._counts,
            self._items,
            self._links,
            self._codes,
            self._stack,
            self._flags,
            self.load,
            self._path,
            self._walk,
        ]
        return sum(one.nbytes for one in arrays) + self.objects.table.memory_bytes()
