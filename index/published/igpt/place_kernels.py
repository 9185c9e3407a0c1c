"""Insertion, removal and moves of subscriptions (section 5.5).

Subscriptions without a leaf are pending on a stack. `work_off` places them one by one, keyword by
keyword, and stops if space is lacking, to continue there. A leaf beyond its capacity is divided: its
lists are freed, and all its subscriptions become pending. The same happens to four leaves that have half
a capacity or less together.
"""

from __future__ import annotations

from index.batches import Floats, Ints
from index.published.igpt import layout as L
from index.published.igpt.bound_kernels import (
    inner_distance,
    is_in_cell,
    outer_reach,
    statistics_of,
)
from index.published.igpt.cell_kernels import (
    add_member,
    change_reach,
    clear_leaf,
    leaf_at,
    remove_member,
    spread_reach,
)
from index.published.igpt.group_kernels import rewrite_entry
from index.published.igpt.layout import Slots, Tree
from index.published.igpt.list_kernels import (
    drop_list,
    group_in,
    insert_in_list,
    list_of,
    remove_from_list,
)
from index.tables.quad_kernels import free_group, group_room, set_children, set_root, take_group
from index.tables.vector_kernels import write_vector
from safe_region.jit import kernel, leaf


@kernel
def plant(tree: Tree, x_m: float, y_m: float, half_m: float) -> None:
    """Create a root, which is an empty leaf."""
    set_root(tree.cells, take_group(tree.cells, tree.meta), x_m, y_m, half_m)
    clear_leaf(tree, L.ROOT)


@leaf
def _push(tree: Tree, slot: int) -> None:
    tree.stack[tree.meta[L.STACK_SIZE]] = slot
    tree.meta[L.STACK_SIZE] += 1


@leaf
def _write_vector(tree: Tree, slot: int) -> int:
    """Write the vector of a subscription to the scratch; return the number of its keywords."""
    row = tree.subscriptions[slot]
    start = int(row["keyword_start"])
    words = tree.pool[start : start + int(row["keyword_count"])]
    return write_vector(tree.vector, words, tree.squares, tree.uses, row["norm2"])


@leaf
def _give_up(tree: Tree, cell: int) -> None:
    """Make all subscriptions of a leaf pending, and free its lists."""
    slot = int(tree.cells[cell]["first"])
    while slot != L.NOTHING:
        row = tree.subscriptions[slot]
        start = int(row["keyword_start"])
        for i in range(start, start + int(row["keyword_count"])):
            drop_list(tree, cell, tree.pool[i])
        row["cell"] = L.NOTHING
        _push(tree, slot)
        slot = int(row["next"])
    clear_leaf(tree, cell)


@leaf
def _split(tree: Tree, cell: int) -> None:
    """Divide a leaf; the caller has verified the capacity for its children."""
    _give_up(tree, cell)
    first = take_group(tree.cells, tree.meta)
    set_children(tree.cells, cell, first)
    for child in range(first, first + L.CHILDREN):
        clear_leaf(tree, child)
    spread_reach(tree, cell)


@leaf
def _merge(tree: Tree, cell: int) -> None:
    """Turn a cell into a leaf if its children are leaves with few subscriptions."""
    if cell == L.NOTHING:
        return
    first = int(tree.cells[cell]["first_child"])
    total = 0
    for child in range(first, first + L.CHILDREN):
        if tree.cells[child]["first_child"] != L.NOTHING:
            return
        total += int(tree.cells[child]["count"])
    if total > tree.settings.capacity // 2:
        return
    for child in range(first, first + L.CHILDREN):
        _give_up(tree, child)
    tree.cells[cell]["first_child"] = L.NOTHING
    free_group(tree.cells, tree.meta, first)
    clear_leaf(tree, cell)
    spread_reach(tree, cell)


@leaf
def _place(tree: Tree, slot: int) -> bool:
    """Insert a subscription into its leaf, from the keyword at which space was lacking."""
    row = tree.subscriptions[slot]
    cell = leaf_at(tree, row["x_m"], row["y_m"])
    own = statistics_of(tree, row)
    inner = inner_distance(tree, cell, row)
    count = _write_vector(tree, slot)
    for number in range(int(tree.meta[L.DONE_STEPS]), count):
        if not insert_in_list(tree, cell, tree.vector.words[number], slot, number, inner, own):
            tree.meta[L.DONE_STEPS] = number
            return False
    tree.meta[L.DONE_STEPS] = 0
    return True


