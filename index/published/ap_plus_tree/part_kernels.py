"""Parts that clauses create, and cuts that they extend: waiting objects move there."""

from __future__ import annotations

from index.published.ap_plus_tree import layout as L
from index.published.ap_plus_tree.layout import Lists
from index.published.ap_plus_tree.list_kernels import (
    add_item,
    chunks_for,
    drop_item,
    first_size,
    is_alive,
    lacks_chunks,
)
from index.published.ap_plus_tree.object_kernels import (
    box_of,
    codes_of,
    place_in_part,
    place_object,
    stop_at,
    waits_at,
    withdraw_object,
)
from index.published.ap_tree import layout as T
from index.published.ap_tree.layout import Build, Numbers, Tree
from index.published.ap_tree.node_kernels import cut_before, find_cut, lacks_cut, make_child, place_in_cut
from safe_region.jit import leaf


@leaf
def lacks_chunks_below(lists: Lists, node: int, part_count: int) -> bool:
    """Return whether chunks may be lacking to create this many parts of a node, or to extend one."""
    waiting = int(lists.counts[L.LISTS * node + L.WAITING])
    return waiting > 0 and lacks_chunks(lists, 2 * part_count * chunks_for(waiting))


@leaf
def give_child(tree: Tree, job: Build, lists: Lists, order: Numbers, node: int, number: int) -> int:
    """Give a part its child, with the objects that waited for it; return the child."""
    part = int(tree.nodes[node]["start"]) + number
    is_filled = job.state[T.PHASE] == T.DISTRIBUTE and job.state[T.NODE] == node
    child = make_child(tree, node, part, T.PENDING if is_filled else T.LEAF)
    one = L.LISTS * node + L.WAITING
    row = tree.nodes[node]
    chunk = int(lists.heads[one]) - 1
    size = first_size(lists, one)
    while chunk != T.NOTHING:
        following = int(lists.links[chunk]) - 1
        for place in range(chunk * L.CHUNK_LENGTH + size - 1, chunk * L.CHUNK_LENGTH - 1, -1):
            item = lists.items[place]
            if not is_alive(lists, item):
                drop_item(tree, lists, one, place)
                continue
            slot, begin = int(item["slot"]), int(item["begin"])
            code_count = codes_of(lists, order, slot)
            box = box_of(lists.objects[slot])
            goes_on = place_in_part(tree, lists, row, number, begin, code_count, box)
            if goes_on == T.NOTHING:
                continue
            add_item(lists, L.LISTS * child + L.KEPT, slot, goes_on)
            if not waits_at(tree, lists, row, slot, begin, code_count):
                drop_item(tree, lists, one, place)
        chunk = following
        size = L.CHUNK_LENGTH
    return child


@leaf
def lacks_open_cut(tree: Tree, lists: Lists, node: int, code: int) -> bool:
    """Return whether `open_cut` would lack space."""
    return lacks_cut(tree, node, code) or lacks_chunks_below(lists, node, 1)


@leaf
def open_cut(tree: Tree, lists: Lists, order: Numbers, node: int, code: int) -> int:
    """Return the part whose cut contains a code: an existing, a new, or an extended one."""
    row = tree.nodes[node]
    number = find_cut(tree, row, code, 1)
    if number != T.DUMMY:
        return number
    before, count = cut_before(tree, row, code, 1), int(row["count"])
    high = tree.parts[int(row["start"]) + before]["high"]
    low = 0.0
    if before + 1 < count:
        low = tree.parts[int(row["start"]) + before + 1]["low"]
    number = place_in_cut(tree, node, code)
    if row["count"] > count:
        return number
    part = tree.parts[int(row["start"]) + number]
    if number == before:
        low = part["low"]
    else:
        high = part["high"]
    if part["child"] != T.NOTHING:
        _place_again(tree, lists, order, node, number, low, high)
    return number


@leaf
def _hit(lists: Lists, begin: int, code_count: int, low: float, high: float) -> int:
    """Return the position after the first code in an interval, NOTHING if there is none."""
    for i in range(begin, code_count):
        if low <= lists.codes[i] <= high:
            return i + 1
    return T.NOTHING


@leaf
def _place_again(
    tree: Tree, lists: Lists, order: Numbers, node: int, number: int, low: float, high: float
) -> None:
    """Store the objects below a cut that belong there since its extension.

    An object that was there already, by a later code than the one that hits the cut now, is removed and
    inserted again. All of them waited at the node: one of their codes lay outside all cuts.
    """
    row = tree.nodes[node]
    part = tree.parts[int(row["start"]) + number]
    child = int(part["child"])
    _note_way(tree, lists, child)
    one = L.LISTS * node + L.WAITING
    reserve = chunks_for(int(lists.counts[one]))
    chunk = int(lists.heads[one]) - 1
    size = first_size(lists, one)
    while chunk != T.NOTHING:
        following = int(lists.links[chunk]) - 1
        for place in range(chunk * L.CHUNK_LENGTH + size - 1, chunk * L.CHUNK_LENGTH - 1, -1):
            item = lists.items[place]
            if not is_alive(lists, item):
                drop_item(tree, lists, one, place)
                continue
            slot, begin = int(item["slot"]), int(item["begin"])
            code_count = codes_of(lists, order, slot)
            before = _hit(lists, begin, code_count, low, high)
            now = _hit(lists, begin, code_count, part["low"], part["high"])
            if not waits_at(tree, lists, row, slot, begin, code_count):
                drop_item(tree, lists, one, place)
            if before == now:
                continue
            if before != T.NOTHING:
                withdraw_object(tree, lists, order, slot, child, before)
            if not place_object(tree, lists, order, slot, child, now, reserve):
                stop_at(tree, lists, child, slot, now)
        chunk = following
        size = L.CHUNK_LENGTH


@leaf
def _note_way(tree: Tree, lists: Lists, child: int) -> None:
    """Restart the insertion into the new subtree, if the path of objects there may have changed."""
    if not lists.state[L.CARRIES]:
        return
    above = int(tree.meta[T.JOB_OLD])
    while above != T.NOTHING:
        if above == child:
            lists.state[L.CARRY_AGAIN] = 1
        above = int(tree.nodes[above]["parent"])
