"""Nodes and their parts: allocation, release, search by code or place, extension by new keywords."""

from __future__ import annotations

import numpy as np

from index.published.ap_tree import layout as L
from index.published.ap_tree.layout import Numbers, Row, Tree
from index.tables.free_kernels import give_back_rows, take_rows
from index.tables.run_kernels import NO_RUN
from safe_region.jit import leaf


@leaf
def lacks_nodes(tree: Tree, count: int) -> bool:
    """Return whether fewer nodes are free."""
    free = tree.nodes.shape[0] - tree.meta[L.NODE_END] + tree.meta[L.FREE_COUNT]
    if free >= count:
        return False
    tree.meta[L.NODES_NEEDED] = count
    return True


@leaf
def lacks_stack(tree: Tree, stack: Numbers, used: int, count: int) -> bool:
    """Return whether a stack has space for fewer entries."""
    if used + count <= stack.shape[0]:
        return False
    tree.meta[L.STACK_NEEDED] = used + count
    return True


@leaf
def part_class(count: int) -> int:
    """Return the size class of the smallest span for this many parts."""
    found = 1
    while 1 << found < count:
        found += 1
    return found


@leaf
def lacks_parts(tree: Tree, size_class: int) -> bool:
    """Return whether no span of parts can be allocated."""
    end = tree.meta[L.PART_END] + (1 << size_class)
    if tree.part_heads[size_class] != L.NOTHING or end <= tree.parts.shape[0]:
        return False
    tree.meta[L.PARTS_NEEDED] = 1 << size_class
    return True


@leaf
def lacks_new_parts(tree: Tree, size_class: int) -> bool:
    """Return whether a span of parts of this size, or of a smaller one, may be lacking."""
    if tree.meta[L.PART_END] + (1 << size_class) <= tree.parts.shape[0]:
        return False
    tree.meta[L.PARTS_NEEDED] = 1 << size_class
    return True


@leaf
def take_parts(tree: Tree, size_class: int) -> int:
    """Allocate a span of parts; return the first."""
    return take_rows(
        tree.parts["child"], tree.part_heads, size_class, tree.meta, L.PART_END, 1 << size_class
    )


@leaf
def free_parts(tree: Tree, node: int) -> None:
    """Free the parts of a node."""
    row = tree.nodes[node]
    give_back_rows(tree.parts["child"], tree.part_heads, int(row["room"]), int(row["start"]))


@leaf
def clear_part(tree: Tree, part: int) -> None:
    """Reset a part to an unused one."""
    row = tree.parts[part]
    row["low"] = 0.0
    row["high"] = 0.0
    row["child"] = L.NOTHING
    row["built"] = 0


@leaf
def take_node(tree: Tree, kind: int) -> int:
    """Allocate an empty leaf or pending node; the caller sets its place and purpose."""
    if tree.meta[L.FREE_NODE] != L.NOTHING:
        tree.meta[L.FREE_COUNT] -= 1
    node = take_rows(tree.nodes["parent"], tree.meta, L.FREE_NODE, tree.meta, L.NODE_END, 1)
    row = tree.nodes[node]
    row["kind"] = kind
    row["parent"] = L.NOTHING
    clear_node(row)
    return node


@leaf
def clear_node(row: Row) -> None:
    """Reset the content of a node."""
    row["start"] = NO_RUN
    row["count"] = 0
    row["weight"] = 0
    row["updates"] = 0
    row["changes"] = 0
    row["patience"] = 0
    row["x_count"] = 0
    row["room"] = NO_RUN
    row["is_based"] = 0


@leaf
def free_node(tree: Tree, node: int) -> None:
    """Free a node."""
    tree.nodes[node]["kind"] = L.FREE
    give_back_rows(tree.nodes["parent"], tree.meta, L.FREE_NODE, node)
    tree.meta[L.FREE_COUNT] += 1


@leaf
def copy_terms(source: Row, target: Row) -> None:
    """Copy the place of a node from another: its region, and its possible divisions."""
    target["x1_m"] = source["x1_m"]
    target["y1_m"] = source["y1_m"]
    target["x2_m"] = source["x2_m"]
    target["y2_m"] = source["y2_m"]
    target["offset"] = source["offset"]
    target["spread"] = source["spread"]
    target["has_keywords"] = source["has_keywords"]
    target["has_space"] = source["has_space"]
    target["depth"] = source["depth"]


@leaf
def make_child(tree: Tree, node: int, part: int, kind: int) -> int:
    """Create a child of a part; return it. The caller has verified that a node is free."""
    child = take_node(tree, kind)
    row = tree.nodes[node]
    mine = tree.nodes[child]
    copy_terms(row, mine)
    mine["parent"] = node
    start = int(row["start"])
    number = part - start
    if row["kind"] == L.KEYWORDS:
        if number == L.DUMMY:
            mine["has_keywords"] = 0
        else:
            mine["offset"] = row["offset"] + 1
    elif number == L.DUMMY:
        mine["has_space"] = 0
    else:
        _set_cell(tree, row, mine, number - 1)
    tree.parts[part]["child"] = child
    return child


