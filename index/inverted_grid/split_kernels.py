"""Turning leaves into nodes with children, and nodes into leaves.

A leaf is examined when it has more than 2 ** `limit` entries, and again when it has twice as many, if a
division did not pay. A node is laid out again when it has four times the clauses that it was made with,
an eighth of them, or as few as a leaf has, unless it has more than REBUILT_MAX clauses. Pending nodes are
kept in a stack, so that a kernel that runs out of space can continue at the same point.

Operations: settle O(clauses below), O(1) amortised a change.
"""

from __future__ import annotations

from index.inverted_grid import layout as L
from index.inverted_grid.cell_kernels import (
    bucket_of,
    column_of,
    keyword_of,
    row_of,
    side_of,
)
from index.inverted_grid.decision_kernels import Decision, decide
from index.inverted_grid.layout import Grid
from index.inverted_grid.node_kernels import (
    CELLS_MAX,
    LIMIT_FIRST,
    give_back_nodes,
    has_nodes,
    take_nodes,
    word_depth,
)
from index.inverted_grid.step_kernels import first_of, last_of
from index.tables.run_kernels import (
    NO_RUN,
    RUN_END,
    RUN_LEAST,
    class_of,
    free_run,
    has_run,
    take_run,
)
from safe_region.jit import leaf

REBUILT_MAX = 1 << 15
"""The maximum number of clauses of a node that is laid out again."""


@leaf
def log_of(count: int) -> int:
    """Return the binary logarithm of the least power of two that is not below a count."""
    log = 0
    while 1 << log < count:
        log += 1
    return log


@leaf
def _children_of(grid: Grid, number: int, place: int, depth: int) -> tuple[int, int, int, int]:
    """Return the destination of an entry below a node: first child, columns, rows, and children in a row.

    Without columns the entry is kept.
    """
    node = grid.nodes[number]
    first = int(node["first"])
    entry = grid.entries.records[place]
    if node["kind"] == L.PLACE:
        side = side_of(node)
        column = column_of(node, first_of(entry["x"]), side)
        row = row_of(node, first_of(entry["y"]), side)
        columns = column_of(node, last_of(entry["x"]), side) - column + 1
        rows = row_of(node, last_of(entry["y"]), side) - row + 1
        if columns * rows > min(CELLS_MAX, side * side - 1):
            return 0, 0, 0, 0
        return first + row * side + column, columns, rows, side
    keyword = keyword_of(grid, int(entry["slot"]), depth)
    if keyword < 0:
        return 0, 0, 0, 0
    return first + bucket_of(keyword, int(node["size_class"])), 1, 1, 0


@leaf
def _count_children(grid: Grid, number: int, start: int, count: int, depth: int) -> int:
    """Count the entries of each child; return the number of kept ones."""
    kept = 0
    for place in range(start, start + count):
        first, columns, rows, side = _children_of(grid, number, place, depth)
        kept += columns == 0
        for row in range(rows):
            for column in range(columns):
                grid.nodes[first + row * side + column]["count"] += 1
    return kept


@leaf
def _room_for(grid: Grid, first: int, size_class: int, kept: int) -> int:
    """Return the number of records in the runs of the counted children."""
    needed = RUN_LEAST << class_of(kept)
    for child in range(first, first + (1 << size_class)):
        count = int(grid.nodes[child]["count"])
        needed += RUN_LEAST << class_of(count) if count > 0 else 0
    return needed


@leaf
def _begin_run(grid: Grid, child: int, count: int) -> None:
    """Allocate a run for this many entries to an empty leaf."""
    node = grid.nodes[child]
    node["count"] = 0
    if count > 0:
        node["size_class"] = class_of(count)
        node["first"] = take_run(grid.entries, int(node["size_class"]))


@leaf
def _append(grid: Grid, child: int, place: int) -> None:
    """Copy an entry into a leaf, which has space."""
    node = grid.nodes[child]
    grid.entries.records[int(node["first"]) + int(node["count"])] = grid.entries.records[place]
    node["count"] += 1


@leaf
def _distribute(grid: Grid, number: int, start: int, count: int, depth: int) -> None:
    """Copy entries into the children that they belong to."""
    for place in range(start, start + count):
        first, columns, rows, side = _children_of(grid, number, place, depth)
        if columns == 0:
            _append(grid, int(grid.nodes[number]["kept"]), place)
        for row in range(rows):
            for column in range(columns):
                _append(grid, first + row * side + column, place)


@leaf
def _wait_for(grid: Grid, number: int) -> None:
    """Push a leaf as pending if it has too many entries."""
    if grid.nodes[number]["count"] > 1 << int(grid.nodes[number]["limit"]):
        grid.pending[grid.meta[L.PENDING]] = number
        grid.meta[L.PENDING] += 1


