"""Matching: down from each keyword of an object, through entries, to clauses that are verified.

An object with an area comes to every cell that it meets, and may find a clause in many. It counts in the
cell that has the lower left corner of what the two boxes share.

Operations: match O(keywords + nodes on the way + entries of leaves) an object.
"""

from __future__ import annotations

from typing import NamedTuple

from index.batches import Floats, Ints, KeywordIds
from index.inverted_grid.cell_kernels import bucket_of, column_of, row_of, side_of
from index.inverted_grid.layout import CANDIDATES, LEAF, NEEDED, NO_NODE, PLACE, SCANNED, Numbers, Rows
from index.inverted_grid.step_kernels import GUARDS, column_step, first_of, row_step, window_of
from index.tables.signature_kernels import bit_of
from safe_region.jit import kernel, leaf

FOUND_SHORT = -1
WORK_SHORT = -2


class Searched(NamedTuple):
    """The arrays of `Grid` that a match needs: what it is given takes longer than to match one object."""

    roots: Numbers
    nodes: Rows
    parents: Numbers
    entries: Rows
    clauses: Rows
    pool: KeywordIds
    frame: Floats
    work: Numbers
    meta: Ints


class Asked(NamedTuple):
    """Objects: a row for each."""

    x1_m: Floats
    y1_m: Floats
    x2_m: Floats
    y2_m: Floats
    keyword_offsets: Ints
    keyword_ids: KeywordIds


class Item(NamedTuple):
    """One object."""

    row: int  # in the batch
    begin: int  # of its keywords
    end: int
    x1: int  # its box in steps
    y1: int
    x2: int
    y2: int
    x_window: int
    y_window: int
    missing: int  # bits of keywords that it does not have
    is_area: bool


@leaf
def _item_of(grid: Searched, asked: Asked, i: int) -> Item:
    """Return an object of a batch."""
    begin, end = int(asked.keyword_offsets[i]), int(asked.keyword_offsets[i + 1])
    x1, y1 = column_step(grid.frame, asked.x1_m[i]), row_step(grid.frame, asked.y1_m[i])
    x2, y2 = column_step(grid.frame, asked.x2_m[i]), row_step(grid.frame, asked.y2_m[i])
    signature = 0
    for at in range(begin, end):
        signature |= 1 << bit_of(asked.keyword_ids[at])
    is_area = asked.x1_m[i] < asked.x2_m[i] or asked.y1_m[i] < asked.y2_m[i]
    x_window, y_window = window_of(x1, x2), window_of(y1, y2)
    return Item(i, begin, end, x1, y1, x2, y2, x_window, y_window, ~signature, is_area)


@leaf
def _has_all(grid: Searched, start: int, count: int, asked: Asked, item: Item) -> bool:
    """Whether an object has all keywords of a clause: both increase."""
    at = item.begin
    for i in range(start, start + count):
        keyword = grid.pool[i]
        while at < item.end and asked.keyword_ids[at] < keyword:
            at += 1
        if at == item.end or asked.keyword_ids[at] != keyword:
            return False
    return True


@leaf
def _is_home(grid: Searched, number: int, x: int, y: int) -> bool:
    """Whether a leaf is the one, of all that a box is entered in, that has a point of it."""
    child = number
    parent = int(grid.parents[child])
    while parent != NO_NODE:
        node = grid.nodes[parent]
        if node["kind"] == PLACE and node["kept"] != child:
            side = side_of(node)
            if child != int(node["first"]) + row_of(node, y, side) * side + column_of(node, x, side):
                return False
        child = parent
        parent = int(grid.parents[child])
    return True


@leaf
def _matches(grid: Searched, number: int, place: int, asked: Asked, item: Item) -> bool:
    """Whether a clause, whose entry passed, is found here."""
    entry = grid.entries[place]
    clause = grid.clauses[entry["slot"]]
    i = item.row
    if (
        asked.x1_m[i] > clause["x2_m"]
        or asked.x2_m[i] < clause["x1_m"]
        or asked.y1_m[i] > clause["y2_m"]
        or asked.y2_m[i] < clause["y1_m"]
    ):
        return False
    if item.is_area and not _is_home(
        grid, number, max(item.x1, first_of(entry["x"])), max(item.y1, first_of(entry["y"]))
    ):
        return False
    return bool(_has_all(grid, int(clause["keyword_start"]), int(clause["keyword_count"]), asked, item))


