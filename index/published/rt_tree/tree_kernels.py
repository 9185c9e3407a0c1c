"""Insertion and removal of clauses in an R-tree.

If space is lacking, `insert` returns a status between two clauses, and continues from the clause that it
returns.
"""

from __future__ import annotations

from index.batches import Floats
from index.published.rt_tree import layout as L
from index.published.rt_tree.layout import Row, Slots, Tree
from index.published.rt_tree.list_kernels import DONE, NODES_FULL, ROOT_FULL
from index.published.rt_tree.token_kernels import (
    clear,
    enter_clause,
    fill,
    leave_clause,
    room_for_one,
    room_for_two,
)
from index.tables.box_kernels import cover_row, empty, enlargement
from index.tables.free_kernels import take_rows
from safe_region.jit import kernel, leaf

_HALF = L.FANOUT // 2


@leaf
def _take_node(tree: Tree, parent: int, is_leaf: int) -> int:
    """Return an empty node."""
    node = take_rows(tree.nodes["parent"], tree.meta, L.FREE_NODE, tree.meta, L.NODE_END, 1)
    row = tree.nodes[node]
    row["parent"] = parent
    row["count"] = 0
    row["live"] = 0
    row["tokens"] = 0
    row["is_leaf"] = is_leaf
    empty(row)
    return node


@leaf
def _add_child(tree: Tree, node: int, child: int) -> None:
    """Add a node, or a clause, to a node that has space; its box, and those above, do not change."""
    row = tree.nodes[node]
    tree.children[node, row["count"]] = child
    row["count"] += 1
    if row["is_leaf"]:
        row["live"] += 1
        row["tokens"] += tree.clauses[child]["keyword_count"]
        tree.clauses[child]["leaf"] = node
    else:
        row["live"] += tree.nodes[child]["live"]
        row["tokens"] += tree.nodes[child]["tokens"]
        tree.nodes[child]["parent"] = node


@leaf
def tighten(tree: Tree, node: int) -> None:
    """Shrink the box of a node to its children."""
    row = tree.nodes[node]
    empty(row)
    for place in range(row["count"]):
        child = int(tree.children[node, place])
        if row["is_leaf"]:
            cover_row(row, tree.clauses[child])
        else:
            cover_row(row, tree.nodes[child])


@leaf
def _middle(row: Row, axis: int) -> float:
    """Return the centre of a box along an axis."""
    if axis == 0:
        return float(row["x1_m"]) / 2.0 + float(row["x2_m"]) / 2.0
    return float(row["y1_m"]) / 2.0 + float(row["y2_m"]) / 2.0


@leaf
def _sort_children(tree: Tree, node: int, middles: Floats) -> None:
    """Sort the children of a node along the longer side of its box."""
    row = tree.nodes[node]
    axis = int(float(row["y2_m"]) - float(row["y1_m"]) > float(row["x2_m"]) - float(row["x1_m"]))
    for i in range(row["count"]):
        child = int(tree.children[node, i])
        is_leaf = row["is_leaf"]
        here = _middle(tree.clauses[child], axis) if is_leaf else _middle(tree.nodes[child], axis)
        j = i
        while j > 0 and middles[j - 1] > here:
            middles[j] = middles[j - 1]
            tree.children[node, j] = tree.children[node, j - 1]
            j -= 1
        middles[j] = here
        tree.children[node, j] = child


@leaf
def _split(tree: Tree, node: int, middles: Floats) -> int:
    """Split a full node into two halves; its parent has space. Return the other half."""
    clear(tree, node)
    _sort_children(tree, node, middles)
    row = tree.nodes[node]
    parent = int(row["parent"])
    other = _take_node(tree, parent, int(row["is_leaf"]))
    row["count"] = 0
    row["live"] = 0
    row["tokens"] = 0
    for i in range(L.FANOUT):
        _add_child(tree, node if i < _HALF else other, int(tree.children[node, i]))
    tighten(tree, node)
    tighten(tree, other)
    tree.children[parent, tree.nodes[parent]["count"]] = other
    tree.nodes[parent]["count"] += 1
    fill(tree, node)
    fill(tree, other)
    return other