@leaf
def _part(grid: Grid, number: int, decision: Decision) -> int:
    """Divide a leaf, which is the last pending one; return a status."""
    node = grid.nodes[number]
    size_class = decision.size_class
    if int(grid.meta[L.PENDING]) + (1 << size_class) > grid.pending.shape[0]:
        grid.meta[L.NEEDED] = int(grid.meta[L.PENDING]) + (1 << size_class)
        return L.PENDING_FULL
    if (
        not has_nodes(grid, size_class)
        or int(grid.meta[L.NODE_END]) + (2 << size_class) > grid.nodes.shape[0]
    ):
        grid.meta[L.NEEDED] = 2 << size_class
        return L.NODES_FULL
    start, count, run_class = int(node["first"]), int(node["count"]), int(node["size_class"])
    depth = word_depth(grid, number)
    first = take_nodes(grid, size_class, number)
    node["kind"] = decision.kind
    node["first"] = first
    node["size_class"] = size_class
    node["x"] = decision.x
    node["y"] = decision.y
    node["x_scale"] = decision.x_scale
    node["y_scale"] = decision.y_scale
    kept = _count_children(grid, number, start, count, depth)
    needed = _room_for(grid, first, size_class, kept)
    if int(grid.entries.ends[RUN_END]) + needed > grid.entries.records.shape[0]:
        node["kind"] = L.LEAF
        node["first"] = start
        node["size_class"] = run_class
        give_back_nodes(grid, first, size_class)
        grid.meta[L.NEEDED] = needed
        return L.RUNS_FULL
    for child in range(first, first + (1 << size_class)):
        _begin_run(grid, child, int(grid.nodes[child]["count"]))
    if kept > 0:
        node["kept"] = take_nodes(grid, 0, number)
        _begin_run(grid, int(node["kept"]), kept)
    _distribute(grid, number, start, count, depth)
    free_run(grid.entries, start, run_class)
    node["limit"] = log_of(count)
    grid.meta[L.PENDING] -= 1
    for child in range(first, first + (1 << size_class)):
        _wait_for(grid, child)
    if kept > 0:
        _wait_for(grid, int(node["kept"]))
    return L.DONE


@leaf
def _is_first_copy(grid: Grid, top: int, number: int, place: int) -> bool:
    """Return whether a leaf below a node has the lower left one of the copies of an entry."""
    entry = grid.entries.records[place]
    child = number
    while child != top:
        parent = int(grid.parents[child])
        node = grid.nodes[parent]
        if node["kind"] == L.PLACE and node["kept"] != child:
            side = side_of(node)
            cell = row_of(node, first_of(entry["y"]), side) * side + column_of(
                node, first_of(entry["x"]), side
            )
            if child != int(node["first"]) + cell:
                return False
        child = parent
    return True


@leaf
def _gather_leaf(grid: Grid, top: int, number: int, end: int) -> int:
    """Copy a leaf's entries, if they are the first copies, to the end of a run; return the new end."""
    node = grid.nodes[number]
    start = int(node["first"])
    for place in range(start, start + int(node["count"])):
        if _is_first_copy(grid, top, number, place):
            grid.entries.records[end] = grid.entries.records[place]
            end += 1
    return end


@leaf
def _below(grid: Grid, number: int, base: int) -> int:
    """Write all nodes below a node in `pending`, parents first; return the end, or a status."""
    pending = grid.pending
    end = base
    head = base - 1
    while head < end:
        node = grid.nodes[number if head < base else pending[head]]
        head += 1
        if node["kind"] == L.LEAF:
            continue
        count = 1 << int(node["size_class"])
        if end + count + 1 > pending.shape[0]:
            grid.meta[L.NEEDED] = end + count + 1
            return L.PENDING_FULL
        for child in range(int(node["first"]), int(node["first"]) + count):
            pending[end] = child
            end += 1
        if node["kept"] != L.NO_NODE:
            pending[end] = node["kept"]
            end += 1
    return end


@leaf
def collapse(grid: Grid, number: int) -> int:
    """Turn a node with children into a leaf; return a status."""
    node = grid.nodes[number]
    base = int(grid.meta[L.PENDING])
    end = _below(grid, number, base)
    if end < 0:
        return end
    run_class = class_of(int(node["count"]))
    if not has_run(grid.entries, run_class):
        grid.meta[L.NEEDED] = RUN_LEAST << run_class
        return L.RUNS_FULL
    start = take_run(grid.entries, run_class)
    filled = start
    for i in range(base, end):
        if grid.nodes[grid.pending[i]]["kind"] == L.LEAF:
            filled = _gather_leaf(grid, number, int(grid.pending[i]), filled)
    for i in range(end - 1, base - 2, -1):
        below = grid.nodes[number if i < base else grid.pending[i]]
        if below["kind"] == L.LEAF:
            if below["size_class"] != NO_RUN:
                free_run(grid.entries, int(below["first"]), int(below["size_class"]))
        else:
            if below["kept"] != L.NO_NODE:
                give_back_nodes(grid, int(below["kept"]), 0)
            give_back_nodes(grid, int(below["first"]), int(below["size_class"]))
    node["kind"] = L.LEAF
    node["kept"] = L.NO_NODE
    node["first"] = start
    node["size_class"] = run_class
    node["limit"] = LIMIT_FIRST
    return L.DONE


@leaf
def is_misfit(grid: Grid, number: int) -> bool:
    """Return whether a node should be settled: a leaf that is too long, or a node with a wrong layout.

    A layout is wrong if the number of clauses below is too small or too large for it.
    """
    node = grid.nodes[number]
    count = int(node["count"])
    made = 1 << int(node["limit"])
    if node["kind"] == L.LEAF:
        return count > made
    is_off = count > 4 * made or count < made // 8 or count <= 1 << (LIMIT_FIRST - 1)
    return is_off and count <= REBUILT_MAX


@leaf
def settle(grid: Grid) -> int:
    """Lay out the pending nodes again; return a status."""
    while grid.meta[L.PENDING] > 0:
        number = int(grid.pending[grid.meta[L.PENDING] - 1])
        node = grid.nodes[number]
        if node["kind"] != L.LEAF:
            status = collapse(grid, number)
            if status != L.DONE:
                return status
        if int(node["count"]) <= 1 << int(node["limit"]):
            grid.meta[L.PENDING] -= 1
            continue
        decision = decide(grid, number)
        if decision.kind == L.LEAF:
            node["limit"] = log_of(int(node["count"]) * 3 // 2)
            grid.meta[L.PENDING] -= 1
            continue
        status = _part(grid, number, decision)
        if status != L.DONE:
            return status
    return L.DONE
