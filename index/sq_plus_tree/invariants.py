"""What must always hold in an SQ+-tree, from the definitions. For tests; slow."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from index.contracts import InconsistentIndexError
from index.sq_plus_tree.entry_kernels import _is_within
from index.sq_plus_tree.layout import (
    CHILDREN,
    CLASSES,
    COMBINED_MAX,
    DEPTH_MAX,
    LEAF_MAX,
    NODE_COUNT,
    NOTHING,
    SMALL_MAX,
    TRIE_ROOT,
    Forest,
    Slots,
)
from index.sq_plus_tree.threshold_kernels import entry_threshold
from index.sq_plus_tree.trie_kernels import child
from index.tables.id_map_kernels import NO_KEY

Combination = tuple[int, ...]


def check_forest(forest: Forest, used: Slots) -> None:
    """Verify every invariant.

    Raises
    ------
    InconsistentIndexError
        Naming what does not hold.
    """
    nodes = dict(_nodes(forest))
    if len(nodes) != forest.meta[NODE_COUNT] + 1 or len(nodes) - 1 != int(
        (forest.node_keys != NO_KEY).sum()
    ):
        raise InconsistentIndexError("the trie has lost count of its nodes")
    found: dict[tuple[int, int], Combination] = {}
    for node, combination in nodes.items():
        groups = list(_groups(forest, node))
        if node != TRIE_ROOT and not groups and forest.nodes[node]["child_count"] == 0:
            raise InconsistentIndexError(f"nobody has combination {combination}")
        for group in groups:
            for entry, leaf in _entries(forest, group):
                _check_entry(forest, group, entry, leaf)
                key = (int(forest.entries[entry]["slot"]), int(forest.entries[entry]["place"]))
                if key in found:
                    raise InconsistentIndexError(f"slot {key[0]} has place {key[1]} twice")
                found[key] = combination
    expected = {
        (slot, place): combination
        for slot in used.tolist()
        for place, combination in enumerate(_combinations(forest, slot))
    }
    if found != expected:
        raise InconsistentIndexError("entries are not the combinations of the subscriptions")


def _nodes(forest: Forest) -> Iterator[tuple[int, Combination]]:
    """Yield all nodes with their combinations."""
    below: dict[int, list[int]] = {}
    for key in forest.node_keys[forest.node_keys != NO_KEY].tolist():
        below.setdefault(key >> 32, []).append(key & 0xFFFFFFFF)
    stack: list[tuple[int, Combination]] = [(TRIE_ROOT, ())]
    while stack:
        node, combination = stack.pop()
        words = below.get(node, [])
        if len(words) != forest.nodes[node]["child_count"]:
            raise InconsistentIndexError(f"combination {combination} has lost count of its children")
        yield node, combination
        stack += [(child(forest, node, word), (*combination, word)) for word in words]


def _groups(forest: Forest, node: int) -> Iterator[int]:
    group = int(forest.nodes[node]["first_group"])
    while group != NOTHING:
        if forest.groups[group]["node"] != node or forest.groups[group]["count"] == 0:
            raise InconsistentIndexError(f"group {group} should not be at node {node}")
        yield group
        group = int(forest.groups[group]["next"])


def _entries(forest: Forest, group: int) -> Iterator[tuple[int, int]]:
    """Yield entries with their leaves (NOTHING in a small group)."""
    row = forest.groups[group]
    if row["cell"] == NOTHING:
        if row["count"] > SMALL_MAX:
            raise InconsistentIndexError(f"group {group} is too large to be without cells")
        yield from ((entry, NOTHING) for entry in range(row["start"], row["start"] + row["count"]))
        return
    total = 0
    stack = [int(row["cell"])]
    while stack:
        cell = stack.pop()
        first = int(forest.cells[cell]["first_child"])
        if first != NOTHING:
            stack += range(first, first + CHILDREN)
            expected = forest.threshold_m[first : first + CHILDREN].max(axis=0)
        else:
            start, count = int(forest.cells[cell]["start"]), int(forest.cells[cell]["count"])
            if count > LEAF_MAX and forest.cells[cell]["depth"] < DEPTH_MAX:
                raise InconsistentIndexError(f"leaf {cell} is over its capacity")
            total += count
            expected = np.full(CLASSES, -np.inf, dtype=np.float32)
            for entry in range(start, start + count):
                mine = [np.float32(entry_threshold(forest, entry, group, n)) for n in range(CLASSES)]
                expected = np.maximum(expected, mine)
                yield entry, cell
        if not np.array_equal(expected, forest.threshold_m[cell]):
            raise InconsistentIndexError(f"the thresholds of cell {cell} are wrong")
    if total != row["count"]:
        raise InconsistentIndexError(f"group {group} has lost count of its entries")


def _check_entry(forest: Forest, group: int, entry: int, leaf: int) -> None:
    row = forest.entries[entry]
    if row["owner"] != (leaf if leaf != NOTHING else -2 - group):
        raise InconsistentIndexError(f"entry {entry} has another owner")
    slot = int(row["slot"])
    subscription = forest.subscriptions[slot]
    if forest.places[subscription["place_start"] + row["place"]] != entry:
        raise InconsistentIndexError(f"slot {slot} does not point at entry {entry}")
    mine = forest.groups[group]
    if mine["size"] != subscription["keyword_count"] or mine["similarity"] != subscription["similarity"]:
        raise InconsistentIndexError(f"slot {slot} is in the wrong group")
    if row["x_m"] != np.float32(subscription["x_m"]) or row["y_m"] != np.float32(subscription["y_m"]):
        raise InconsistentIndexError(f"entry {entry} is not where its subscription is")
    if leaf != NOTHING and not _is_within(forest, leaf, float(row["x_m"]), float(row["y_m"])):
        edge = forest.root[:2] + forest.root[2]
        if row["x_m"] < edge[0] and row["y_m"] < edge[1]:
            raise InconsistentIndexError(f"entry {entry} lies outside its cell")


def _combinations(forest: Forest, slot: int) -> Iterator[Combination]:
    """Yield the combinations of a subscription in the order of their places."""
    start = int(forest.subscriptions[slot]["keyword_start"])
    words = forest.pool[start : start + int(forest.subscriptions[slot]["keyword_count"])].tolist()
    if len(words) > COMBINED_MAX:
        yield from ((word,) for word in words)
        return
    masks = {
        sum(1 << words.index(word) for word in chosen): chosen
        for count in range(1, len(words) + 1)
        for chosen in combinations(words, count)
    }
    yield from (masks[mask] for mask in sorted(masks))
