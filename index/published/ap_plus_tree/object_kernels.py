"""Arriving objects: matched, and stored in the visited nodes, in one walk (Algorithm 5).

`_keep_at` and `push_parts` alone define the nodes that an object reaches in a tree: its removal is the
same walk.
"""

from __future__ import annotations

from index.batches import Ints, KeywordIds
from index.published.ap_plus_tree import layout as L
from index.published.ap_plus_tree.layout import Lists
from index.published.ap_plus_tree.list_kernels import (
    add_item,
    drop_item,
    find_item,
    free_chunks,
    lacks_chunks,
)
from index.published.ap_tree import layout as T
from index.published.ap_tree.layout import Numbers, Row, Tree
from index.published.ap_tree.match_kernels import push_cells, push_cuts, scan_leaf
from index.published.ap_tree.node_kernels import column_at, find_cut, line_at
from index.published.ap_tree.order_kernels import write_codes
from index.tables.signature_kernels import signature_of
from safe_region.jit import kernel, leaf

_MORE_CHUNKS = 256
"""Requested when there was no space for all items of an object."""


@leaf
def box_of(row: Row) -> tuple[float, float, float, float]:
    """Return the box of an object."""
    return row["x1_m"], row["y1_m"], row["x2_m"], row["y2_m"]


@leaf
def codes_of(lists: Lists, order: Numbers, slot: int) -> int:
    """Write the codes of an object's keywords to `lists.codes`; return their number."""
    row = lists.objects[slot]
    start = int(row["keyword_start"])
    words: KeywordIds = lists.pool[start : start + int(row["keyword_count"])]
    return write_codes(order, words, lists.codes)


@leaf
def place_in_part(
    tree: Tree,
    lists: Lists,
    row: Row,
    number: int,
    begin: int,
    code_count: int,
    box: tuple[float, float, float, float],
) -> int:
    """Return an object's position in its codes below a part; NOTHING if it does not go there."""
    if number == T.DUMMY:
        return begin
    if row["kind"] == T.KEYWORDS:
        part = tree.parts[int(row["start"]) + number]
        for i in range(begin, code_count):
            if part["low"] <= lists.codes[i] <= part["high"]:
                return i + 1
        return T.NOTHING
    column, line = (number - 1) % int(row["x_count"]), (number - 1) // int(row["x_count"])
    is_met = column_at(tree, row, box[0]) <= column <= column_at(tree, row, box[2]) and line_at(
        tree, row, box[1]
    ) <= line <= line_at(tree, row, box[3])
    return begin if is_met else T.NOTHING


@leaf
def waits_at(tree: Tree, lists: Lists, row: Row, slot: int, begin: int, code_count: int) -> bool:
    """Return whether an object belongs to a part of a node that no clause has yet."""
    start = int(row["start"])
    one = lists.objects[slot]
    if tree.parts[start + T.DUMMY]["child"] == T.NOTHING:
        return True
    if row["kind"] == T.KEYWORDS:
        if one["keyword_count"] > code_count:
            return True
        last = 1
        for i in range(begin, code_count):
            number = find_cut(tree, row, int(lists.codes[i]), last)
            if number == T.DUMMY or tree.parts[start + number]["child"] == T.NOTHING:
                return True
            last = number
        return False
    first, last = column_at(tree, row, one["x1_m"]), column_at(tree, row, one["x2_m"])
    low, high = line_at(tree, row, one["y1_m"]), line_at(tree, row, one["y2_m"])
    for line in range(low, high + 1):
        for column in range(first, last + 1):
            if tree.parts[start + 1 + line * int(row["x_count"]) + column]["child"] == T.NOTHING:
                return True
    return False


@leaf
def _keep_at(tree: Tree, lists: Lists, node: int, slot: int, begin: int, code_count: int) -> bool:
    """Store an object in a node; return whether it is to be stored below. A chunk must be free."""
    row = tree.nodes[node]
    one = lists.objects[slot]
    if row["kind"] == T.LEAF:
        add_item(lists, L.LISTS * node + L.KEPT, slot, begin)
        return False
    if one["copies"] >= lists.state[L.COPIES_MAX]:
        stop_at(tree, lists, node, slot, begin)
        return False
    if waits_at(tree, lists, row, slot, begin, code_count):
        add_item(lists, L.LISTS * node + L.WAITING, slot, begin)
    return True


@leaf
def stop_at(tree: Tree, lists: Lists, node: int, slot: int, begin: int) -> None:
    """Store an object in a node, and not below. A chunk must be free."""
    add_item(lists, L.LISTS * node + L.KEPT, slot, begin)
    if tree.nodes[node]["kind"] != T.LEAF:
        lists.objects[slot]["stops"] += 1


@leaf
def _push(lists: Lists, node: int, begin: int, flag: int) -> None:
    used = lists.state[L.USED]
    lists.stack[2 * used] = node
    lists.stack[2 * used + 1] = begin
    lists.flags[used] = flag
    lists.state[L.USED] = used + 1


@leaf
def _push_parts(
    tree: Tree, lists: Lists, row: Row, slot: int, begin: int, code_count: int, flag: int
) -> None:
    """Push the parts that an object belongs to. The stack is long enough for every tree."""
    used = int(lists.state[L.USED])
    if row["kind"] == T.KEYWORDS:
        end = push_cuts(tree, row, begin, lists.codes, code_count, lists.stack, used)
    else:
        end = push_cells(tree, row, begin, box_of(lists.objects[slot]), lists.stack, used)
    for i in range(used, end):
        lists.flags[i] = flag
    lists.state[L.USED] = end