@leaf
def _set_cell(tree: Tree, row: Row, mine: Row, cell: int) -> None:
    first = int(row["start"]) + 1
    columns = int(row["x_count"])
    lines = (int(row["count"]) - 1) // columns
    i, j = cell % columns, cell // columns
    mine["x1_m"] = tree.parts[first + i]["low"]
    mine["y1_m"] = tree.parts[first + j]["high"]
    if i + 1 < columns:
        mine["x2_m"] = tree.parts[first + i + 1]["low"]
    if j + 1 < lines:
        mine["y2_m"] = tree.parts[first + j + 1]["high"]
    mine["depth"] = row["depth"] + 1


@leaf
def column_at(tree: Tree, row: Row, x_m: float) -> int:
    """Return the column of cells that contains a coordinate; those at the border are unbounded."""
    first = int(row["start"]) + 1
    low, high = 0, int(row["x_count"]) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if tree.parts[first + middle]["low"] <= x_m:
            low = middle
        else:
            high = middle - 1
    return low


@leaf
def line_at(tree: Tree, row: Row, y_m: float) -> int:
    """Return the row of cells that contains a coordinate."""
    first = int(row["start"]) + 1
    low, high = 0, (int(row["count"]) - 1) // int(row["x_count"]) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if tree.parts[first + middle]["high"] <= y_m:
            low = middle
        else:
            high = middle - 1
    return low


@leaf
def has_within(row: Row, clause: Row) -> bool:
    """Return whether a clause contains the region of a node."""
    return bool(
        clause["x1_m"] <= row["x1_m"]
        and clause["y1_m"] <= row["y1_m"]
        and clause["x2_m"] >= row["x2_m"]
        and clause["y2_m"] >= row["y2_m"]
    )


@leaf
def cut_before(tree: Tree, row: Row, code: int, begin: int) -> int:
    """Return the last cut, from `begin` on, that begins at a code or before it; else `begin - 1`."""
    start = int(row["start"])
    low, high = begin - 1, int(row["count"]) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if tree.parts[start + middle]["low"] <= code:
            low = middle
        else:
            high = middle - 1
    return low


@leaf
def find_cut(tree: Tree, row: Row, code: int, begin: int) -> int:
    """Return the part whose cut contains a code, DUMMY if none. Cuts before `begin` are skipped."""
    number = cut_before(tree, row, code, begin)
    if number >= begin and code <= tree.parts[int(row["start"]) + number]["high"]:
        return number
    return L.DUMMY


@leaf
def _weight_of(tree: Tree, part: int) -> int:
    child = int(tree.parts[part]["child"])
    if child == L.NOTHING:
        return 0
    if tree.nodes[child]["kind"] == L.PENDING:
        return int(tree.nodes[child]["count"])
    return int(tree.nodes[child]["weight"])


@leaf
def _may_open(tree: Tree, row: Row) -> bool:
    """Return whether a node may have one more cut."""
    if tree.limits[L.VARIANT] == L.TRIE_QUADTREE:
        return True
    most = min(tree.limits[L.FANOUT], max(2, row["weight"] // tree.limits[L.PER_PART]))
    return bool(row["count"] <= most)


@leaf
def lacks_cut(tree: Tree, node: int, code: int) -> bool:
    """Return whether `place_in_cut` would lack space."""
    row = tree.nodes[node]
    if find_cut(tree, row, code, 1) != L.DUMMY or int(row["count"]) < 1 << int(row["room"]):
        return False
    return lacks_parts(tree, int(row["room"]) + 1)


@leaf
def place_in_cut(tree: Tree, node: int, code: int) -> int:
    """Return the part whose cut contains a code: an existing, a new, or an extended one."""
    row = tree.nodes[node]
    before = cut_before(tree, row, code, 1)
    start, count = int(row["start"]), int(row["count"])
    if before > 0 and code <= tree.parts[start + before]["high"]:
        return before
    if count == 1 or _may_open(tree, row):
        _open_cut(tree, node, before + 1, code)
        return before + 1
    if before == 0:
        is_next = True
    elif before == count - 1:
        is_next = False
    else:
        is_next = _weight_of(tree, start + before + 1) < _weight_of(tree, start + before)
    if is_next:
        tree.parts[start + before + 1]["low"] = code
        return before + 1
    tree.parts[start + before]["high"] = code
    return before


@leaf
def _open_cut(tree: Tree, node: int, number: int, code: int) -> None:
    row = tree.nodes[node]
    start, count, room = int(row["start"]), int(row["count"]), int(row["room"])
    if count == 1 << room:
        wider = take_parts(tree, room + 1)
        for i in range(count):
            tree.parts[wider + i] = tree.parts[start + i]
        free_parts(tree, node)
        row["start"] = wider
        row["room"] = room + 1
        start = wider
    for part in range(start + count, start + number, -1):
        tree.parts[part] = tree.parts[part - 1]
    clear_part(tree, start + number)
    tree.parts[start + number]["low"] = code
    tree.parts[start + number]["high"] = code
    row["count"] = count + 1


@leaf
def _lies_in(root_low: float, root_high: float, low: float, high: float, coordinate: float) -> bool:
    inside = min(max(coordinate, root_low), np.nextafter(root_high, -np.inf))
    return bool(low <= inside < high)


@leaf
def is_in_region(root: Row, row: Row, x_m: float, y_m: float) -> bool:
    """Return whether a position is in the region of a node; regions at the root's border are endless."""
    return _lies_in(root["x1_m"], root["x2_m"], row["x1_m"], row["x2_m"], x_m) and _lies_in(
        root["y1_m"], root["y2_m"], row["y1_m"], row["y2_m"], y_m
    )
