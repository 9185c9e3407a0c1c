"""The invariants of an index of this kind, from the definitions. For tests; slow."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from index.contracts import InconsistentIndexError
from index.published.igpt import layout as L
from index.published.igpt.bound_kernels import (
    inner_distance,
    is_in_cell,
    outer_reach,
    statistics_of,
)
from index.published.igpt.layout import Row, Slots, Tree
from index.tables.float32_kernels import upper
from index.tables.id_map_kernels import NO_KEY
from index.tables.vector_kernels import comes_before

_WORD_BITS = 32


def check_tree(tree: Tree, used: Slots) -> None:
    """Verify every invariant.

    Raises
    ------
    InconsistentIndexError
        If an invariant is violated; the message names it.
    """
    if tree.meta[L.STACK_SIZE] or tree.meta[L.DONE_STEPS]:
        raise InconsistentIndexError("subscriptions are not yet placed")
    expected: dict[int, list[int]] = {}
    members: list[int] = []
    for leaf in _check_cells(tree, L.ROOT):
        for slot in _members(tree, leaf):
            members.append(slot)
            for word in _words(tree, slot):
                expected.setdefault(leaf << _WORD_BITS | word, []).append(slot)
    if sorted(members) != used.tolist():
        raise InconsistentIndexError("a subscription is not in exactly one leaf")
    keys = tree.list_keys[tree.list_keys != NO_KEY].tolist()
    if sorted(keys) != sorted(expected) or len(keys) != tree.meta[L.LIST_COUNT]:
        raise InconsistentIndexError("lists do not match the subscriptions")
    groups: list[int] = []
    for place in np.flatnonzero(tree.list_keys != NO_KEY).tolist():
        key, head = int(tree.list_keys[place]), int(tree.list_values[place])
        groups += _check_list(tree, key, head, expected[key])
    _check_rows(tree, groups)
    _check_spans(tree, groups)


def _check_cells(tree: Tree, cell: int) -> Iterator[int]:
    """Yield the leaves below a cell; verify the largest reaches."""
    row = tree.cells[cell]
    first = int(row["first_child"])
    if first == L.NOTHING:
        reaches = [outer_reach(tree.subscriptions[slot]) for slot in _members(tree, cell)]
        top = max(reaches, default=-math.inf)
        if len(reaches) != row["count"]:
            raise InconsistentIndexError(f"leaf {cell} has a wrong count of subscriptions")
        if top > -math.inf and reaches.count(top) != row["top_count"]:
            raise InconsistentIndexError(f"leaf {cell} has a wrong largest reach")
        if len(reaches) > tree.settings.capacity and row["depth"] < L.DEPTH_MAX:
            raise InconsistentIndexError(f"leaf {cell} is over its capacity")
        yield cell
    else:
        for child in range(first, first + L.CHILDREN):
            yield from _check_cells(tree, child)
        top = float(tree.cells["reach_m"][first : first + L.CHILDREN].max())
    if row["reach_m"] != top:
        raise InconsistentIndexError(f"the largest reach of cell {cell} is wrong")


def _members(tree: Tree, leaf: int) -> Iterator[int]:
    previous, slot = L.NOTHING, int(tree.cells[leaf]["first"])
    while slot != L.NOTHING:
        row = tree.subscriptions[slot]
        if row["cell"] != leaf or row["previous"] != previous:
            raise InconsistentIndexError(f"the chain of leaf {leaf} is broken at slot {slot}")
        if not is_in_cell(tree, leaf, row["x_m"], row["y_m"]):
            raise InconsistentIndexError(f"slot {slot} lies outside leaf {leaf}")
        yield slot
        previous, slot = slot, int(row["next"])


def _words(tree: Tree, slot: int) -> list[int]:
    """Return the keywords of a subscription, in their order."""
    start = int(tree.subscriptions[slot]["keyword_start"])
    words: list[int] = tree.pool[start : start + int(tree.subscriptions[slot]["keyword_count"])].tolist()
    words.sort(key=lambda word: (-tree.squares[word], -word))
    if any(comes_before(after, before, tree.squares) for before, after in pairwise(words)):
        raise InconsistentIndexError(f"the order of the keywords of slot {slot} is wrong")
    return words


def _check_list(tree: Tree, key: int, head: int, slots: list[int]) -> list[int]:
    """Verify the groups of a list; return them."""
    name = f"the list of keyword {key & (1 << _WORD_BITS) - 1} in leaf {key >> _WORD_BITS}"
    groups, found, alpha_count, border = [], [], 0, -math.inf
    group = head
    while group != L.NOTHING:
        row = tree.groups[group]
        groups.append(group)
        if row["key"] != key or row["count"] < 1 or row["count"] > 1 << int(row["room"]):
            raise InconsistentIndexError(f"{name} has a missing or foreign group")
        entries = tree.entries[row["start"] : row["start"] + row["count"]]
        found += entries["slot"].tolist()
        if not row["is_apart"]:
            alpha_count += len(entries)
            if not ((border < entries["alpha"]) & (entries["alpha"] <= row["border"])).all():
                raise InconsistentIndexError(f"{name} has entries in a wrong group")
            border = float(row["border"])
        group = int(row["next"])
    apart_count = int(tree.groups["is_apart"][groups].sum())
    if sorted(found) != sorted(slots):
        raise InconsistentIndexError(f"{name} does not match its subscriptions")
    if tree.groups[head]["list_count"] != alpha_count:
        raise InconsistentIndexError(f"{name} has a wrong count of entries")
    if apart_count > 1 or len(groups) - apart_count > tree.settings.group_max:
        raise InconsistentIndexError(f"{name} has too many groups")
    if alpha_count and border != math.inf:
        raise InconsistentIndexError(f"{name} has no group for large preferences")
    for group in groups:
        _check_group(tree, tree.groups[group], name)
    return groups


def _check_group(tree: Tree, group: Row, name: str) -> None:
    """Verify that entries agree with their subscriptions, and are in order."""
    cell, word = int(group["key"]) >> _WORD_BITS, int(group["key"]) & (1 << _WORD_BITS) - 1
    entries = tree.entries[group["start"] : group["start"] + group["count"]]
    order = list(zip(entries["kscore"].tolist(), entries["slot"].tolist(), strict=True))
    if order != sorted(order):
        raise InconsistentIndexError(f"{name} has an unordered group")
    for i, entry in enumerate(entries):
        slot = int(entry["slot"])
        row = tree.subscriptions[slot]
        own = statistics_of(tree, row)
        words = _words(tree, slot)
        place = words.index(word)
        weights = [math.sqrt(tree.squares[one] / row["norm2"]) for one in words] + [0.0]
        if own.is_apart:
            weights = [0.0] * len(weights)
        sums = (entry["kscore"], entry["alpha"], entry["inner_m"])
        if sums != (own.kscore, own.alpha, inner_distance(tree, cell, row)):
            raise InconsistentIndexError(f"{name} has wrong bounds of slot {slot}")
        if entry["place"] != place or entry["weight"] != upper(weights[place]):
            raise InconsistentIndexError(f"{name} has a wrong weight of slot {slot}")
        rest = math.fsum(weights[place + 1 :])
        if entry["next_weight"] != upper(weights[place + 1]) or not rest * (1 - 1e-15) <= entry["rest"]:
            raise InconsistentIndexError(f"{name} has wrong weights behind that of slot {slot}")
        if bool(group["is_apart"]) != own.is_apart:
            raise InconsistentIndexError(f"{name} has slot {slot} in a wrong group")
        later = (entry["later_alpha"], entry["later_weight"])
        if later != (entries["alpha"][i:].max(), entries["weight"][i:].max()):
            raise InconsistentIndexError(f"{name} has wrong statistics from slot {slot} on")
    first = entries[0]
    stated = (group["kscore"], group["alpha"], group["weight"])
    if stated != (first["kscore"], first["later_alpha"], first["later_weight"]):
        raise InconsistentIndexError(f"{name} has a group with wrong statistics")


def _check_rows(tree: Tree, groups: list[int]) -> None:
    rows = list(groups)
    free = int(tree.meta[L.FREE_ROW])
    while free != L.NOTHING:
        rows.append(free)
        free = int(tree.groups[free]["next"])
    if sorted(rows) != list(range(tree.meta[L.ROW_END])):
        raise InconsistentIndexError("rows of groups are missing or used twice")


def _check_spans(tree: Tree, groups: list[int]) -> None:
    spans = [(int(tree.groups[group]["start"]), int(tree.groups[group]["room"])) for group in groups]
    for room, first in enumerate(tree.free_entries.tolist()):
        start = first
        while start != L.NOTHING:
            spans.append((start, room))
            start = int(tree.entries[start]["slot"])
    end = 0
    for start, room in sorted(spans):
        if start != end:
            raise InconsistentIndexError("runs of entries overlap or leave a gap")
        end = start + (1 << room)
    if end != tree.meta[L.ENTRY_END]:
        raise InconsistentIndexError("the runs of entries have a wrong end")