@leaf
def _push_cells(grid: Searched, number: int, item: Item, end: int) -> int:
    """Push the cells of a node that an area meets; return the new end, or WORK_SHORT."""
    node = grid.nodes[number]
    first = int(node["first"])
    side = side_of(node)
    column_1, column_2 = column_of(node, item.x1, side), column_of(node, item.x2, side)
    row_1, row_2 = row_of(node, item.y1, side), row_of(node, item.y2, side)
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
def _push_buckets(grid: Searched, number: int, asked: Asked, item: Item, end: int) -> int:
    """Push the children that an object's keywords lead to, each once; return the new end, or WORK_SHORT."""
    first = int(grid.nodes[number]["first"])
    size_class = int(grid.nodes[number]["size_class"])
    needed = end + item.end - item.begin
    if needed > grid.work.shape[0]:
        grid.meta[NEEDED] = needed
        return WORK_SHORT
    begin = end
    for at in range(item.begin, item.end):
        child = first + bucket_of(asked.keyword_ids[at], size_class)
        is_new = grid.nodes[child]["count"] > 0
        for i in range(begin, end):
            is_new &= grid.work[i] != child
        if is_new:
            grid.work[end] = child
            end += 1
    return end


@leaf
def _push(grid: Searched, number: int, asked: Asked, item: Item, end: int) -> int:
    """Push the children of a node that an object comes to; return the new end, or WORK_SHORT."""
    node = grid.nodes[number]
    if node["kept"] != NO_NODE:
        if end == grid.work.shape[0]:
            grid.meta[NEEDED] = end + 1
            return WORK_SHORT
        grid.work[end] = node["kept"]
        end += 1
    if node["kind"] == PLACE:
        return _push_cells(grid, number, item, end)
    return _push_buckets(grid, number, asked, item, end)


@leaf
def _search(grid: Searched, root: int, asked: Asked, item: Item, found: Ints, total: int) -> int:
    """Look through the list of a keyword; return how many are found now, or a negative status."""
    nodes, entries, work = grid.nodes, grid.entries, grid.work
    x_window, y_window, missing = item.x_window, item.y_window, item.missing
    number = root
    end = 0
    while True:
        node = nodes[number]
        if node["kind"] == PLACE and not item.is_area and node["kept"] == NO_NODE:
            side = side_of(node)
            row, column = row_of(node, item.y1, side), column_of(node, item.x1, side)
            number = int(node["first"]) + row * side + column
            continue
        if node["kind"] == LEAF:
            start = int(node["first"])
            count = int(node["count"])
            if total + count > found.shape[0]:
                grid.meta[NEEDED] = total + count
                return FOUND_SHORT
            grid.meta[SCANNED] += count
            for place in range(start, start + count):
                entry = entries[place]
                meets = (x_window - entry["x"]) & (y_window - entry["y"]) & GUARDS
                if (meets ^ GUARDS) | (entry["signature"] & missing) == 0:
                    grid.meta[CANDIDATES] += 1
                    if _matches(grid, number, place, asked, item):
                        found[total] = grid.clauses[entry["slot"]]["id"]
                        total += 1
        else:
            end = _push(grid, number, asked, item, end)
            if end < 0:
                return end
        if end == 0:
            return total
        end -= 1
        number = int(work[end])


@kernel
def match(grid: Searched, asked: Asked, row: int, offsets: Ints, found: Ints) -> int:
    """Write the clauses that match each object as CSR, from a row on.

    Returns
    -------
    int
        Twice the first row that is not done, and 1 more if `work`, not `found`, is too short for it:
        `meta[NEEDED]` says how long it must be.
    """
    total = int(offsets[row])
    known = grid.roots.shape[0]
    for i in range(row, asked.x1_m.shape[0]):
        item = _item_of(grid, asked, i)
        for at in range(item.begin, item.end):
            word = asked.keyword_ids[at]
            if word >= known or grid.roots[word] == 0:
                continue
            status = _search(grid, int(grid.roots[word]) - 1, asked, item, found, total)
            if status < 0:
                return i * 2 + int(status == WORK_SHORT)
            total = status
        offsets[i + 1] = total
    return int(asked.x1_m.shape[0]) * 2
