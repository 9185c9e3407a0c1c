"""Nodes and their entries: allocation and release, addition and removal, paths down and up.

Operations: O(1), except `take_out`, which scans a leaf, and `lead`, O(nodes on the path).
"""

from __future__ import annotations

from typing import Any

from index.inverted_grid import layout as L
from index.inverted_grid.cell_kernels import (
    bucket_of,
    column_of,
    keyword_of,
    row_of,
    side_of,
    signature_without_first,
)
from index.inverted_grid.layout import Grid
from index.inverted_grid.step_kernels import column_step, row_step, span_of
from index.tables.free_kernels import NOTHING, give_back_rows, take_rows
from index.tables.run_kernels import NO_RUN, RUN_LEAST, free_run, has_run, is_wasteful, moved_run
from safe_region.jit import leaf

LIMIT_FIRST = 5
"""A leaf is examined for the first time when it has more than 2 ** 5 entries."""

CELLS_MAX = 16
"""A clause that lies in more cells of a node goes to the child for kept clauses."""


@leaf
def has_nodes(grid: Grid, size_class: int) -> bool:
    """Return whether 2 ** size_class nodes can be allocated."""
    end = int(grid.meta[L.NODE_END]) + (1 << size_class)
    return bool(grid.free_nodes[size_class] != NOTHING or end <= grid.nodes.shape[0])


@leaf
def take_nodes(grid: Grid, size_class: int, parent: int) -> int:
    """Allocate 2 ** size_class empty leaves; return the first. The caller has verified the capacity."""
    nodes = grid.nodes
    count = 1 << size_class
    first = take_rows(nodes["first"], grid.free_nodes, size_class, grid.meta, L.NODE_END, count)
    for node in range(first, first + count):
        nodes[node]["kind"] = L.LEAF
        nodes[node]["first"] = 0
        nodes[node]["count"] = 0
        nodes[node]["kept"] = L.NO_NODE
        nodes[node]["size_class"] = NO_RUN
        nodes[node]["limit"] = LIMIT_FIRST
        grid.parents[node] = parent
    return first


@leaf
def give_back_nodes(grid: Grid, first: int, size_class: int) -> None:
    """Free nodes."""
    give_back_rows(grid.nodes["first"], grid.free_nodes, size_class, first)


@leaf
def set_entry(grid: Grid, place: int, slot: int) -> None:
    """Rewrite an entry from its clause."""
    clause = grid.clauses[slot]
    entry = grid.entries.records[place]
    frame = grid.frame
    entry["x"] = span_of(column_step(frame, clause["x1_m"]), column_step(frame, clause["x2_m"]))
    entry["y"] = span_of(row_step(frame, clause["y1_m"]), row_step(frame, clause["y2_m"]))
    entry["signature"] = signature_without_first(grid, slot)
    entry["slot"] = slot


@leaf
def capacity_of(node: Any) -> int:  # noqa: ANN401
    """Return the capacity of a leaf in entries."""
    size_class = int(node["size_class"])
    return 0 if size_class == NO_RUN else RUN_LEAST << size_class


@leaf
def fit_run(grid: Grid, number: int, size_class: int) -> None:
    """Move a leaf into a run of another size; the caller has verified that one is free."""
    node = grid.nodes[number]
    old_class = int(node["size_class"])
    node["first"] = moved_run(grid.entries, int(node["first"]), int(node["count"]), old_class, size_class)
    node["size_class"] = size_class


@leaf
def place_of(grid: Grid, number: int, slot: int) -> int:
    """Return the place of a clause's entry in a leaf, which has the clause."""
    place = int(grid.nodes[number]["first"])
    while grid.entries.records[place]["slot"] != slot:
        place += 1
    return place


@leaf
def take_out(grid: Grid, number: int, slot: int) -> None:
    """Remove a clause from a leaf, which has it."""
    node = grid.nodes[number]
    records = grid.entries.records
    last = int(node["first"]) + int(node["count"]) - 1
    records[place_of(grid, number, slot)] = records[last]
    node["count"] -= 1
    count = int(node["count"])
    size_class = int(node["size_class"])
    if count == 0:
        free_run(grid.entries, int(node["first"]), size_class)
        node["size_class"] = NO_RUN
    elif is_wasteful(grid.entries, count, size_class):
        fit_run(grid, number, size_class - 1)


