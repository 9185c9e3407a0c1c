"""The arrays of bucket quadtrees: their growth and their invariants.

Operations: growth O(size), `check` O(entries) a tree. Kernels insert and remove entries.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from index.batches import Floats
from index.contracts import InconsistentIndexError
from index.square import Square
from index.tables import SlotTable
from index.tables.buckets import kernels
from index.tables.buckets.layout import BLOCK_DTYPE, ENTRY_DTYPE, NODE_DTYPE, Objects, Trees
from index.tables.growth import as_long, longer, longer_pool
from index.tables.quad_kernels import GROUP_END, GROUP_FREE, NO_NODE
from index.tables.signature_kernels import signature_of

_NODES_MIN = 128  # more than `has_room` requires
_BLOCKS_MIN = 16

_QUANTILE = 0.9
_MARGIN = 2.0


def square_of(x_m: Floats, y_m: Floats) -> Square:
    """Return a square that suits points: outliers may lie outside, where cells are coarse but correct.

    Its centre is the median; it is twice as large as one that contains nine points of ten. O(points).
    """
    middle_x = float(np.median(x_m))
    middle_y = float(np.median(y_m))
    with np.errstate(over="ignore"):
        away = np.maximum(np.abs(x_m - middle_x), np.abs(y_m - middle_y))
    half_m = _MARGIN * float(np.quantile(away, _QUANTILE, method="lower"))
    largest = float(np.finfo(np.float64).max) / 4
    smallest = max(1.0, abs(middle_x), abs(middle_y)) * 1e-9  # below this, halves vanish in rounding
    return Square(middle_x, middle_y, min(max(half_m, smallest), largest))


def objects_of(table: SlotTable) -> Objects:
    """Return the arrays of a table, as kernels take them."""
    return Objects(table.rows, table.pool, table.places)


class BucketTrees:
    """Pools of nodes, blocks and entries that any number of quadtrees share."""

    def __init__(self) -> None:
        meta = np.zeros(kernels.META_COUNT, dtype=np.int64)
        meta[GROUP_FREE] = NO_NODE
        meta[kernels.BLOCK_FREE] = kernels.NO_BLOCK
        self.arrays = Trees(
            np.zeros(_NODES_MIN, dtype=NODE_DTYPE),
            np.zeros(_BLOCKS_MIN, dtype=BLOCK_DTYPE),
            np.zeros(_BLOCKS_MIN * kernels.BLOCK_CAPACITY, dtype=ENTRY_DTYPE),
            meta,
        )

    def grow(self) -> None:
        """Lengthen the pools whose capacity is too small for `kernels.has_room`."""
        nodes, blocks, entries, meta = self.arrays
        nodes = longer_pool(nodes, meta, kernels.GROUPS_SPARE)
        taken = int(meta[kernels.BLOCK_END] - meta[kernels.BLOCK_FREE_COUNT])
        blocks = longer(blocks, taken + kernels.BLOCKS_SPARE)
        entries = as_long(entries, len(blocks) * kernels.BLOCK_CAPACITY)
        self.arrays = Trees(nodes, blocks, entries, meta)

    def node_end(self) -> int:
        """Return the first unused node."""
        return int(self.arrays.meta[GROUP_END])

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""
        return sum(array.nbytes for array in self.arrays)

    def check(self, roots: Iterable[int], table: SlotTable) -> list[tuple[int, list[int]]]:
        """Verify all trees and both pools; return (leaf, places of its entries) of every leaf.

        Raises
        ------
        InconsistentIndexError
            If an invariant is violated; the message names it.
        """
        objects = objects_of(table)
        leaves: list[tuple[int, list[int]]] = []
        groups = 0
        for root in roots:
            groups += 1
            if self.arrays.nodes[root]["parent"] != NO_NODE or self.arrays.nodes[root]["depth"] != 0:
                raise InconsistentIndexError(f"root {root} has a parent")
            groups += self._check_tree(root, objects, leaves)
        self._check_pools(groups, leaves)
        return leaves

    def _check_tree(self, root: int, objects: Objects, leaves: list[tuple[int, list[int]]]) -> int:
        """Verify one tree; return the number of its nodes with children."""
        nodes = self.arrays.nodes
        inner: list[int] = []
        below: dict[int, list[int]] = {}
        stack = [root]
        while stack:
            node = stack.pop()
            first = int(nodes[node]["first_child"])
            if first == NO_NODE:
                below[node] = self._places(node, objects)
                leaves.append((node, below[node]))
                continue
            inner.append(node)
            for child in range(first, first + 4):
                self._check_cell(node, child, child - first)
                stack.append(child)
        for node in reversed(inner):
            first = int(nodes[node]["first_child"])
            below[node] = [place for child in range(first, first + 4) for place in below[child]]
            if len(below[node]) <= kernels.MERGE_MAX:
                raise InconsistentIndexError(f"node {node} should have collapsed")
        for node, places in below.items():
            self._check_summary(node, places)
        return len(inner)

    def _places(self, leaf: int, objects: Objects) -> list[int]:
        """Return the places of a leaf's entries, verified against blocks and objects."""
        nodes, blocks, entries, _ = self.arrays
        places: list[int] = []
        block, left = int(nodes[leaf]["block"]), int(nodes[leaf]["count"])
        if left > kernels.BLOCK_CAPACITY and nodes[leaf]["depth"] < kernels.DEPTH_MAX:
            raise InconsistentIndexError(f"leaf {leaf} should have been split")
        taken = left % kernels.BLOCK_CAPACITY or min(left, kernels.BLOCK_CAPACITY)
        while left > 0:
            if block == kernels.NO_BLOCK or blocks[block]["node"] != leaf:
                raise InconsistentIndexError(f"the blocks of leaf {leaf} are not its own")
            places += range(block * kernels.BLOCK_CAPACITY, block * kernels.BLOCK_CAPACITY + taken)
            left, taken, block = left - taken, kernels.BLOCK_CAPACITY, int(blocks[block]["next"])
        if block != kernels.NO_BLOCK or left < 0:
            raise InconsistentIndexError(f"leaf {leaf} has a wrong count of blocks")
        cell = nodes[leaf]
        for place in places:
            entry = entries[place]
            check_entry(entry, place, objects)
            if not (
                cell["x_min"] <= entry["x_m"] < cell["x_max"]
                and cell["y_min"] <= entry["y_m"] < cell["y_max"]
            ):
                raise InconsistentIndexError(f"entry {place} lies outside its cell {leaf}")
        return places

    def _check_cell(self, node: int, child: int, quadrant: int) -> None:
        nodes = self.arrays.nodes
        above, row = nodes[node], nodes[child]
        x_cut, y_cut = above["split_x"], above["split_y"]
        x_side = (x_cut, above["x_max"]) if quadrant % 2 else (above["x_min"], x_cut)
        y_side = (y_cut, above["y_max"]) if quadrant >= 2 else (above["y_min"], y_cut)  # noqa: PLR2004
        if (row["x_min"], row["x_max"]) != x_side or (row["y_min"], row["y_max"]) != y_side:
            raise InconsistentIndexError(f"node {child} is not a quarter of node {node}")
        if row["parent"] != node or row["depth"] != above["depth"] + 1:
            raise InconsistentIndexError(f"node {child} has a parent other than {node}")

    def _check_summary(self, node: int, places: list[int]) -> None:
        row = self.arrays.nodes[node]
        entries = self.arrays.entries[places]
        if row["count"] != len(places):
            raise InconsistentIndexError(f"node {node} has a wrong count of entries")
        least = min(entries["keyword_count"].tolist(), default=kernels.KEYWORDS_MANY)
        first = int(row["first_child"])
        if first != NO_NODE:
            least = int(self.arrays.nodes["keyword_min"][first : first + 4].min())
        is_chain = first == NO_NODE and len(places) > kernels.BLOCK_CAPACITY
        if row["keyword_min"] > least or (row["keyword_min"] < least and not is_chain):
            raise InconsistentIndexError(f"node {node} has a wrong minimum number of keywords")

    def _check_pools(self, groups: int, leaves: list[tuple[int, list[int]]]) -> None:
        nodes, blocks, _, meta = self.arrays
        free = int(meta[GROUP_FREE])
        while free != NO_NODE:
            groups, free = groups + 1, int(nodes[free]["parent"])
        if groups * 4 != meta[GROUP_END]:
            raise InconsistentIndexError("the pool of nodes has a wrong count of groups")
        used = sum(-(-len(places) // kernels.BLOCK_CAPACITY) for _, places in leaves)
        free, free_count = int(meta[kernels.BLOCK_FREE]), 0
        while free != kernels.NO_BLOCK:
            free, free_count = int(blocks[free]["next"]), free_count + 1
        if free_count != meta[kernels.BLOCK_FREE_COUNT] or used + free_count != meta[kernels.BLOCK_END]:
            raise InconsistentIndexError("the pool of blocks has a wrong count of blocks")


def check_entry(entry: np.void, place: int, objects: Objects) -> None:
    """Verify that an entry agrees with its object and that the object refers to it.

    Raises
    ------
    InconsistentIndexError
        If an invariant is violated; the message names it.
    """
    row = objects.rows[entry["slot"]]
    start, count = int(row["keyword_start"]), int(row["keyword_count"])
    ordinal = int(entry["ordinal"])
    if not 0 <= ordinal < count or objects.places[start + ordinal] != place:
        raise InconsistentIndexError(f"the object of entry {place} has a wrong position")
    if (entry["x_m"], entry["y_m"], entry["keyword_count"]) != (row["x_m"], row["y_m"], count):
        raise InconsistentIndexError(f"entry {place} contradicts its object")
    words = objects.pool[start : start + count]
    if entry["signature"] != signature_of(words):
        raise InconsistentIndexError(f"entry {place} has a wrong signature")
