"""Insertion and removal of objects: see `index.published.ir_tree.index` for the plan.

If space is lacking, `insert` and `remove` return a status between two objects, and continue from the row
that they return.
"""

from __future__ import annotations

from index.batches import Floats
from index.published.ir_tree import layout as L
from index.published.ir_tree.box_kernels import tighten
from index.published.ir_tree.file_kernels import (
    DONE,
    KEYS_FULL,
    NODES_FULL,
    expect,
    has_room,
    make_pending,
    note,
    retire,
)
from index.published.ir_tree.layout import Slots, Tree
from index.tables.box_kernels import cover, enlargement
from index.tables.buckets.layout import Objects
from safe_region.jit import kernel, leaf

_HALF = L.FANOUT // 2


@leaf
def _take_node(tree: Tree, parent: int, is_leaf: int) -> int:
    """Return an empty node."""
    node = int(tree.meta[L.FREE_NODE])
    if node == L.NOTHING:
        node = int(tree.meta[L.NODE_END])
        tree.meta[L.NODE_END] += 1
    else:
        tree.meta[L.FREE_NODE] = tree.nodes[node]["parent"]
    row = tree.nodes[node]
    row["parent"] = parent
    row["file"] = L.NOTHING
    row["count"] = 0
    row["live"] = 0
    row["gone"] = 0
    row["is_leaf"] = is_leaf
    return node


@leaf
def _add_child(tree: Tree, node: int, child: int, objects: Objects) -> None:
    """Add a node, or the slot of an object, to a node that has space."""
    row = tree.nodes[node]
    tree.children[node, row["count"]] = child
    row["count"] += 1
    if row["is_leaf"]:
        row["live"] += 1
        objects.places[objects.rows[child]["keyword_start"]] = node
    else:
        row["live"] += tree.nodes[child]["live"]
        tree.nodes[child]["parent"] = node


@leaf
def _drop_child(tree: Tree, node: int, child: int) -> None:
    """Remove a child; the counts of objects are not updated."""
    row = tree.nodes[node]
    place = 0
    while tree.children[node, place] != child:
        place += 1
    row["count"] -= 1
    tree.children[node, place] = tree.children[node, row["count"]]


@leaf
def _middle(tree: Tree, node: int, child: int, objects: Objects, axis: int) -> float:
    """Return the centre of a child along an axis."""
    if tree.nodes[node]["is_leaf"]:
        row = objects.rows[child]
        return float(row["x_m"]) if axis == 0 else float(row["y_m"])
    box = tree.nodes[child]
    if axis == 0:
        return (float(box["x1_m"]) + float(box["x2_m"])) / 2.0
    return (float(box["y1_m"]) + float(box["y2_m"])) / 2.0


@leaf
def _sort_children(tree: Tree, node: int, objects: Objects, middles: Floats) -> None:
    """Sort the children of a node along the longer side of its box."""
    row = tree.nodes[node]
    axis = int(float(row["y2_m"]) - float(row["y1_m"]) > float(row["x2_m"]) - float(row["x1_m"]))
    for i in range(row["count"]):
        child = int(tree.children[node, i])
        here = _middle(tree, node, child, objects, axis)
        j = i
        while j > 0 and middles[j - 1] > here:
            middles[j] = middles[j - 1]
            tree.children[node, j] = tree.children[node, j - 1]
            j -= 1
        middles[j] = here
        tree.children[node, j] = child


@leaf
def _split(tree: Tree, node: int, objects: Objects, middles: Floats) -> None:
    """Split a full node into two halves; its parent has space."""
    _sort_children(tree, node, objects, middles)
    row = tree.nodes[node]
    other = _take_node(tree, int(row["parent"]), int(row["is_leaf"]))
    row["count"] = 0
    row["live"] = 0
    for i in range(L.FANOUT):
        _add_child(tree, node if i < _HALF else other, int(tree.children[node, i]), objects)
    tighten(tree, node, objects)
    tighten(tree, other, objects)
    parent = int(row["parent"])
    tree.children[parent, tree.nodes[parent]["count"]] = other
    tree.nodes[parent]["count"] += 1
    expect(tree, node)
    expect(tree, other)


@leaf
def _raise_root(tree: Tree, objects: Objects) -> None:
    """Create a new root above the old one."""
    old = int(tree.meta[L.ROOT])
    root = _take_node(tree, L.NOTHING, 0)
    tree.meta[L.ROOT] = root
    _add_child(tree, root, old, objects)
    tighten(tree, root, objects)
    expect(tree, root)


