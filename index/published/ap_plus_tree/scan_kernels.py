"""Matches of an m-list that start or end for a clause: in its new range and not in its old, and back."""

from __future__ import annotations

import numpy as np

from index.batches import Ints, KeywordIds
from index.published.ap_plus_tree import layout as L
from index.published.ap_plus_tree.layout import Lists
from index.published.ap_plus_tree.list_kernels import first_size, is_alive
from index.published.ap_plus_tree.object_kernels import box_of
from index.published.ap_tree import layout as T
from index.published.ap_tree.layout import Numbers, Row, Tree
from index.published.ap_tree.node_kernels import (
    column_at,
    find_cut,
    has_within,
    is_in_region,
    lacks_stack,
    line_at,
)
from index.published.ap_tree.order_kernels import clause_codes
from index.tables.signature_kernels import signature_of
from safe_region.jit import kernel, leaf
from safe_region.scoring.kernels import common_count

_Box = tuple[float, float, float, float]


@leaf
def _meet(first: _Box, second: _Box) -> bool:
    return (
        first[0] <= second[2]
        and second[0] <= first[2]
        and first[1] <= second[3]
        and second[1] <= first[3]
    )


@leaf
def old_box(lists: Lists) -> _Box:
    """Return the old box of the current clause."""
    return lists.old[0], lists.old[1], lists.old[2], lists.old[3]


@leaf
def changes_in_both(lists: Lists) -> bool:
    """Return whether an object that both boxes of the current clause intersect may change."""
    return bool(lists.same[0] != -np.inf)


@leaf
def _is_same(lists: Lists, box: _Box) -> bool:
    """Return whether an object with this box, which both boxes intersect, does not change."""
    same = lists.same
    return bool(box[0] >= same[0] and box[1] >= same[1] and box[2] <= same[2] and box[3] <= same[3])


@leaf
def is_same_within(root: Row, row: Row, first: _Box, second: _Box) -> bool:
    """Return whether two boxes are equal within the region of a node (case 1 of Algorithm 6).

    Regions at the border of the root are unbounded.
    """
    x1_m = row["x1_m"] if row["x1_m"] > root["x1_m"] else -np.inf
    y1_m = row["y1_m"] if row["y1_m"] > root["y1_m"] else -np.inf
    x2_m = row["x2_m"] if row["x2_m"] < root["x2_m"] else np.inf
    y2_m = row["y2_m"] if row["y2_m"] < root["y2_m"] else np.inf
    return bool(
        max(first[0], x1_m) == max(second[0], x1_m)
        and max(first[1], y1_m) == max(second[1], y1_m)
        and min(first[2], x2_m) == min(second[2], x2_m)
        and min(first[3], y2_m) == min(second[3], y2_m)
    )


@leaf
def lacks_results(lists: Lists, node: int, found: Ints, left: Ints) -> bool:
    """Return whether space for the results of the m-list of a node may be lacking."""
    state = lists.state
    count = int(lists.counts[L.LISTS * node + L.KEPT])
    state[L.FOUND_WANTED] = count if count > found.shape[0] - state[L.FOUND] else 0
    state[L.LEFT_WANTED] = count if count > left.shape[0] - state[L.LEFT] else 0
    return bool(state[L.FOUND_WANTED] + state[L.LEFT_WANTED] > 0)


@leaf
def _is_reported_here(tree: Tree, node: int, mine: _Box, theirs: _Box) -> bool:
    """Return whether the lower left corner of the intersection of a range and an area is in a region.

    A point is reported where it is stored, at a single place.
    """
    if theirs[0] == theirs[2] and theirs[1] == theirs[3]:
        return True
    root = tree.nodes[tree.meta[T.ROOT]]
    return is_in_region(root, tree.nodes[node], max(mine[0], theirs[0]), max(mine[1], theirs[1]))


