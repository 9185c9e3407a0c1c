"""Placement of subscriptions: algorithm 1 (Insert), section 4.4 (maintenance), and removal.

Pending work lies on a stack of (subscription, node): at each step one of them is placed at its node or
passed on to a child. A kernel that runs out of space stops between two steps and leaves the stack as it
is; the caller lengthens the arrays and calls again.
"""

from __future__ import annotations

import math

from index.batches import Floats
from index.published.sq_tree import layout as L
from index.published.sq_tree.bound_kernels import (
    common_needed,
    distance_to,
    expected_distance,
    raise_thresholds,
)
from index.published.sq_tree.cell_kernels import count_in, count_out, post, unpost
from index.published.sq_tree.layout import Row, Slots, Tree
from index.tables.id_map_kernels import LOAD_MAX
from safe_region.jit import kernel, leaf

DONE = 0
OUT_OF_ROOM = -1

_STALE_MIN = 16
"""Departures from a node before its thresholds are recomputed, in addition to as many as it has
subscriptions."""


@leaf
def init_node(tree: Tree, node: int, parent: int, x_m: float, y_m: float, half_m: float) -> None:
    """Make a node an empty leaf."""
    row = tree.nodes[node]
    row["x_m"] = x_m
    row["y_m"] = y_m
    row["half_m"] = half_m
    row["common"] = 0.0
    row["parent"] = parent
    row["first_child"] = L.NOTHING
    row["first"] = L.NOTHING
    row["own_count"] = 0
    row["subtree_count"] = 0
    row["stale_count"] = 0
    row["level"] = 0
    row["depth"] = 0 if parent == L.NOTHING else tree.nodes[parent]["depth"] + 1
    row["distance_m"] = 0.0
    if parent != L.NOTHING:
        row["distance_m"] = expected_distance(tree.nodes[L.ROOT], x_m, y_m, half_m)
    for common in range(L.COMMON_MAX + 1):
        tree.own_m[node, common] = -math.inf
        tree.subtree_m[node, common] = -math.inf


@kernel
def plant(tree: Tree, x_m: float, y_m: float, half_m: float) -> None:
    """Create an empty tree: the node of unbounded subscriptions, and the root."""
    tree.meta[L.NODE_END] = L.ROOT + 1
    tree.meta[L.FREE_NODES] = L.NOTHING
    tree.meta[L.CELL_END] = 0
    tree.meta[L.FREE_CELLS] = L.NOTHING
    tree.meta[L.CELL_COUNT] = 0
    tree.meta[L.STACK_SIZE] = 0
    init_node(tree, L.UNBOUNDED, L.NOTHING, x_m, y_m, math.inf)
    init_node(tree, L.ROOT, L.NOTHING, x_m, y_m, half_m)


@leaf
def child_of(tree: Tree, node: int, x_m: float, y_m: float) -> int:
    """Return the child of a node whose quarter contains a position."""
    row = tree.nodes[node]
    right = 1 if x_m >= row["x_m"] else 0
    above = 2 if y_m >= row["y_m"] else 0
    return int(row["first_child"]) + right + above


@leaf
def _expected_common(row: Row) -> float:
    """Return E[i_n], which is t_max at most (definition 7)."""
    return min(float(row["common"]), float(L.COMMON_MAX))


@leaf
def _has_room(tree: Tree, keyword_count: int) -> bool:
    """Return whether nodes, cells and stack have space for one more step."""
    if tree.meta[L.FREE_NODES] == L.NOTHING and tree.meta[L.NODE_END] + L.CHILDREN > tree.nodes.shape[0]:
        return False
    cells = tree.meta[L.CELL_COUNT] + keyword_count
    has_cells = tree.meta[L.CELL_END] + keyword_count <= tree.cells.shape[0]
    return bool(has_cells and cells <= tree.cell_keys.shape[0] * LOAD_MAX)


@leaf
def _push(tree: Tree, slot: int, node: int) -> None:
    size = tree.meta[L.STACK_SIZE]
    tree.stack_slots[size] = slot
    tree.stack_nodes[size] = node
    tree.meta[L.STACK_SIZE] = size + 1


