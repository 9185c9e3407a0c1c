"""Alpha partition: a list's subscriptions, distributed to groups of similar alpha* (section 5.2.1).

The quantiles are those of the list itself, so that its groups have equal sizes however its subscriptions
differ from others. They are recomputed when the list has doubled, or shrunk to a quarter.

Operations: O(list log list), amortised O(log list) an insert or removal.
"""

from __future__ import annotations

import math

from index.published.igpt import layout as L
from index.published.igpt.group_kernels import allocate_span, free_span, write_later
from index.published.igpt.layout import Tree
from index.tables.free_kernels import give_back_rows, take_rows
from index.tables.id_map_kernels import put
from safe_region.jit import leaf

GROUP_LEAST = 8
"""Entries of an alpha group: shorter lists have fewer groups."""


@leaf
def _group_count(tree: Tree, count: int) -> int:
    """Return the number of groups for this many entries."""
    return min(tree.settings.group_max, max(1, count // GROUP_LEAST))


@leaf
def _is_due(tree: Tree, count: int, planned: int) -> bool:
    if 2 * planned > count > planned // 4:
        return False
    # A short list has one group before and after.
    return bool(_group_count(tree, count) != 1 or _group_count(tree, planned) != 1)


@leaf
def should_partition(tree: Tree, head: int) -> bool:
    """Return whether a list has become too long or too short for its groups."""
    row = tree.groups[head]
    return bool(row["list_count"] > 0 and _is_due(tree, row["list_count"], row["planned_count"]))


@leaf
def has_partition(tree: Tree, head: int, more: int) -> bool:
    """Return whether a list can be partitioned, if that is due after `more` entries are added."""
    meta = tree.meta
    count = int(tree.groups[head]["list_count"]) + more
    if not _is_due(tree, count, int(tree.groups[head]["planned_count"])):
        return True
    groups = _group_count(tree, count)
    if meta[L.ROW_END] + groups > tree.groups.shape[0]:
        meta[L.ROWS_WANTED] = groups
        return False
    # Spans are less than twice as long as their content.
    if meta[L.ENTRY_END] + 2 * count > tree.entries.shape[0]:
        meta[L.ENTRIES_WANTED] = 2 * count
        return False
    return True


@leaf
def _is_before(tree: Tree, one: int, other: int, is_by_alpha: int) -> bool:
    """Return whether an entry comes before another: by alpha*, or as in a group."""
    left = tree.entries[one]
    right = tree.entries[other]
    if is_by_alpha:
        return bool(left["alpha"] < right["alpha"])
    return bool(
        left["kscore"] < right["kscore"]
        or (left["kscore"] == right["kscore"] and left["slot"] < right["slot"])
    )


@leaf
def _sift(tree: Tree, first: int, hole: int, end: int, is_by_alpha: int) -> None:
    """Sift an item of a heap, the last entry on top, down to its place; positions count from `first`."""
    order = tree.order
    item = int(order[first + hole])
    while 2 * hole + 1 < end:
        child = 2 * hole + 1
        if child + 1 < end and _is_before(
            tree, order[first + child], order[first + child + 1], is_by_alpha
        ):
            child += 1
        if not _is_before(tree, item, order[first + child], is_by_alpha):
            break
        order[first + hole] = order[first + child]
        hole = child
    order[first + hole] = item


@leaf
def _sort(tree: Tree, first: int, count: int, is_by_alpha: int) -> None:
    """Sort a part of `order` by the entries that it refers to."""
    for hole in range(count // 2 - 1, -1, -1):
        _sift(tree, first, hole, count, is_by_alpha)
    for end in range(count - 1, 0, -1):
        last = tree.order[first + end]
        tree.order[first + end] = tree.order[first]
        tree.order[first] = last
        _sift(tree, first, 0, end, is_by_alpha)


@leaf
def _collect(tree: Tree, head: int) -> int:
    """Write the places of the entries of all alpha groups to `order`; return their number."""
    count = 0
    group = head
    while group != L.NOTHING:
        row = tree.groups[group]
        if not row["is_apart"]:
            for place in range(int(row["start"]), int(row["start"] + row["count"])):
                tree.order[count] = place
                count += 1
        group = int(row["next"])
    return count


@leaf
def _room_for(count: int) -> int:
    room = 0
    while 1 << room < count:
        room += 1
    return room


@leaf
def _filled_group(tree: Tree, key: int, first: int, count: int) -> int:
    """Return a group of the entries at the places in `order`, the largest alpha* last."""
    group = take_rows(tree.groups["next"], tree.meta, L.FREE_ROW, tree.meta, L.ROW_END, 1)
    row = tree.groups[group]
    row["key"] = key
    row["next"] = L.NOTHING
    row["border"] = tree.entries[tree.order[first + count - 1]]["alpha"]
    row["room"] = _room_for(count)
    row["start"] = allocate_span(tree, int(row["room"]))
    row["count"] = count
    row["is_apart"] = 0
    row["list_count"] = 0
    row["planned_count"] = 0
    _sort(tree, first, count, 0)
    start = int(row["start"])
    for i in range(count):
        tree.entries[start + i] = tree.entries[tree.order[first + i]]
    write_later(tree, group, start, start + count - 1)
    return group


@leaf
def _free_alpha_groups(tree: Tree, head: int) -> int:
    """Free the alpha groups of a list; return the remaining one, which is apart, or NOTHING."""
    apart = L.NOTHING
    group = head
    while group != L.NOTHING:
        row = tree.groups[group]
        following = int(row["next"])
        if row["is_apart"]:
            apart = group
            row["next"] = L.NOTHING
        else:
            free_span(tree, int(row["start"]), int(row["room"]))
            give_back_rows(tree.groups["next"], tree.meta, L.FREE_ROW, group)
        group = following
    return apart


@leaf
def partition(tree: Tree, head: int) -> None:
    """Distribute the entries of a list to alpha groups. The caller has verified the capacity."""
    key = int(tree.groups[head]["key"])
    count = _collect(tree, head)
    groups = _group_count(tree, count)
    share = -(-count // groups)
    _sort(tree, 0, count, 1)
    first_group = L.NOTHING
    last_group = L.NOTHING
    first = 0
    while first < count:
        end = min(count, first + share)
        border = tree.entries[tree.order[end - 1]]["alpha"]
        while end < count and tree.entries[tree.order[end]]["alpha"] == border:
            end += 1
        group = _filled_group(tree, key, first, end - first)
        if last_group == L.NOTHING:
            first_group = group
        else:
            tree.groups[last_group]["next"] = group
        last_group = group
        first = end
    tree.groups[last_group]["border"] = math.inf
    tree.groups[last_group]["next"] = _free_alpha_groups(tree, head)
    tree.groups[first_group]["list_count"] = count
    tree.groups[first_group]["planned_count"] = count
    put(tree.list_keys, tree.list_values, key, first_group)