@leaf
def scan_list(
    tree: Tree,
    lists: Lists,
    node: int,
    slot: int,
    mode: int,
    has_old: bool,  # noqa: FBT001
    found: Ints,
    left: Ints,
) -> None:
    """Write the matches of the clause now and not before to `found`, and the reverse to `left`.

    Matches both now and before are in `found` as well, unless they are unchanged. `mode` has the boxes
    that reached the node. The space must suffice (`lacks_results`).
    """
    one = L.LISTS * node + L.KEPT
    state = lists.state
    clause = tree.clauses[slot]
    first, required = int(clause["keyword_start"]), int(clause["keyword_count"])
    words: KeywordIds = tree.pool[first : first + required]
    signature = signature_of(words)
    old, new = old_box(lists), box_of(clause)
    tree.meta[T.CANDIDATES] += lists.counts[one]
    chunk = int(lists.heads[one]) - 1
    size = first_size(lists, one)
    while chunk != T.NOTHING:
        for place in range(chunk * L.CHUNK_LENGTH, chunk * L.CHUNK_LENGTH + size):
            item = lists.items[place]
            if signature & ~item["signature"] != 0:
                continue
            around = box_of(item)
            if not ((mode & L.NEW and _meet(new, around)) or (mode & L.OLD and _meet(old, around))):
                continue
            if not is_alive(lists, item):
                continue
            thing = lists.objects[item["slot"]]
            theirs = box_of(thing)
            is_new, was_old = _meet(new, theirs), has_old and _meet(old, theirs)
            is_settled = is_new == was_old and (not is_new or _is_same(lists, theirs))
            if is_settled or not mode & (L.NEW if is_new else L.OLD):
                continue
            start, count = int(thing["keyword_start"]), int(thing["keyword_count"])
            if common_count(words, lists.pool[start : start + count]) < required:
                continue
            if not _is_reported_here(tree, node, new if is_new else old, theirs):
                continue
            if is_new:
                found[state[L.FOUND]] = thing["id"]
                state[L.FOUND] += 1
            else:
                left[state[L.LEFT]] = thing["id"]
                state[L.LEFT] += 1
        chunk = int(lists.links[chunk]) - 1
        size = L.CHUNK_LENGTH


@leaf
def _push_child(tree: Tree, part: int) -> None:
    child = int(tree.parts[part]["child"])
    if child != T.NOTHING:
        tree.stack[tree.meta[T.STACK_COUNT]] = child
        tree.meta[T.STACK_COUNT] += 1


@leaf
def _push_below(tree: Tree, row: Row, slot: int) -> bool:
    """Replace the node on top by the parts that a clause is in; return false if space is lacking."""
    used, start = int(tree.meta[T.STACK_COUNT]), int(row["start"])
    clause = tree.clauses[slot]
    if row["kind"] == T.KEYWORDS:
        number = T.DUMMY
        if clause_codes(tree, tree.order, slot) > row["offset"]:
            number = find_cut(tree, row, int(tree.codes[row["offset"]]), 1)
        tree.meta[T.STACK_COUNT] = used - 1
        _push_child(tree, start + number)
        return True
    if has_within(row, clause):
        tree.meta[T.STACK_COUNT] = used - 1
        _push_child(tree, start + T.DUMMY)
        return True
    first, last = column_at(tree, row, clause["x1_m"]), column_at(tree, row, clause["x2_m"])
    low, high = line_at(tree, row, clause["y1_m"]), line_at(tree, row, clause["y2_m"])
    if lacks_stack(tree, tree.stack, used, (last - first + 1) * (high - low + 1)):
        return False
    tree.meta[T.STACK_COUNT] = used - 1
    for line in range(low, high + 1):
        for column in range(first, last + 1):
            _push_child(tree, start + 1 + line * int(row["x_count"]) + column)
    return True


@kernel
def find_objects(tree: Tree, lists: Lists, slots: Numbers, offsets: Ints, found: Ints) -> int:
    """Write the live objects that clauses match as CSR; continue at `state[DONE]`.

    Returns FINISHED, or OUT_OF_ROOM if an array must be lengthened first.
    """
    state, meta = lists.state, tree.meta
    while state[L.DONE] < slots.shape[0]:
        i = state[L.DONE]
        slot = int(slots[i])
        if meta[T.STACK_COUNT] == 0:
            offsets[i] = state[L.FOUND]
            tree.stack[0] = meta[T.ROOT]
            meta[T.STACK_COUNT] = 1
        while meta[T.STACK_COUNT] > 0:
            node = int(tree.stack[meta[T.STACK_COUNT] - 1])
            row = tree.nodes[node]
            if lacks_results(lists, node, found, found):
                return T.OUT_OF_ROOM
            if row["kind"] == T.LEAF:
                meta[T.STACK_COUNT] -= 1
            elif not _push_below(tree, row, slot):
                return T.OUT_OF_ROOM
            scan_list(tree, lists, node, slot, L.NEW, False, found, found)
        state[L.DONE] = i + 1
    offsets[slots.shape[0]] = state[L.FOUND]
    return T.FINISHED