@kernel
def work_off(tree: Tree) -> bool:
    """Place all pending subscriptions; return whether all are done, else more space is needed."""
    while tree.meta[L.STACK_SIZE] > 0:
        if group_room(tree.cells, tree.meta) == 0:
            tree.meta[L.CELLS_WANTED] = 1
            return False
        slot = int(tree.stack[tree.meta[L.STACK_SIZE] - 1])
        if not _place(tree, slot):
            return False
        tree.meta[L.STACK_SIZE] -= 1
        row = tree.subscriptions[slot]
        cell = leaf_at(tree, row["x_m"], row["y_m"])
        add_member(tree, cell, slot)
        if tree.cells[cell]["count"] > tree.settings.capacity and tree.cells[cell]["depth"] < L.DEPTH_MAX:
            _split(tree, cell)
    return True


@kernel
def push_all(tree: Tree, slots: Slots) -> None:
    """Make subscriptions pending."""
    for slot in slots:
        tree.subscriptions[slot]["cell"] = L.NOTHING
        _push(tree, slot)


@leaf
def _take_out(tree: Tree, slot: int) -> None:
    """Remove a subscription from its leaf."""
    row = tree.subscriptions[slot]
    cell = int(row["cell"])
    own = statistics_of(tree, row)
    start = int(row["keyword_start"])
    for i in range(start, start + int(row["keyword_count"])):
        remove_from_list(tree, cell, tree.pool[i], slot, own)
    remove_member(tree, slot)
    _merge(tree, int(tree.cells[cell]["parent"]))


@kernel
def take_out_all(tree: Tree, slots: Slots) -> None:
    """Remove subscriptions. Their neighbours may be pending afterwards."""
    for i in range(slots.shape[0]):
        if tree.subscriptions[slots[i]]["cell"] == L.NOTHING:
            _take_from_stack(tree, slots[i])
        else:
            _take_out(tree, slots[i])


@leaf
def _take_from_stack(tree: Tree, slot: int) -> None:
    """Remove a subscription from the pending ones."""
    size = int(tree.meta[L.STACK_SIZE]) - 1
    place = size
    while tree.stack[place] != slot:
        place -= 1
    tree.stack[place] = tree.stack[size]
    tree.meta[L.STACK_SIZE] = size


@leaf
def _write_place(
    tree: Tree, slot: int, x_m: float, y_m: float, radius_m: float, reach_m: float, reach_id: int
) -> None:
    row = tree.subscriptions[slot]
    row["x_m"] = x_m
    row["y_m"] = y_m
    row["radius_m"] = radius_m
    row["reach_m"] = reach_m
    row["reach_id"] = reach_id


@kernel
def move_all(
    tree: Tree,
    slots: Slots,
    x_m: Floats,
    y_m: Floats,
    radius_m: Floats,
    reach_m: Floats,
    reach_id: Ints,
) -> None:
    """Change positions and reaches; those that leave their leaf, or become apart, are pending."""
    for i in range(slots.shape[0]):
        slot = slots[i]
        row = tree.subscriptions[slot]
        cell = int(row["cell"])
        place = (x_m[i], y_m[i], radius_m[i], reach_m[i], reach_id[i])
        if cell == L.NOTHING:
            _write_place(tree, slot, *place)
            continue
        before = statistics_of(tree, row)
        reach = outer_reach(row)
        was = (row["x_m"], row["y_m"], row["radius_m"], row["reach_m"], row["reach_id"])
        _write_place(tree, slot, *place)
        after = statistics_of(tree, row)
        if before.is_apart != after.is_apart or not is_in_cell(tree, cell, x_m[i], y_m[i]):
            _write_place(tree, slot, *was)
            _take_out(tree, slot)
            _write_place(tree, slot, *place)
            _push(tree, slot)
            continue
        inner = inner_distance(tree, cell, row)
        start = int(row["keyword_start"])
        for j in range(start, start + int(row["keyword_count"])):
            group = group_in(tree, list_of(tree, cell, tree.pool[j]), after)
            rewrite_entry(tree, group, slot, before, after, inner)
        change_reach(tree, cell, reach, outer_reach(row))