@leaf
def _growth(tree: Tree, node: int, clause: Row) -> float:
    """Return the growth of the box of a node that is enlarged to contain a clause."""
    return enlargement(
        tree.nodes[node],
        float(clause["x1_m"]),
        float(clause["y1_m"]),
        float(clause["x2_m"]),
        float(clause["y2_m"]),
    )


@leaf
def _choose(tree: Tree, node: int, clause: Row) -> int:
    """Return the child whose box grows least."""
    best = int(tree.children[node, 0])
    least = _growth(tree, best, clause)
    for i in range(1, tree.nodes[node]["count"]):
        child = int(tree.children[node, i])
        grown = _growth(tree, child, clause)
        if grown < least:
            best = child
            least = grown
    return best


@leaf
def _insert_one(tree: Tree, slot: int, middles: Floats) -> int:
    """Insert a clause into a leaf; full nodes on the path are split. Return a status."""
    status = room_for_one(tree, slot)
    if status != DONE:
        return status
    clause = tree.clauses[slot]
    node = int(tree.meta[L.ROOT])
    if tree.meta[L.KIND] == L.FLAT:
        clause["leaf"] = node
        enter_clause(tree, slot)
        return DONE
    if tree.nodes[node]["count"] == L.FANOUT:
        return ROOT_FULL
    while not tree.nodes[node]["is_leaf"]:
        child = _choose(tree, node, clause)
        if tree.nodes[child]["count"] == L.FANOUT:
            status = room_for_two(tree, child)
            if status != DONE:
                return status
            other = _split(tree, child, middles)
            if _growth(tree, other, clause) < _growth(tree, child, clause):
                child = other
        node = child
    # A split may have used the space.
    status = room_for_one(tree, slot)
    if status != DONE:
        return status
    _add_child(tree, node, slot)
    cover_row(tree.nodes[node], clause)
    above = int(tree.nodes[node]["parent"])
    while above != L.NOTHING:
        tree.nodes[above]["live"] += 1
        tree.nodes[above]["tokens"] += clause["keyword_count"]
        cover_row(tree.nodes[above], clause)
        above = int(tree.nodes[above]["parent"])
    enter_clause(tree, slot)
    return DONE


@kernel
def insert(tree: Tree, slots: Slots, done: int, middles: Floats) -> tuple[int, int]:
    """Insert clauses, from one on; return the next one, and a status."""
    while done < slots.shape[0]:
        if tree.meta[L.NODE_END] + L.DEPTH_MAX > tree.nodes.shape[0]:
            return done, NODES_FULL
        status = _insert_one(tree, int(slots[done]), middles)
        if status != DONE:
            return done, status
        done += 1
    return done, DONE


@kernel
def enter_all(tree: Tree, slots: Slots, done: int) -> tuple[int, int]:
    """Insert the tokens of clauses, from one on; return the next one, and a status."""
    while done < slots.shape[0]:
        status = room_for_one(tree, int(slots[done]))
        if status != DONE:
            return done, status
        enter_clause(tree, int(slots[done]))
        done += 1
    return done, DONE


@leaf
def _drop_child(tree: Tree, node: int, child: int) -> None:
    """Remove a child from a node."""
    row = tree.nodes[node]
    place = 0
    while tree.children[node, place] != child:
        place += 1
    row["count"] -= 1
    tree.children[node, place] = tree.children[node, row["count"]]


@kernel
def remove(tree: Tree, slots: Slots) -> None:
    """Remove clauses, and nodes without clauses."""
    for i in range(slots.shape[0]):
        slot = int(slots[i])
        leave_clause(tree, slot)
        if tree.meta[L.KIND] == L.FLAT:
            continue
        child = slot
        node = int(tree.clauses[slot]["leaf"])
        is_gone = True
        while node != L.NOTHING:
            row = tree.nodes[node]
            parent = int(row["parent"])
            row["live"] -= 1
            row["tokens"] -= tree.clauses[slot]["keyword_count"]
            if is_gone:
                _drop_child(tree, node, child)
            tighten(tree, node)
            is_gone = row["count"] == 0 and parent != L.NOTHING
            if is_gone:
                row["parent"] = tree.meta[L.FREE_NODE]
                tree.meta[L.FREE_NODE] = node
            child = node
            node = parent
        root = tree.nodes[tree.meta[L.ROOT]]
        if root["count"] == 0:
            root["is_leaf"] = 1
            tree.meta[L.LEAF_DEPTH] = 0
