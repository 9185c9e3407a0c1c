"""Rebuilds: small subtrees at once, large ones beside the old, a slice at a time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum, auto
from typing import Protocol

import numpy as np

from index.batches import Boxes, Floats, KeywordLists
from index.published.ap_tree import layout as L
from index.published.ap_tree import rebuild_kernels
from index.published.ap_tree.arrays import BuildArrays, TreeArrays
from index.published.ap_tree.build_kernels import advance
from index.published.ap_tree.layout import Build, Numbers
from index.square import Square

_QUICK_MAX = 2_000
"""Subtrees of up to this many entries are rebuilt at once: it takes about a millisecond."""
_SLICE = 10_000
"""Accesses to clauses in a slice: 2 ms on average at a million clauses, where they miss the caches."""
_RIDE = 4_000
_RIDE_EACH = 16
"""Accesses that a call does for a rebuild: _RIDE, plus _RIDE_EACH for each of its rows."""
_ALL = 1 << 40
_BULK_LEAST = 1_000
"""This many new clauses, if more than the tree has already, are built into a tree at once."""


class _Stage(Enum):
    NONE = auto()
    COLLECT = auto()
    BUILD = auto()
    CARRY = auto()
    LET_GO = auto()
    RELEASE = auto()


class Cargo(Protocol):
    """Items in nodes other than clauses, which move with rebuilds."""

    def clear(self) -> None:
        """Delete all items: there are no nodes any more."""

    def load_all(self) -> None:
        """Insert all items into the tree, which was rebuilt as a whole."""

    def take_off(self, node: int) -> None:
        """Remove the items of a node and below, which is to be rebuilt."""

    def put_back(self, node: int, order: Numbers) -> None:
        """Insert these again: the node was rebuilt, with this order."""

    def begin_carrying(self) -> None:
        """Start to insert items into the new subtree."""

    def carry(self, budget: int) -> bool:
        """Insert some of the items that belong there; return whether all are done."""

    def end_carrying(self, old: int) -> None:
        """Record that the new subtree has replaced the old one."""

    def let_go(self, budget: int) -> bool:
        """Free some of the items of the old subtree; return whether all are done."""


class Rebuilds:
    """Builds and rebuilds of a tree.

    Parameters
    ----------
    arrays
        The arrays of the tree.
    square
        The square that contains most clauses; by default about the existing ones.
    is_rarest_first
        Whether the order of keywords begins with the rarest, otherwise with the most frequent.
    cargo
        The items that move with rebuilds.
    """

    def __init__(
        self,
        arrays: TreeArrays,
        square: Square | None,
        *,
        is_rarest_first: bool,
        cargo: Cargo | None = None,
    ) -> None:
        self._arrays = arrays
        self._cargo = cargo
        self._square = square
        self._is_rarest_first = is_rarest_first
        self._quick = BuildArrays(arrays.limits, arrays.motions)
        self.job_arrays = BuildArrays(arrays.limits, arrays.motions)
        self._stage = _Stage.NONE
        self._extent: Floats = np.array([np.inf, np.inf, -np.inf, -np.inf])
        self.count = 0
        self.spent_s = 0.0
        """The time spent on rebuilding nodes that had parts, and on builds in slices."""
        self.plant()

    # -- changes reported by the tree -------------------------------------------------------------

    def know(self, boxes: Boxes, required: KeywordLists) -> None:
        """Record new clauses."""
        self.know_boxes(boxes)
        arrays = self._arrays
        arrays.know_keywords(
            1 + int(required.ids.max(initial=-1)), 1 + int(np.diff(required.offsets).max(initial=0))
        )
        np.add.at(arrays.frequency, required.ids, 1)
        if not self.is_bulk(len(required)):
            self._know_codes(len(required.ids))

    def know_boxes(self, boxes: Boxes) -> None:
        """Record new boxes."""
        if len(boxes):
            mine = (boxes.x1_m.min(), boxes.y1_m.min(), -boxes.x2_m.max(), -boxes.y2_m.max())
            signs = np.array([1.0, 1.0, -1.0, -1.0])
            self._extent = signs * np.minimum(signs * self._extent, mine)

    def forget(self, required: KeywordLists) -> None:
        """Record removed clauses."""
        np.subtract.at(self._arrays.frequency, required.ids, 1)

    # -- all at once -------------------------------------------------------------------------------

    def is_bulk(self, count: int) -> bool:
        """Return whether this many new clauses should be built into a tree with the present ones."""
        return count >= _BULK_LEAST and 2 * count > len(self._arrays.table)

    def plant(self) -> None:
        """Build the whole tree at once. O(clauses log clauses)."""
        arrays = self._arrays
        arrays.clear()
        if self._cargo:
            self._cargo.clear()
        self.job_arrays.clear()
        self._stage = _Stage.NONE
        arrays.order = arrays.job_order = arrays.renewed_order(is_rarest_first=self._is_rarest_first)
        self._know_codes(0)
        arrays.limits[L.POPULATION] = len(arrays.table)
        root = rebuild_kernels.plant(arrays.tree())
        self._set_region(root)
        slots = arrays.table.used()
        while rebuild_kernels.chain_all(arrays.tree(), self.job(), root, slots) == L.OUT_OF_ROOM:
            arrays.grow(self.job_arrays)
        self._finish(self.job_arrays, arrays.order)
        self.job_arrays.clear()
        if self._cargo:
            self._cargo.load_all()

    def settle(self, nodes: list[int]) -> None:
        """Rebuild nodes: at once, or in slices, or, if another build is in progress, later."""
        arrays = self._arrays
        for node in nodes:
            where = rebuild_kernels.whereabouts(arrays.tree(), self.job(), node)
            if where == rebuild_kernels.STAYS:
                continue
            row = arrays.nodes[node]
            if row["weight"] <= _QUICK_MAX:
                self._rebuild_at_once(node, is_in_job=where == rebuild_kernels.IS_IN_JOB)
            elif where == rebuild_kernels.IS_IN_TREE and self._stage == _Stage.NONE:
                self._begin(node)
            elif row["kind"] == L.LEAF:
                row["patience"] = row["count"] + row["count"] // 4

    def _rebuild_at_once(self, node: int, *, is_in_job: bool) -> None:
        if self._arrays.nodes[node]["kind"] == L.LEAF:
            self._replace(node, is_in_job=is_in_job)
            return
        self.count += 1
        with self._timed():
            self._replace(node, is_in_job=is_in_job)

    def _replace(self, node: int, *, is_in_job: bool) -> None:
        arrays = self._arrays
        root = int(arrays.meta[L.JOB_NEW if is_in_job else L.ROOT])
        order = arrays.job_order if is_in_job else arrays.order
        if self._cargo:
            self._cargo.take_off(node)
        while (
            rebuild_kernels.take_apart(arrays.tree(), self._quick.build(order), root, node)
            == L.OUT_OF_ROOM
        ):
            arrays.grow(self._quick)
        if node == arrays.meta[L.ROOT] and self._stage == _Stage.NONE:
            order = arrays.renewed_order(is_rarest_first=self._is_rarest_first)
            arrays.order = arrays.job_order = order
            self._set_region(node)
        self._finish(self._quick, order)
        if self._cargo:
            self._cargo.put_back(node, order)

    def _finish(self, mine: BuildArrays, order: Numbers) -> None:
        while True:
            status = advance(self._arrays.tree(), mine.build(order), _ALL)
            if status == L.FINISHED:
                return
            if status == L.OUT_OF_ROOM:
                self._arrays.grow(mine)

    # -- slice by slice ----------------------------------------------------------------------------

    def job(self) -> Build:
        """Return the build in progress."""
        return self.job_arrays.build(self._arrays.job_order)

    def begin_all(self) -> None:
        """Start a rebuild of the whole tree, unless a build is in progress."""
        if self._stage == _Stage.NONE:
            self._begin(int(self._arrays.meta[L.ROOT]))

    def ride(self, row_count: int) -> None:
        """Continue the build in progress, with the budget of one call."""
        if self._stage != _Stage.NONE:
            with self._timed():
                self._step(_RIDE + _RIDE_EACH * row_count)

    def advance(self) -> bool:
        """Do a slice; return whether more is pending."""
        if self._stage != _Stage.NONE:
            with self._timed():
                self._step(_SLICE)
        return self._stage != _Stage.NONE

    @contextmanager
    def _timed(self) -> Iterator[None]:
        began_s = time.perf_counter()
        yield
        self.spent_s += time.perf_counter() - began_s

    def _begin(self, node: int) -> None:
        self.count += 1
        with self._timed():
            self._begin_beside(node)

    def _begin_beside(self, node: int) -> None:
        arrays = self._arrays
        if node == arrays.meta[L.ROOT]:
            arrays.job_order = arrays.renewed_order(is_rarest_first=self._is_rarest_first)
        while rebuild_kernels.begin_beside(arrays.tree(), self.job(), node) == L.OUT_OF_ROOM:
            arrays.grow(self.job_arrays)
        if node == arrays.meta[L.ROOT]:
            self._set_region(int(arrays.meta[L.JOB_NEW]))
        self._stage = _Stage.COLLECT

    def _step(self, budget: int) -> None:
        """Do a part of the next phase."""
        arrays = self._arrays
        if self._stage in (_Stage.CARRY, _Stage.LET_GO):
            self._step_cargo(budget)
            return
        if self._stage == _Stage.COLLECT:
            status = rebuild_kernels.collect(arrays.tree(), self.job(), budget)
        elif self._stage == _Stage.BUILD:
            status = advance(arrays.tree(), self.job(), budget)
        else:
            status = rebuild_kernels.release(arrays.tree(), self.job(), budget)
        if status == L.OUT_OF_ROOM:
            arrays.grow(self.job_arrays)
        elif status != L.MORE:
            self._next_stage()

    def _step_cargo(self, budget: int) -> None:
        if self._cargo is None:
            return
        if self._stage == _Stage.CARRY:
            if self._cargo.carry(budget):
                self._switch_over()
        elif self._cargo.let_go(budget):
            self._stage = _Stage.RELEASE

    def _next_stage(self) -> None:
        if self._stage == _Stage.COLLECT:
            self._stage = _Stage.BUILD
        elif self._stage == _Stage.BUILD and self._cargo:
            self._cargo.begin_carrying()
            self._stage = _Stage.CARRY
        elif self._stage == _Stage.BUILD:
            self._switch_over()
        else:
            self.job_arrays.let_go()
            self._stage = _Stage.NONE

    def _switch_over(self) -> None:
        """Replace the old subtree by the new one."""
        arrays = self._arrays
        old = int(arrays.meta[L.JOB_OLD])
        rebuild_kernels.switch_over(arrays.tree(), self.job())
        arrays.order = arrays.job_order
        self._stage = _Stage.RELEASE
        if self._cargo:
            self._cargo.end_carrying(old)
            self._stage = _Stage.LET_GO

    # -- the rest ----------------------------------------------------------------------------------

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""
        return self._quick.memory_bytes() + self.job_arrays.memory_bytes()

    def _know_codes(self, new: int) -> None:
        """Make space for the codes of this many keywords that may be new."""
        known = max(int(self._arrays.order[0]), int(self._arrays.job_order[0]))
        for mine in (self._quick, self.job_arrays):
            mine.know_codes(known + new + 1)

    def _set_region(self, root: int) -> None:
        """Set the region of a root: the square, or a box about all boxes so far."""
        row = self._arrays.nodes[root]
        x1_m, y1_m, x2_m, y2_m = self._extent.tolist()
        if self._square is not None:
            x_m, y_m, half_m = self._square
            x1_m, y1_m, x2_m, y2_m = x_m - half_m, y_m - half_m, x_m + half_m, y_m + half_m
        elif x1_m > x2_m:
            x1_m, y1_m, x2_m, y2_m = 0.0, 0.0, 1.0, 1.0
        row["x1_m"], row["y1_m"] = x1_m, y1_m
        row["x2_m"], row["y2_m"] = np.nextafter(x2_m, np.inf), np.nextafter(y2_m, np.inf)


class Rebuilding:
    """The part of a tree by which its user starts rebuilds, continues and counts them."""

    _rebuilds: Rebuilds

    def maintain(self) -> bool:
        """Do one slice of a rebuild, a few milliseconds; return whether more is pending."""
        return self._rebuilds.advance()

    def rebuild(self) -> None:
        """Rebuild the whole tree at once, for the present clauses and objects."""
        self._rebuilds.plant()

    def begin_rebuild(self) -> None:
        """Start a rebuild of the whole tree, in the slices of `maintain` and of all calls."""
        self._rebuilds.begin_all()

    @property
    def rebuild_count(self) -> int:
        """Return the number of nodes with parts that were rebuilt so far for drift."""
        return self._rebuilds.count

    @property
    def rebuild_s(self) -> float:
        """Return the seconds spent on these rebuilds so far, including slices within other calls."""
        return self._rebuilds.spent_s
