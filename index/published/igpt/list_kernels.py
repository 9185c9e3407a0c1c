"""Posting lists: one of each keyword in each leaf, a chain of alpha groups.

A list has one alpha group while it is short, and is partitioned again whenever its alpha groups have
twice as many entries as the last time, or a quarter as many (`partition_kernels`). Subscriptions whose
text does not count are in a group of their own.

Operations: find O(1 + groups); insert and remove O(groups + group), amortised.
"""

from __future__ import annotations

import math

from index.published.igpt import layout as L
from index.published.igpt.bound_kernels import Statistics
from index.published.igpt.group_kernels import (
    clear_group,
    close_gap,
    free_span,
    has_free_span,
    open_gap,
    place_of,
    widen,
    write_entry,
    write_later,
)
from index.published.igpt.layout import Tree
from index.published.igpt.partition_kernels import has_partition, partition, should_partition
from index.tables.free_kernels import give_back_rows, take_rows
from index.tables.id_map_kernels import LOAD_MAX, NO_VALUE, find, pop, put
from safe_region.jit import leaf

_LOW = 0xFFFFFFFF


@leaf
def key_of(cell: int, word: int) -> int:
    """Return the hash key of a keyword in a cell."""
    return (int(cell) << 32) | (int(word) & _LOW)


@leaf
def list_of(tree: Tree, cell: int, word: int) -> int:
    """Return the first group of a keyword in a cell, NOTHING if there is none."""
    found = find(tree.list_keys, tree.list_values, key_of(cell, word))
    return L.NOTHING if found == NO_VALUE else found


@leaf
def group_in(tree: Tree, head: int, own: Statistics) -> int:
    """Return the group of a list that a subscription belongs to, NOTHING if there is none."""
    group = head
    while group != L.NOTHING:
        row = tree.groups[group]
        if row["is_apart"] == own.is_apart and (own.is_apart or own.alpha <= row["border"]):
            return group
        group = int(row["next"])
    return L.NOTHING


@leaf
def _has_rows(tree: Tree, head: int) -> bool:
    """Return whether a list can have one more group, and a new list a key."""
    meta = tree.meta
    if meta[L.FREE_ROW] == L.NOTHING and meta[L.ROW_END] >= tree.groups.shape[0]:
        meta[L.ROWS_WANTED] = 1
        return False
    if head == L.NOTHING and meta[L.LIST_COUNT] + 1 > tree.list_keys.shape[0] * LOAD_MAX:
        meta[L.KEYS_WANTED] = 1
        return False
    return has_free_span(tree, 0)


@leaf
def _made_group(tree: Tree, head: int, key: int, own: Statistics) -> int:
    """Add a group to a list, or create the list; space must be available. Return the group."""
    group = take_rows(tree.groups["next"], tree.meta, L.FREE_ROW, tree.meta, L.ROW_END, 1)
    clear_group(tree, group, key, 1 if own.is_apart else 0)
    if head == L.NOTHING:
        put(tree.list_keys, tree.list_values, key, group)
        tree.meta[L.LIST_COUNT] += 1
        return group
    last = head
    while tree.groups[last]["next"] != L.NOTHING:
        last = int(tree.groups[last]["next"])
    tree.groups[last]["next"] = group
    return group


@leaf
def insert_in_list(
    tree: Tree, cell: int, word: int, slot: int, number: int, inner_m: float, own: Statistics
) -> bool:
    """Insert a subscription, whose vector is in the scratch, for a keyword; return if there was space.

    `number` is the position of the keyword in the vector.
    """
    key = key_of(cell, word)
    head = list_of(tree, cell, word)
    group = L.NOTHING if head == L.NOTHING else group_in(tree, head, own)
    if group == L.NOTHING:
        if not _has_rows(tree, head):
            return False
        group = _made_group(tree, head, key, own)
        head = group if head == L.NOTHING else head
    elif not (widen(tree, group) and (own.is_apart or has_partition(tree, head, 1))):
        return False
    place = open_gap(tree, group, own.kscore, slot)
    write_entry(tree, place, slot, number, inner_m, own)
    write_later(tree, group, place, place)
    if not own.is_apart:
        tree.groups[head]["list_count"] += 1
        if should_partition(tree, head):
            partition(tree, head)
    return True


@leaf
def _drop_group(tree: Tree, head: int, group: int) -> int:
    """Free an empty group; return the first group of the list, NOTHING if there is none."""
    row = tree.groups[group]
    following = int(row["next"])
    previous = L.NOTHING
    if group == head:
        pop(tree.list_keys, tree.list_values, int(row["key"]))
        if following == L.NOTHING:
            tree.meta[L.LIST_COUNT] -= 1
        else:
            put(tree.list_keys, tree.list_values, int(row["key"]), following)
            tree.groups[following]["list_count"] = row["list_count"]
            tree.groups[following]["planned_count"] = row["planned_count"]
        head = following
    else:
        previous = head
        while tree.groups[previous]["next"] != group:
            previous = int(tree.groups[previous]["next"])
        tree.groups[previous]["next"] = following
    if row["border"] == math.inf and not row["is_apart"]:
        _open_border(tree, head)
    free_span(tree, int(row["start"]), int(row["room"]))
    give_back_rows(tree.groups["next"], tree.meta, L.FREE_ROW, group)
    return head


@leaf
def _open_border(tree: Tree, head: int) -> None:
    """Let the last alpha group of a list, if there is one, include all larger values."""
    group = head
    last = L.NOTHING
    while group != L.NOTHING:
        if not tree.groups[group]["is_apart"] and (
            last == L.NOTHING or tree.groups[group]["border"] > tree.groups[last]["border"]
        ):
            last = group
        group = int(tree.groups[group]["next"])
    if last != L.NOTHING:
        tree.groups[last]["border"] = math.inf


@leaf
def remove_from_list(tree: Tree, cell: int, word: int, slot: int, own: Statistics) -> None:
    """Remove a subscription from the list of a keyword."""
    head = list_of(tree, cell, word)
    group = group_in(tree, head, own)
    if not own.is_apart:
        tree.groups[head]["list_count"] -= 1
    if tree.groups[group]["count"] > 1:
        close_gap(tree, group, place_of(tree, group, own.kscore, slot))
    else:
        head = _drop_group(tree, head, group)
    # If space is lacking, the groups stay as they are for a while.
    if head != L.NOTHING and should_partition(tree, head) and has_partition(tree, head, 0):
        partition(tree, head)


@leaf
def drop_list(tree: Tree, cell: int, word: int) -> None:
    """Free a list with all its groups, if it exists."""
    group = list_of(tree, cell, word)
    if group == L.NOTHING:
        return
    pop(tree.list_keys, tree.list_values, key_of(cell, word))
    tree.meta[L.LIST_COUNT] -= 1
    while group != L.NOTHING:
        row = tree.groups[group]
        following = int(row["next"])
        free_span(tree, int(row["start"]), int(row["room"]))
        give_back_rows(tree.groups["next"], tree.meta, L.FREE_ROW, group)
        group = following