@leaf
def _split(tree: Tree, node: int) -> None:
    """Give a leaf four children; `_distribute` fills them."""
    first = tree.meta[L.FREE_NODES]
    if first == L.NOTHING:
        first = tree.meta[L.NODE_END]
        tree.meta[L.NODE_END] += L.CHILDREN
    else:
        tree.meta[L.FREE_NODES] = tree.nodes[first]["first_child"]
    row = tree.nodes[node]
    row["first_child"] = first
    half = row["half_m"] / 2.0
    for quarter in range(L.CHILDREN):
        x_m = row["x_m"] + (half if quarter & 1 else -half)
        y_m = row["y_m"] + (half if quarter & 2 else -half)
        init_node(tree, first + quarter, node, x_m, y_m, half)


@leaf
def _distribute(tree: Tree, node: int) -> None:
    """Pass on the subscriptions that do not belong in an inner node (algorithm 1, lines 7 and 9)."""
    row = tree.nodes[node]
    expected = _expected_common(row)
    row["level"] = math.floor(expected)
    slot = row["first"]
    for common in range(L.COMMON_MAX + 1):
        tree.own_m[node, common] = -math.inf
    row["stale_count"] = 0
    while slot != L.NOTHING:
        following = tree.subscriptions[slot]["next"]
        if expected < common_needed(tree.subscriptions[slot], row["distance_m"]):
            raise_thresholds(tree.own_m[node], row, tree.subscriptions[slot])
        else:
            unpost(tree, slot)
            child = child_of(tree, node, tree.subscriptions[slot]["x_m"], tree.subscriptions[slot]["y_m"])
            _push(tree, slot, child)
        slot = following


@leaf
def _place(tree: Tree, slot: int, node: int) -> None:
    """Place a subscription at a node, or pass it on to a child."""
    row = tree.nodes[node]
    row["subtree_count"] += 1
    count_in(tree, node, slot)
    raise_thresholds(tree.subtree_m[node], row, tree.subscriptions[slot])
    if row["first_child"] == L.NOTHING:
        post(tree, node, slot)
        raise_thresholds(tree.own_m[node], row, tree.subscriptions[slot])
        if row["own_count"] > tree.capacity and row["depth"] < L.DEPTH_MAX and node != L.UNBOUNDED:
            _split(tree, node)
            _distribute(tree, node)
        return
    expected = _expected_common(row)
    if math.floor(expected) > row["level"]:
        _distribute(tree, node)
    if expected < common_needed(tree.subscriptions[slot], row["distance_m"]):
        post(tree, node, slot)
        raise_thresholds(tree.own_m[node], row, tree.subscriptions[slot])
    else:
        child = child_of(tree, node, tree.subscriptions[slot]["x_m"], tree.subscriptions[slot]["y_m"])
        _push(tree, slot, child)


@kernel
def work_off(tree: Tree) -> int:
    """Place the subscriptions on the stack. Returns DONE or OUT_OF_ROOM."""
    while tree.meta[L.STACK_SIZE] > 0:
        top = tree.meta[L.STACK_SIZE] - 1
        slot, node = tree.stack_slots[top], tree.stack_nodes[top]
        if not _has_room(tree, tree.subscriptions[slot]["keyword_count"]):
            return OUT_OF_ROOM
        tree.meta[L.STACK_SIZE] = top
        _place(tree, slot, node)
    return DONE


@kernel
def push_all(tree: Tree, slots: Slots) -> None:
    """Push subscriptions, with the root or the node of unbounded ones."""
    for i in range(slots.shape[0]):
        is_unbounded = math.isinf(tree.subscriptions[slots[i]]["reach_m"])
        _push(tree, slots[i], L.UNBOUNDED if is_unbounded else L.ROOT)


@leaf
def _tighten(tree: Tree, node: int) -> None:
    """Recompute the thresholds of S_n, and those of the subtrees that contain it.

    A subtree's are taken from its children's: add(R, n) only shrinks towards the root, so this is safe.
    """
    row = tree.nodes[node]
    row["stale_count"] = 0
    for common in range(L.COMMON_MAX + 1):
        tree.own_m[node, common] = -math.inf
    slot = row["first"]
    while slot != L.NOTHING:
        raise_thresholds(tree.own_m[node], row, tree.subscriptions[slot])
        slot = tree.subscriptions[slot]["next"]
    while node != L.NOTHING:
        first = tree.nodes[node]["first_child"]
        for common in range(L.COMMON_MAX + 1):
            value = tree.own_m[node, common]
            if first != L.NOTHING:
                for child in range(first, first + L.CHILDREN):
                    value = max(value, tree.subtree_m[child, common])
            tree.subtree_m[node, common] = value
        node = tree.nodes[node]["parent"]