@leaf
def word_depth(grid: Grid, number: int) -> int:
    """Return the number of a clause's keywords that have led to a node."""
    depth = 1
    parent = int(grid.parents[number])
    while parent != L.NO_NODE:
        depth += grid.nodes[parent]["kind"] == L.WORD
        parent = int(grid.parents[parent])
    return depth


@leaf
def _push_cells(
    grid: Grid,
    number: int,
    corners: tuple[int, int, int, int],
    end: int,
    may_make: bool,  # noqa: FBT001 - kernels have no arguments by keyword only
) -> int:
    """Push the children of a node with cells that a box belongs to; return the new end, or a status."""
    node = grid.nodes[number]
    work = grid.work
    side = side_of(node)
    column_1, column_2 = column_of(node, corners[0], side), column_of(node, corners[2], side)
    row_1, row_2 = row_of(node, corners[1], side), row_of(node, corners[3], side)
    if (column_2 - column_1 + 1) * (row_2 - row_1 + 1) > min(CELLS_MAX, side * side - 1):
        return _push_kept(grid, number, end, may_make)
    for row in range(row_1, row_2 + 1):
        for column in range(column_1, column_2 + 1):
            work[end] = int(node["first"]) + row * side + column
            end += 1
    return end


@leaf
def _push_kept(grid: Grid, number: int, end: int, may_make: bool) -> int:  # noqa: FBT001
    """Push the child for kept clauses, created if necessary; return the new end, or a status."""
    if grid.nodes[number]["kept"] == L.NO_NODE:
        if not may_make or not has_nodes(grid, 0):
            grid.meta[L.NEEDED] = 1
            return L.NODES_FULL
        grid.nodes[number]["kept"] = take_nodes(grid, 0, number)
    grid.work[end] = grid.nodes[number]["kept"]
    return end + 1


@leaf
def lead(grid: Grid, root: int, slot: int, may_make: bool) -> int:  # noqa: FBT001
    """Write the nodes that a clause belongs to in `work`, parents first.

    Returns
    -------
    int
        The number of nodes, or a negative status.
    """
    clause = grid.clauses[slot]
    corners = (
        column_step(grid.frame, clause["x1_m"]),
        row_step(grid.frame, clause["y1_m"]),
        column_step(grid.frame, clause["x2_m"]),
        row_step(grid.frame, clause["y2_m"]),
    )
    work = grid.work
    work[0] = root
    end = 1
    head = 0
    while head < end:
        number = int(work[head])
        node = grid.nodes[number]
        head += 1
        if node["kind"] == L.LEAF:
            continue
        if end + CELLS_MAX > work.shape[0]:
            grid.meta[L.NEEDED] = end + CELLS_MAX
            return L.WORK_FULL
        if node["kind"] == L.PLACE:
            end = _push_cells(grid, number, corners, end, may_make)
        else:
            keyword = keyword_of(grid, slot, word_depth(grid, number))
            if keyword < 0:
                end = _push_kept(grid, number, end, may_make)
            else:
                work[end] = int(node["first"]) + bucket_of(keyword, int(node["size_class"]))
                end += 1
        if end < 0:
            return end
    return end


@leaf
def make_room(grid: Grid, number: int) -> int:
    """Ensure that a leaf has space for one more entry; return a status."""
    node = grid.nodes[number]
    if int(node["count"]) < capacity_of(node):
        return L.DONE
    size_class = int(node["size_class"]) + 1
    if not has_run(grid.entries, size_class):
        grid.meta[L.NEEDED] = RUN_LEAST << size_class
        return L.RUNS_FULL
    fit_run(grid, number, size_class)
    return L.DONE


@leaf
def add(grid: Grid, number: int, slot: int) -> None:
    """Add a clause to a leaf, which has space."""
    node = grid.nodes[number]
    set_entry(grid, int(node["first"]) + int(node["count"]), slot)
    node["count"] += 1
