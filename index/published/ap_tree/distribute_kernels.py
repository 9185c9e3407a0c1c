"""Distribution of a node's clauses among its new parts, which are pending then."""

from __future__ import annotations

from index.published.ap_tree import layout as L
from index.published.ap_tree.chunk_kernels import add_pending, drop_chunk, lacks_chunks
from index.published.ap_tree.layout import Build, Tree
from index.published.ap_tree.node_kernels import (
    clear_node,
    clear_part,
    column_at,
    has_within,
    lacks_cut,
    lacks_nodes,
    lacks_stack,
    line_at,
    make_child,
    part_class,
    place_in_cut,
    take_parts,
)
from index.published.ap_tree.order_kernels import clause_codes
from safe_region.jit import leaf

LACKING = -1
"""The return value of a step that lacks space, instead of its cost."""


@leaf
def begin_distribution(tree: Tree, build: Build, kind: int, part_count: int) -> None:
    """Give the current node its parts, without children, and make its clauses the ones to distribute."""
    state = build.state
    row = tree.nodes[state[L.NODE]]
    state[L.PHASE] = L.DISTRIBUTE
    state[L.CHUNK] = row["start"]
    state[L.PLACE] = 0
    clear_node(row)
    row["kind"] = kind
    row["room"] = part_class(part_count)
    row["start"] = take_parts(tree, int(row["room"]))
    row["count"] = part_count
    start = int(row["start"])
    for part in range(start, start + part_count):
        clear_part(tree, part)


@leaf
def write_cuts(tree: Tree, build: Build) -> None:
    """Write the chosen cuts to the parts of the current node."""
    row = tree.nodes[build.state[L.NODE]]
    row["offset"] = build.state[L.OFFSET]
    first = int(row["start"]) + 1
    begin = 0
    for i in range(build.state[L.CUT_COUNT]):
        end = int(build.cut_ends[i])
        tree.parts[first + i]["low"] = build.touched[begin]
        tree.parts[first + i]["high"] = build.touched[end - 1]
        begin = end


@leaf
def write_cells(tree: Tree, build: Build, x_count: int, y_count: int) -> None:
    """Write the chosen cells to the parts of the current node."""
    row = tree.nodes[build.state[L.NODE]]
    row["x_count"] = x_count
    first = int(row["start"]) + 1
    for i in range(x_count):
        tree.parts[first + i]["low"] = build.columns[i]
    for j in range(y_count):
        tree.parts[first + j]["high"] = build.lines[j]


@leaf
def distribute(tree: Tree, build: Build, budget: int) -> int:
    """Distribute clauses to the parts of the current node; at the end, make tasks of the parts."""
    state, chunks = build.state, build.chunks
    node = int(state[L.NODE])
    spent = 1
    while state[L.CHUNK] != L.NOTHING and spent < budget:
        chunk, place = int(state[L.CHUNK]), int(state[L.PLACE])
        at = chunk * L.CHUNK_LENGTH + place
        slot = int(chunks.slots[at])
        if tree.clauses[slot]["generation"] == chunks.generations[at]:
            if tree.nodes[node]["kind"] == L.KEYWORDS:
                given = _give_to_cut(tree, build, node, slot)
            else:
                given = _give_to_cells(tree, build, node, slot)
            if given == LACKING:
                return LACKING
            spent += given
        state[L.PLACE] += 1
        if state[L.PLACE] == chunks.sizes[chunk]:
            state[L.CHUNK] = drop_chunk(chunks, chunk)
            state[L.PLACE] = 0
    if state[L.CHUNK] == L.NOTHING:
        row = tree.nodes[node]
        start, count = int(row["start"]), int(row["count"])
        if lacks_stack(tree, build.tasks, int(state[L.TASK_COUNT]), count):
            return LACKING
        for part in range(start, start + count):
            if tree.parts[part]["child"] != L.NOTHING:
                build.tasks[state[L.TASK_COUNT]] = tree.parts[part]["child"]
                state[L.TASK_COUNT] += 1
        state[L.PHASE] = L.IDLE
        spent += count
    return spent


@leaf
def _give(tree: Tree, build: Build, node: int, part: int, slot: int) -> None:
    child = int(tree.parts[part]["child"])
    if child == L.NOTHING:
        child = make_child(tree, node, part, L.PENDING)
    add_pending(tree, build, child, slot)


@leaf
def _give_to_cut(tree: Tree, build: Build, node: int, slot: int) -> int:
    row = tree.nodes[node]
    if lacks_nodes(tree, 1) or lacks_chunks(tree, build.chunks, 1):
        return LACKING
    number = L.DUMMY
    if clause_codes(tree, build.order, slot) > row["offset"]:
        code = int(tree.codes[row["offset"]])
        if lacks_cut(tree, node, code):
            return LACKING
        number = place_in_cut(tree, node, code)
    _give(tree, build, node, int(row["start"]) + number, slot)
    return 1


@leaf
def _give_to_cells(tree: Tree, build: Build, node: int, slot: int) -> int:
    row = tree.nodes[node]
    clause = tree.clauses[slot]
    start = int(row["start"])
    if has_within(row, clause):
        if lacks_nodes(tree, 1) or lacks_chunks(tree, build.chunks, 1):
            return LACKING
        _give(tree, build, node, start + L.DUMMY, slot)
        return 1
    first, last = column_at(tree, row, clause["x1_m"]), column_at(tree, row, clause["x2_m"])
    low, high = line_at(tree, row, clause["y1_m"]), line_at(tree, row, clause["y2_m"])
    count = (last - first + 1) * (high - low + 1)
    if lacks_nodes(tree, count) or lacks_chunks(tree, build.chunks, count):
        return LACKING
    columns = int(row["x_count"])
    for line in range(low, high + 1):
        for column in range(first, last + 1):
            _give(tree, build, node, start + 1 + line * columns + column, slot)
    return count
