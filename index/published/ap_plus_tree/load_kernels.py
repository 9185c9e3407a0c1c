"""Objects during rebuilds of nodes: removed before and inserted again afterwards.

They are also inserted into new subtrees, and dead ones are swept out of lists.
"""

from __future__ import annotations

from index.published.ap_plus_tree import layout as L
from index.published.ap_plus_tree.layout import Lists
from index.published.ap_plus_tree.list_kernels import drop_item, find_item, first_size, is_alive
from index.published.ap_plus_tree.object_kernels import (
    box_of,
    codes_of,
    place_beside,
    place_in_part,
    place_object,
)
from index.published.ap_tree import layout as T
from index.published.ap_tree.layout import Numbers, Tree
from safe_region.jit import kernel, leaf


@leaf
def _empty(tree: Tree, lists: Lists, one: int, gathers: bool) -> int:  # noqa: FBT001
    """Free all items of a list, gathering live objects; return the number of items."""
    count = int(lists.counts[one])
    while lists.counts[one] > 0:
        place = (int(lists.heads[one]) - 1) * L.CHUNK_LENGTH + first_size(lists, one) - 1
        item = lists.items[place]
        slot = int(item["slot"])
        row = lists.objects[slot]
        if gathers and row["mark"] != lists.state[L.MARK] and is_alive(lists, item):
            row["mark"] = lists.state[L.MARK]
            lists.load[lists.state[L.LOADED]] = slot
            lists.state[L.LOADED] += 1
        drop_item(tree, lists, one, place)
    return count


@leaf
def _empty_below(
    tree: Tree,
    lists: Lists,
    stack: Numbers,
    used: int,
    budget: int,
    gathers: bool,  # noqa: FBT001
) -> int:
    """Free the lists of a stack of nodes and parts, and below; return the remaining budget."""
    while used > 0 and budget > 0:
        node, part = int(stack[2 * used - 2]), int(stack[2 * used - 1])
        row = tree.nodes[node]
        if part == T.NOTHING:
            for one in range(L.LISTS * node, L.LISTS * node + L.LISTS):
                budget -= _empty(tree, lists, one, gathers)
        part += 1
        budget -= 1
        if row["kind"] not in (T.KEYWORDS, T.SPACE) or part >= row["count"]:
            used -= 1
            continue
        stack[2 * used - 1] = part
        child = int(tree.parts[int(row["start"]) + part]["child"])
        if child != T.NOTHING:
            stack[2 * used] = child
            stack[2 * used + 1] = T.NOTHING
            used += 1
    return used


@kernel
def take_off(tree: Tree, lists: Lists, node: int) -> None:
    """Gather the live objects of a node and below in `lists.load`, and empty all lists there."""
    lists.state[L.MARK] += 1
    lists.state[L.LOADED] = 0
    lists.stack[0] = node
    lists.stack[1] = T.NOTHING
    _empty_below(tree, lists, lists.stack, 1, 1 << 60, True)


@leaf
def _write_path(tree: Tree, lists: Lists, node: int) -> None:
    """Write the ancestors of a node, and the parts that lead to it, from below.

    The path of a new subtree is that of the subtree which it replaces.
    """
    count = 0
    here = node
    while True:
        above = int(tree.nodes[here]["parent"])
        if above == T.NOTHING and here == tree.meta[T.JOB_NEW] and tree.meta[T.JOB_OLD] != T.NOTHING:
            here = int(tree.meta[T.JOB_OLD])
            above = int(tree.nodes[here]["parent"])
        if above == T.NOTHING:
            break
        number = 0
        start = int(tree.nodes[above]["start"])
        while tree.parts[start + number]["child"] != here:
            number += 1
        lists.path[2 * count] = above
        lists.path[2 * count + 1] = number
        count += 1
        here = above
    lists.state[L.PATH_COUNT] = count


