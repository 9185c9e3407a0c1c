"""Lists of members of a token at a node: clauses, or children that have it below.

Operations: enter O(1) amortised, leave O(members of the list). The caller has verified the capacity
(`room_status`).
"""

from __future__ import annotations

from index.published.rt_tree import layout as L
from index.published.rt_tree.layout import Tree
from index.tables.free_kernels import give_back_rows, take_rows
from index.tables.id_map_kernels import LOAD_MAX, NO_KEY, NO_VALUE, find, find_cell, pop, put
from index.tables.run_kernels import (
    NO_RUN,
    RUN_END,
    RUN_LEAST,
    free_run,
    is_wasteful,
    moved_run,
)
from safe_region.jit import leaf

DONE = 0
ROOT_FULL = 1
NODES_FULL = 2
KEYS_FULL = 3
LISTS_FULL = 4
MEMBERS_FULL = 5


@leaf
def key_of(node: int, token: int) -> int:
    """Return the hash key of a token at a node."""
    return (int(node) << 32) | int(token)


@leaf
def room_status(tree: Tree, keys: int, members: int) -> int:
    """Return DONE if there is space for this many more tokens at nodes, and records of members."""
    if tree.meta[L.KEY_COUNT] + keys > LOAD_MAX * tree.keys.shape[0]:
        return KEYS_FULL
    if tree.meta[L.LIST_END] + keys > tree.lists.shape[0]:
        return LISTS_FULL
    if tree.members.ends[RUN_END] + members > tree.members.records.shape[0]:
        return MEMBERS_FULL
    return DONE


@leaf
def list_of(tree: Tree, node: int, token: int) -> int:
    """Return the list of a token at a node; NOTHING if there is none."""
    found = find(tree.keys, tree.values, key_of(node, token))
    return L.NOTHING if found == NO_VALUE else found


@leaf
def enter(tree: Tree, node: int, token: int, member: int, tokens: int) -> bool:
    """Insert a clause with its number of tokens, or a child; return whether it is the first member."""
    number = list_of(tree, node, token)
    is_first = number == L.NOTHING
    if is_first:
        number = take_rows(tree.lists["start"], tree.meta, L.FREE_LIST, tree.meta, L.LIST_END, 1)
        tree.lists[number]["count"] = 0
        tree.lists[number]["size_class"] = NO_RUN
        put(tree.keys, tree.values, key_of(node, token), number)
        tree.meta[L.KEY_COUNT] += 1
    row = tree.lists[number]
    size_class, count = int(row["size_class"]), int(row["count"])
    if size_class == NO_RUN or count == RUN_LEAST << size_class:
        row["start"] = moved_run(tree.members, int(row["start"]), count, size_class, size_class + 1)
        row["size_class"] = size_class + 1
    record = tree.members.records[row["start"] + count]
    record["slot"] = member
    record["tokens"] = tokens
    row["count"] = count + 1
    tree.meta[L.LONGEST] = max(int(tree.meta[L.LONGEST]), count + 1)
    return bool(is_first)


@leaf
def is_last(tree: Tree, node: int, token: int, member: int) -> bool:
    """Return whether a member was the last one inserted."""
    number = list_of(tree, node, token)
    if number == L.NOTHING:
        return False
    row = tree.lists[number]
    return bool(tree.members.records[row["start"] + row["count"] - 1]["slot"] == member)


@leaf
def end_list(tree: Tree, node: int, token: int) -> bool:
    """Free a list, if it exists; return whether it did."""
    number = pop(tree.keys, tree.values, key_of(node, token))
    if number == NO_VALUE:
        return False
    row = tree.lists[number]
    free_run(tree.members, int(row["start"]), int(row["size_class"]))
    row["size_class"] = NO_RUN
    give_back_rows(tree.lists["start"], tree.meta, L.FREE_LIST, number)
    tree.meta[L.KEY_COUNT] -= 1
    return True


@leaf
def leave(tree: Tree, node: int, token: int, member: int) -> bool:
    """Remove a member from a list, which has it; return whether it was the only one."""
    number = list_of(tree, node, token)
    row = tree.lists[number]
    records = tree.members.records
    start, count = int(row["start"]), int(row["count"]) - 1
    place = start
    while records[place]["slot"] != member:
        place += 1
    records[place] = records[start + count]
    row["count"] = count
    if count == 0:
        return end_list(tree, node, token)
    size_class = int(row["size_class"])
    if is_wasteful(tree.members, count, size_class):
        row["start"] = moved_run(tree.members, start, count, size_class, size_class - 1)
        row["size_class"] = size_class - 1
    return False


@leaf
def count_up(tree: Tree, node: int, token: int) -> None:
    """Count a clause that has a token, at a node."""
    cell = find_cell(tree.keys, key_of(node, token))
    if tree.keys[cell] == NO_KEY:
        tree.keys[cell] = key_of(node, token)
        tree.values[cell] = 0
        tree.meta[L.KEY_COUNT] += 1
    tree.values[cell] += 1


@leaf
def count_down(tree: Tree, node: int, token: int) -> None:
    """Discount a clause that has a token, at a node."""
    cell = find_cell(tree.keys, key_of(node, token))
    tree.values[cell] -= 1
    if tree.values[cell] == 0:
        pop(tree.keys, tree.values, key_of(node, token))
        tree.meta[L.KEY_COUNT] -= 1