@leaf
def _depart(tree: Tree, node: int) -> None:
    """Count a departure from S_n; recompute its thresholds from time to time."""
    tree.nodes[node]["stale_count"] += 1
    if tree.nodes[node]["stale_count"] > tree.nodes[node]["own_count"] + _STALE_MIN:
        _tighten(tree, node)


@leaf
def _merge(tree: Tree, node: int) -> None:
    """Move the subscriptions of four leaves to their parent, and free the leaves."""
    first = tree.nodes[node]["first_child"]
    for child in range(first, first + L.CHILDREN):
        while tree.nodes[child]["first"] != L.NOTHING:
            slot = tree.nodes[child]["first"]
            unpost(tree, slot)
            count_out(tree, child, slot)
            post(tree, node, slot)
    tree.nodes[node]["first_child"] = L.NOTHING
    tree.nodes[first]["first_child"] = tree.meta[L.FREE_NODES]
    tree.meta[L.FREE_NODES] = first
    _tighten(tree, node)


@leaf
def _can_merge(tree: Tree, node: int) -> bool:
    first = tree.nodes[node]["first_child"]
    if first == L.NOTHING or tree.nodes[node]["subtree_count"] > tree.capacity // 2:
        return False
    for child in range(first, first + L.CHILDREN):
        if tree.nodes[child]["first_child"] != L.NOTHING:
            return False
    return True


@leaf
def _take_out(tree: Tree, slot: int) -> None:
    """Remove a subscription from its node and all ancestors."""
    node = tree.subscriptions[slot]["node"]
    unpost(tree, slot)
    _depart(tree, node)
    while node != L.NOTHING:
        tree.nodes[node]["subtree_count"] -= 1
        count_out(tree, node, slot)
        if _can_merge(tree, node):
            _merge(tree, node)
        node = tree.nodes[node]["parent"]


@kernel
def take_out_all(tree: Tree, slots: Slots) -> None:
    """Remove subscriptions from the tree."""
    for i in range(slots.shape[0]):
        _take_out(tree, slots[i])


@leaf
def _belongs(tree: Tree, node: int, x_m: float, y_m: float) -> bool:
    """Return whether a position is in the area of a node; beyond the root, in that of a border node."""
    root = tree.nodes[L.ROOT]
    x_m = min(max(x_m, root["x_m"] - root["half_m"]), root["x_m"] + root["half_m"])
    y_m = min(max(y_m, root["y_m"] - root["half_m"]), root["y_m"] + root["half_m"])
    return distance_to(tree.nodes[node], x_m, y_m) == 0.0


@kernel
def move_all(
    tree: Tree, slots: Slots, x_m: Floats, y_m: Floats, radius_m: Floats, reach_m: Floats
) -> None:
    """Change the positions and reaches of subscriptions; those that leave their node go on the stack.

    A subscription that stays only raises thresholds (section 4.4).
    """
    for i in range(slots.shape[0]):
        slot = slots[i]
        row = tree.subscriptions[slot]
        node = row["node"]
        stays = (node == L.UNBOUNDED) == math.isinf(reach_m[i])
        if stays and node != L.UNBOUNDED:
            stays = _belongs(tree, node, x_m[i], y_m[i])
        if not stays:
            _take_out(tree, slot)
        row["x_m"] = x_m[i]
        row["y_m"] = y_m[i]
        row["radius_m"] = radius_m[i]
        row["reach_m"] = reach_m[i]
        if not stays:
            _push(tree, slot, L.UNBOUNDED if math.isinf(reach_m[i]) else L.ROOT)
        elif node != L.UNBOUNDED:
            raise_thresholds(tree.own_m[node], tree.nodes[node], row)
            _depart(tree, node)
            while node != L.NOTHING:
                raise_thresholds(tree.subtree_m[node], tree.nodes[node], row)
                node = tree.nodes[node]["parent"]
