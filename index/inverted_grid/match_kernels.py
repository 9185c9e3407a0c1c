"""Matching: down from each keyword of an object, through entries, to clauses that are verified.

An object with an area comes to every cell that it meets, and may find a clause in many. It counts in the
cell that has the lower left corner of what the two boxes share.

Operations: match O(keywords + nodes on the way + entries of leaves) an object.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from index.batches import Ints, KeywordIds
from index.inverted_grid.cell_kernels import (
    bucket_of,
    column_of,
    rounded_down,
    rounded_up,
    row_of,
    side_of,
)
from index.inverted_grid.layout import CANDIDATES, LEAF, NEEDED, NO_NODE, PLACE, SCANNED, Asked, Grid
from index.tables.signature_kernels import signature_of
from safe_region.jit import array_leaf, kernel, leaf

FOUND_FULL = -1
WORK_SHORT = -2


class Item(NamedTuple):
    """One object."""

    x1_m: float
    y1_m: float
    x2_m: float
    y2_m: float
    low_x_m: np.float32  # the box, rounded outwards
    low_y_m: np.float32
    high_x_m: np.float32
    high_y_m: np.float32
    missing: int  # bits of keywords that it does not have
    is_area: bool
    words: KeywordIds


@array_leaf
def _item_of(asked: Asked, i: int) -> Item:
    """Return an object of a batch."""
    x1_m, y1_m, x2_m, y2_m = asked.x1_m[i], asked.y1_m[i], asked.x2_m[i], asked.y2_m[i]
    words = asked.keyword_ids[asked.keyword_offsets[i] : asked.keyword_offsets[i + 1]]
    return Item(
        x1_m,
        y1_m,
        x2_m,
        y2_m,
        rounded_down(x1_m),
        rounded_down(y1_m),
        rounded_up(x2_m),
        rounded_up(y2_m),
        ~signature_of(words),
        x1_m < x2_m or y1_m < y2_m,
        words,
    )


@leaf
def _has_all(grid: Grid, start: int, count: int, words: KeywordIds) -> bool:
    """Whether an object has all keywords of a clause: both increase."""
    at = 0
    for i in range(start, start + count):
        keyword = grid.pool[i]
        while at < words.shape[0] and words[at] < keyword:
            at += 1
        if at == words.shape[0] or words[at] != keyword:
            return False
    return True


@leaf
def _is_home(grid: Grid, number: int, x_m: float, y_m: float) -> bool:
    """Whether a leaf is the one, of all that a box is entered in, that has a point of it."""
    child = number
    parent = int(grid.parents[child])
    while parent != NO_NODE:
        node = grid.nodes[parent]
        if node["kind"] == PLACE and node["kept"] != child:
            side = side_of(node)
            if child != int(node["first"]) + row_of(node, y_m, side) * side + column_of(node, x_m, side):
                return False
        child = parent
        parent = int(grid.parents[child])
    return True


@leaf
def _matches(grid: Grid, number: int, place: int, item: Item) -> bool:
    """Whether a clause, whose entry passed, is found here."""
    grid.meta[CANDIDATES] += 1
    entry = grid.entries.records[place]
    clause = grid.clauses[entry["slot"]]
    if (
        item.x1_m > clause["x2_m"]
        or item.x2_m < clause["x1_m"]
        or item.y1_m > clause["y2_m"]
        or item.y2_m < clause["y1_m"]
    ):
        return False
    if item.is_area:
        x_m = max(item.x1_m, np.float64(entry["x1_m"]))
        y_m = max(item.y1_m, np.float64(entry["y1_m"]))
        if not _is_home(grid, number, x_m, y_m):
            return False
    start = int(clause["keyword_start"])
    return bool(_has_all(grid, start, int(clause["keyword_count"]), item.words))


@leaf
def _scan(grid: Grid, number: int, item: Item, found: Ints, total: int) -> int:
    """Keep the clauses of a leaf that match; return how many there are now, or FOUND_FULL."""
    node = grid.nodes[number]
    records = grid.entries.records
    start = int(node["first"])
    count = int(node["count"])
    if total + count > found.shape[0]:
        grid.meta[NEEDED] = total + count
        return FOUND_FULL
    grid.meta[SCANNED] += count
    for place in range(start, start + count):
        entry = records[place]
        if (
            (entry["x1_m"] <= item.high_x_m)
            & (entry["y1_m"] <= item.high_y_m)
            & (entry["x2_m"] >= item.low_x_m)
            & (entry["y2_m"] >= item.low_y_m)
            & ((entry["signature"] & item.missing) == 0)
        ) and _matches(grid, number, place, item):
            found[total] = grid.clauses[entry["slot"]]["id"]
            total += 1
    return total


@leaf
def _push_cells(grid: Grid, number: int, item: Item, end: int) -> int:
    """Push the cells of a node that an object meets; return the new end, or WORK_SHORT."""
    node = grid.nodes[number]
    first = int(node["first"])
    side = side_of(node)
    column_1 = column_of(node, item.x1_m, side)
    row_1 = row_of(node, item.y1_m, side)
    if not item.is_area:
        grid.work[end] = first + row_1 * side + column_1
        return end + 1
    column_2 = column_of(node, item.x2_m, side)
    row_2 = row_of(node, item.y2_m, side)
    needed = end + (column_2 - column_1 + 1) * (row_2 - row_1 + 1)
    if needed > grid.work.shape[0]:
        grid.meta[NEEDED] = needed
        return WORK_SHORT
    for row in range(row_1, row_2 + 1):
        for column in range(column_1, column_2 + 1):
            grid.work[end] = first + row * side + column
            end += 1
    return end


@leaf
def _push_buckets(grid: Grid, number: int, item: Item, end: int) -> int:
    """Push the children of a node that an object's keywords lead to, each once; return the new end."""
    first = int(grid.nodes[number]["first"])
    size_class = int(grid.nodes[number]["size_class"])
    begin = end
    for keyword in item.words:
        child = first + bucket_of(keyword, size_class)
        is_new = grid.nodes[child]["count"] > 0
        for i in range(begin, end):
            is_new &= grid.work[i] != child
        if is_new:
            grid.work[end] = child
            end += 1
    return end


