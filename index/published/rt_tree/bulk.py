"""Operations on an R-tree as a whole: loading it at once, sorted into tiles, and adding a root.

Operations: load O(clauses log clauses), raise O(1), below O(clauses).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from index.batches import Floats, Ints
from index.published.rt_tree import layout as L
from index.published.rt_tree.layout import Slots, Tree

FILL = 35
"""Children of a node: the average number when clauses are inserted one by one."""

_AXES = (("x1_m", "x2_m"), ("y1_m", "y2_m"))


def _lower(values: Floats) -> npt.NDArray[np.float32]:
    """Return float32, rounded down."""
    with np.errstate(over="ignore"):
        found = values.astype(np.float32)
    return np.where(found > values, np.nextafter(found, np.float32(-np.inf)), found)


def _upper(values: Floats) -> npt.NDArray[np.float32]:
    return -_lower(-values)


_SIDES = (
    ("x1_m", np.minimum.reduceat, _lower),
    ("y1_m", np.minimum.reduceat, _lower),
    ("x2_m", np.maximum.reduceat, _upper),
    ("y2_m", np.maximum.reduceat, _upper),
)


def levels(count: int) -> list[int]:
    """Return the number of nodes of each level, leaves first."""
    found = [-(-count // FILL)]
    while found[-1] > L.FANOUT:
        found.append(-(-found[-1] // FILL))
    return found if found[-1] == 1 else [*found, 1]


def load(tree: Tree, slots: Slots) -> None:
    """Make the nodes of a tree that has only an empty root, by STR. Space must be available."""
    rows = tree.clauses[slots]
    members: Ints = slots.astype(np.int64)
    boxes = {name: rows[name] for name, _, _ in _SIDES}
    tokens = rows["keyword_count"].astype(np.int64)
    live = np.ones(len(slots), dtype=np.int64)
    first = 0
    counts = levels(len(slots))
    for depth, count in enumerate(counts):
        x_m, y_m = (boxes[one] / 2 + boxes[other] / 2 for one, other in _AXES)
        order, owners = _tiles(x_m, y_m, count)
        nodes = first + np.arange(count)
        children = members[order]
        starts = np.searchsorted(owners, np.arange(count))
        tree.children[first + owners, np.arange(len(owners)) - starts[owners]] = children
        tree.nodes["count"][nodes] = np.bincount(owners, minlength=count)
        tree.nodes["is_leaf"][nodes] = depth == 0
        live, tokens = (np.add.reduceat(one[order], starts) for one in (live, tokens))
        tree.nodes["live"][nodes], tree.nodes["tokens"][nodes] = live, tokens
        if depth == 0:
            tree.clauses["leaf"][children] = first + owners
        else:
            tree.nodes["parent"][children] = first + owners
        for name, reduce, rounded in _SIDES:
            boxes[name] = reduce(boxes[name][order], starts)
            tree.nodes[name][nodes] = rounded(boxes[name])
        members = nodes
        first += count
    tree.meta[L.ROOT] = first - 1
    tree.meta[L.NODE_END] = first
    tree.meta[L.LEAF_DEPTH] = len(counts) - 1
    tree.nodes["parent"][first - 1] = L.NOTHING


def _tiles(x_m: Floats, y_m: Floats, count: int) -> tuple[Ints, Ints]:
    """Return an order of points, and for each in that order the number of its node, of `count` nodes."""
    slices = math.ceil(math.sqrt(count))
    size = len(x_m)
    by_x = np.argsort(x_m, kind="stable")
    column = np.empty(size, dtype=np.int64)
    column[by_x] = np.arange(size) * slices // size
    order = np.lexsort((y_m, column))
    return order, np.arange(size) * count // size


def raise_root(tree: Tree) -> int:
    """Create a new root above the old one, and return it. All tokens have to be inserted again."""
    meta, nodes = tree.meta, tree.nodes
    old, root = int(meta[L.ROOT]), int(meta[L.FREE_NODE])
    if root == L.NOTHING:
        root = int(meta[L.NODE_END])
        meta[L.NODE_END] += 1
    else:
        meta[L.FREE_NODE] = nodes["parent"][root]
    nodes[root] = nodes[old]
    nodes["is_leaf"][root], nodes["count"][root], nodes["parent"][root] = 0, 1, L.NOTHING
    tree.children[root, 0] = old
    nodes["parent"][old] = root
    meta[L.ROOT] = root
    meta[L.LEAF_DEPTH] += 1
    return root


def below(tree: Tree, node: int) -> Slots:
    """Return the slots of all clauses below a node."""
    nodes = np.array([node])
    while not tree.nodes["is_leaf"][nodes[0]]:
        nodes = _children(tree, nodes)
    found: Slots = _children(tree, nodes).astype(np.int32)
    return found


def _children(tree: Tree, nodes: Ints) -> Ints:
    is_there = np.arange(L.FANOUT) < tree.nodes["count"][nodes][:, None]
    found: Ints = tree.children[nodes][is_there].astype(np.int64)
    return found