@leaf
def _choose(tree: Tree, node: int, x_m: float, y_m: float) -> int:
    """Return the child whose box grows least."""
    best = int(tree.children[node, 0])
    least = enlargement(tree.nodes[best], x_m, y_m, x_m, y_m)
    for i in range(1, tree.nodes[node]["count"]):
        child = int(tree.children[node, i])
        grown = enlargement(tree.nodes[child], x_m, y_m, x_m, y_m)
        if grown < least:
            best = child
            least = grown
    return best


@leaf
def _insert_one(tree: Tree, objects: Objects, slot: int, middles: Floats) -> None:
    """Insert an object into a leaf; full nodes on the path are split."""
    x_m, y_m = float(objects.rows[slot]["x_m"]), float(objects.rows[slot]["y_m"])
    if tree.nodes[tree.meta[L.ROOT]]["count"] == L.FANOUT:
        _raise_root(tree, objects)
    node = int(tree.meta[L.ROOT])
    while True:
        cover(tree.nodes[node], x_m, y_m, x_m, y_m)
        if tree.nodes[node]["file"] != L.NOTHING:
            note(tree, int(tree.nodes[node]["file"]), objects, slot)
        if tree.nodes[node]["is_leaf"]:
            if tree.nodes[node]["file"] == L.NOTHING and tree.nodes[node]["parent"] == L.NOTHING:
                expect(tree, node)
            _add_child(tree, node, slot, objects)
            return
        tree.nodes[node]["live"] += 1
        child = _choose(tree, node, x_m, y_m)
        if tree.nodes[child]["count"] == L.FANOUT:
            _split(tree, child, objects, middles)
            other = int(tree.children[node, tree.nodes[node]["count"] - 1])
            least = enlargement(tree.nodes[child], x_m, y_m, x_m, y_m)
            if enlargement(tree.nodes[other], x_m, y_m, x_m, y_m) < least:
                child = other
        node = child


@kernel
def insert(tree: Tree, objects: Objects, slots: Slots, done: int, middles: Floats) -> tuple[int, int]:
    """Insert objects, from row `done` on; return the next row, and a status."""
    while True:
        status = make_pending(tree, objects)
        if status != DONE or done == slots.shape[0]:
            return done, status
        if tree.meta[L.NODE_END] + L.DEPTH_MAX > tree.nodes.shape[0]:
            return done, NODES_FULL
        if not has_room(tree, L.DEPTH_MAX * int(objects.rows[slots[done]]["keyword_count"])):
            return done, KEYS_FULL
        _insert_one(tree, objects, int(slots[done]), middles)
        done += 1


@leaf
def _free(tree: Tree, node: int) -> None:
    """Free a node that has no objects below."""
    retire(tree, node)
    tree.nodes[node]["parent"] = tree.meta[L.FREE_NODE]
    tree.meta[L.FREE_NODE] = node


@leaf
def _remove_one(tree: Tree, objects: Objects, slot: int) -> None:
    """Remove an object from its leaf, and nodes without objects."""
    node = int(objects.places[objects.rows[slot]["keyword_start"]])
    _drop_child(tree, node, slot)
    while node != L.NOTHING:
        row = tree.nodes[node]
        parent = int(row["parent"])
        row["live"] -= 1
        row["gone"] += 1
        if row["live"] == 0 and parent != L.NOTHING:
            _drop_child(tree, parent, node)
            _free(tree, node)
        elif row["gone"] > L.FANOUT and row["gone"] > row["live"]:
            expect(tree, node)
        node = parent
    root = int(tree.meta[L.ROOT])
    if tree.nodes[root]["live"] == 0:
        tree.nodes[root]["is_leaf"] = 1
        tree.nodes[root]["count"] = 0
        tree.nodes[root]["gone"] = 0
        retire(tree, root)
        tighten(tree, root, objects)


@kernel
def remove(tree: Tree, objects: Objects, slots: Slots, done: int) -> tuple[int, int]:
    """Remove objects, from row `done` on; return the next row, and a status."""
    while True:
        status = make_pending(tree, objects)
        if status != DONE or done == slots.shape[0]:
            return done, status
        _remove_one(tree, objects, int(slots[done]))
        done += 1