@leaf
def _search(grid: Grid, root: int, item: Item, found: Ints, total: int) -> int:
    """Look through the list of a keyword; return how many are found now, or a negative status."""
    work = grid.work
    work[0] = root
    end = 1
    while end > 0:
        end -= 1
        number = int(work[end])
        node = grid.nodes[number]
        if node["kind"] == LEAF:
            total = _scan(grid, number, item, found, total)
            if total < 0:
                return total
            continue
        if end + item.words.shape[0] + 1 > work.shape[0]:
            grid.meta[NEEDED] = end + item.words.shape[0] + 1
            return WORK_SHORT
        if node["kept"] != NO_NODE:
            work[end] = node["kept"]
            end += 1
        if node["kind"] == PLACE:
            end = _push_cells(grid, number, item, end)
        else:
            end = _push_buckets(grid, number, item, end)
        if end < 0:
            return end
    return total


@kernel
def match(grid: Grid, asked: Asked, row: int, offsets: Ints, found: Ints) -> int:
    """Write the clauses that match each object as CSR, from a row on.

    Returns
    -------
    int
        Twice the first row that is not done, and 1 more if `work`, not `found`, is too short for it:
        `meta[NEEDED]` says how long it must be.
    """
    total = offsets[row]
    for i in range(row, asked.x1_m.shape[0]):
        item = _item_of(asked, i)
        for word in item.words:
            if word >= grid.roots.shape[0] or grid.roots[word] == 0:
                continue
            status = _search(grid, int(grid.roots[word]) - 1, item, found, total)
            if status < 0:
                return i * 2 + int(status == WORK_SHORT)
            total = status
        offsets[i + 1] = total
    return asked.x1_m.shape[0] * 2