@leaf
def _follow_path(tree: Tree, lists: Lists, order: Numbers, slot: int) -> int:
    """Return an object's position in its codes at the end of the path; NOTHING if not stored there."""
    code_count = codes_of(lists, order, slot)
    one = lists.objects[slot]
    box = box_of(one)
    begin = 0
    for i in range(lists.state[L.PATH_COUNT] - 1, -1, -1):
        node, number = int(lists.path[2 * i]), int(lists.path[2 * i + 1])
        if one["stops"] > 0 and find_item(lists, L.LISTS * node + L.KEPT, slot) != T.NOTHING:
            return T.NOTHING
        begin = place_in_part(tree, lists, tree.nodes[node], number, begin, code_count, box)
        if begin == T.NOTHING:
            return T.NOTHING
    return begin


@kernel
def put_back(tree: Tree, lists: Lists, order: Numbers, node: int) -> int:
    """Store the objects of `lists.load` in a node and below; continue at `state[PUT_AT]`.

    Returns FINISHED or OUT_OF_ROOM. Objects that do not belong there are skipped.
    """
    state = lists.state
    _write_path(tree, lists, node)
    while state[L.PUT_AT] < state[L.LOADED]:
        slot = int(lists.load[state[L.PUT_AT]])
        begin = _follow_path(tree, lists, order, slot)
        if begin != T.NOTHING and not place_object(tree, lists, order, slot, node, begin, 0):
            return T.OUT_OF_ROOM
        state[L.PUT_AT] += 1
    return T.FINISHED


@kernel
def carry(tree: Tree, lists: Lists, end: int, budget: int) -> int:
    """Store about `budget` objects, from slot `state[CARRY_AT]` on, in the new subtree.

    Returns FINISHED, MORE, or OUT_OF_ROOM.
    """
    state = lists.state
    _write_path(tree, lists, int(tree.meta[T.JOB_NEW]))
    while state[L.CARRY_AT] < end:
        if budget <= 0:
            return T.MORE
        slot = int(state[L.CARRY_AT])
        row = lists.objects[slot]
        budget -= 1
        is_there = row["keyword_count"] > 0 and row["expiry_ms"] > state[L.NOW_MS]
        if is_there and row["carried"] != state[L.CARRY_MARK]:
            begin = _follow_path(tree, lists, tree.job_order, slot)
            if begin != T.NOTHING:
                before = int(row["copies"])
                if not place_beside(tree, lists, slot, begin):
                    return T.OUT_OF_ROOM
                budget -= 4 * (int(row["copies"]) - before)
        state[L.CARRY_AT] = slot + 1
    return T.FINISHED


@kernel
def let_go(tree: Tree, lists: Lists, budget: int) -> int:
    """Empty the lists of the replaced subtree, about `budget` items; return FINISHED or MORE."""
    used = int(lists.state[L.WALK_COUNT])
    used = _empty_below(tree, lists, lists.walk, used, budget, False)
    lists.state[L.WALK_COUNT] = used
    return T.FINISHED if used == 0 else T.MORE


@kernel
def end_objects(lists: Lists, slots: Numbers) -> None:
    """Mark objects as removed; their items are swept later."""
    for i in range(slots.shape[0]):
        row = lists.objects[slots[i]]
        row["generation"] += 1
        lists.state[L.DEAD_TOTAL] += row["copies"]
        row["copies"] = 0
        row["stops"] = 0


@kernel
def sweep(tree: Tree, lists: Lists, budget: int) -> None:
    """Search about `budget` items for those of removed objects, from list `state[SWEEP_AT]` on."""
    state = lists.state
    end = L.LISTS * int(tree.meta[T.NODE_END])
    while budget > 0:
        one = int(state[L.SWEEP_AT])
        if one >= end:
            state[L.SWEEP_AT] = 0
            return
        state[L.SWEEP_AT] = one + 1
        budget -= 1 + int(lists.counts[one])
        chunk = int(lists.heads[one]) - 1
        size = first_size(lists, one)
        while chunk != T.NOTHING:
            following = int(lists.links[chunk]) - 1
            for place in range(chunk * L.CHUNK_LENGTH + size - 1, chunk * L.CHUNK_LENGTH - 1, -1):
                if not is_alive(lists, lists.items[place]):
                    drop_item(tree, lists, one, place)
            chunk = following
            size = L.CHUNK_LENGTH