@leaf
def place_object(
    tree: Tree, lists: Lists, order: Numbers, slot: int, node: int, begin: int, reserve: int
) -> bool:
    """Store an object in a node and below, leaving `reserve` chunks free.

    Returns false if there are not enough; then it is stored nowhere there.
    """
    code_count = codes_of(lists, order, slot)
    _push(lists, node, begin, 1)
    while lists.state[L.USED] > 0:
        if free_chunks(lists) <= reserve:
            lists.state[L.USED] = 0
            withdraw_object(tree, lists, order, slot, node, begin)
            lists.state[L.CHUNKS_WANTED] = reserve + _MORE_CHUNKS
            return False
        lists.state[L.USED] -= 1
        top = int(lists.state[L.USED])
        here, place = int(lists.stack[2 * top]), int(lists.stack[2 * top + 1])
        if _keep_at(tree, lists, here, slot, place, code_count):
            _push_parts(tree, lists, tree.nodes[here], slot, place, code_count, 1)
    return True


@leaf
def withdraw_object(tree: Tree, lists: Lists, order: Numbers, slot: int, node: int, begin: int) -> None:
    """Remove an object from the lists of a node and below."""
    code_count = codes_of(lists, order, slot)
    _push(lists, node, begin, 1)
    while lists.state[L.USED] > 0:
        lists.state[L.USED] -= 1
        top = int(lists.state[L.USED])
        here, place = int(lists.stack[2 * top]), int(lists.stack[2 * top + 1])
        found = find_item(lists, L.LISTS * here + L.KEPT, slot)
        if found != T.NOTHING:
            drop_item(tree, lists, L.LISTS * here + L.KEPT, found)
            continue
        row = tree.nodes[here]
        if row["kind"] == T.LEAF:
            continue
        found = find_item(lists, L.LISTS * here + L.WAITING, slot)
        if found != T.NOTHING:
            drop_item(tree, lists, L.LISTS * here + L.WAITING, found)
        _push_parts(tree, lists, row, slot, place, code_count, 1)


@leaf
def place_beside(tree: Tree, lists: Lists, slot: int, begin: int) -> bool:
    """Store an object also in the new subtree; return false, with no change, if space is lacking.

    Copies in the subtree to be replaced do not count.
    """
    state, copies = lists.state, int(lists.objects[slot]["copies"])
    state[L.COPIES_MAX] += copies
    is_placed = place_object(tree, lists, tree.job_order, slot, int(tree.meta[T.JOB_NEW]), begin, 0)
    state[L.COPIES_MAX] -= copies
    return is_placed


@leaf
def _begin(tree: Tree, lists: Lists, slot: int) -> None:
    one = lists.objects[slot]
    one["copies"] = 0
    one["stops"] = 0
    one["mark"] = 0
    one["carried"] = 0
    lists.state[L.JOB_BEGIN] = T.NOTHING
    lists.state[L.STARTED] = 1
    if one["expiry_ms"] > lists.state[L.NOW_MS]:
        _push(lists, int(tree.meta[T.ROOT]), 0, 1)


@leaf
def _match_and_keep(tree: Tree, lists: Lists, slot: int, found: Ints) -> bool:
    """Process the stack; return false, to be called again, if space is lacking."""
    state = lists.state
    one = lists.objects[slot]
    start = int(one["keyword_start"])
    words: KeywordIds = lists.pool[start : start + int(one["keyword_count"])]
    signature = signature_of(words)
    code_count = codes_of(lists, tree.order, slot)
    while state[L.USED] > 0:
        top = int(state[L.USED]) - 1
        node, begin, flag = (
            int(lists.stack[2 * top]),
            int(lists.stack[2 * top + 1]),
            int(lists.flags[top]),
        )
        row = tree.nodes[node]
        is_leaf = row["kind"] == T.LEAF
        if lacks_chunks(lists, 1):
            return False
        if is_leaf and row["count"] > found.shape[0] - state[L.FOUND]:
            state[L.FOUND_WANTED] = row["count"]
            return False
        state[L.USED] = top
        if flag and node == tree.meta[T.JOB_OLD]:
            state[L.JOB_BEGIN] = begin
        if flag:
            flag = int(_keep_at(tree, lists, node, slot, begin, code_count))
        if is_leaf:
            box = box_of(one)
            state[L.FOUND] = scan_leaf(tree, row, signature, words, box, found, int(state[L.FOUND]))
        else:
            _push_parts(tree, lists, row, slot, begin, code_count, flag)
    return True


@leaf
def _carry_along(tree: Tree, lists: Lists, slot: int) -> bool:
    """Store a new object also in the new subtree, if it belongs there."""
    state = lists.state
    if not state[L.CARRIES] or state[L.JOB_BEGIN] == T.NOTHING:
        return True
    begin = 0 if tree.meta[T.JOB_OLD] == tree.meta[T.ROOT] else int(state[L.JOB_BEGIN])
    if not place_beside(tree, lists, slot, begin):
        return False
    lists.objects[slot]["carried"] = state[L.CARRY_MARK]
    return True


@kernel
def publish(tree: Tree, lists: Lists, slots: Numbers, offsets: Ints, found: Ints) -> int:
    """Write the clauses that match new objects as CSR, and store the objects; continue at `state[DONE]`.

    Returns FINISHED, or OUT_OF_ROOM if an array must be lengthened first.
    """
    state = lists.state
    while state[L.DONE] < slots.shape[0]:
        i = state[L.DONE]
        slot = int(slots[i])
        if not state[L.STARTED]:
            offsets[i] = state[L.FOUND]
            _begin(tree, lists, slot)
        if not _match_and_keep(tree, lists, slot, found) or not _carry_along(tree, lists, slot):
            return T.OUT_OF_ROOM
        state[L.STARTED] = 0
        state[L.DONE] = i + 1
    offsets[slots.shape[0]] = state[L.FOUND]
    return T.FINISHED
