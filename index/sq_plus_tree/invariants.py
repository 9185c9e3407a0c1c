"""The invariants of an SQ+-tree, from the definitions. For tests; slow."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from index.contracts import InconsistentIndexError
from index.sq_plus_tree import layout as L
from index.sq_plus_tree.cell_kernels import others_signature
from index.sq_plus_tree.closeness_kernels import combination_square, is_loose
from index.sq_plus_tree.layout import Forest, Row, Slots
from index.sq_plus_tree.threshold_kernels import entry_threshold, has_entry, write_reach
from index.tables.id_map_kernels import NO_KEY

Combination = tuple[int, ...]


def check_forest(forest: Forest, used: Slots) -> None:
    """Verify every invariant.

    Raises
    ------
    InconsistentIndexError
        If an invariant is violated; the message names it.
    """
    nodes = dict(_nodes(forest))
    if len(nodes) != forest.meta[L.NODE_COUNT] or forest.meta[L.PENDING_COUNT] != 0:
        raise InconsistentIndexError("the trie has a wrong count of nodes")
    opened = {
        combination for combination, node in nodes.items() if not forest.nodes[node]["is_bucket"]
    } | {()}
    expected: dict[Combination, set[int]] = {}
    for slot in used.tolist():
        for combination in _combinations(forest, slot):
            if combination[:-1] in opened:
                expected.setdefault(combination, set()).add(slot)
    if set(expected) != set(nodes):
        raise InconsistentIndexError("nodes are not the combinations of the subscriptions")
    for combination, slots in expected.items():
        node = nodes[combination]
        row = forest.nodes[node]
        if row["depth"] != len(combination) or row["count"] != len(slots):
            raise InconsistentIndexError(f"combination {combination} has a wrong count of subscriptions")
        if row["is_bucket"]:
            _check_bucket(forest, node, slots)
        else:
            square = combination_square(forest, node)
            _check_entries(
                forest,
                node,
                {slot for slot in slots if has_entry(forest, forest.subscriptions[slot], square)},
            )


def _nodes(forest: Forest) -> Iterator[tuple[Combination, int]]:
    """Yield all combinations with their nodes."""
    below: dict[int, list[tuple[int, int]]] = {}
    for place in np.flatnonzero(forest.node_keys != NO_KEY).tolist():
        key, node = int(forest.node_keys[place]), int(forest.node_values[place])
        parent, keyword = key >> 32, key & 0xFFFFFFFF
        if forest.nodes[node]["parent"] != parent or forest.nodes[node]["keyword"] != keyword:
            raise InconsistentIndexError(f"node {node} has a wrong hash")
        below.setdefault(parent, []).append((keyword, node))
    stack: list[tuple[Combination, int]] = [((), L.TRIE_ROOT)]
    while stack:
        combination, node = stack.pop()
        children = [((*combination, keyword), child) for keyword, child in below.get(node, [])]
        yield from children
        stack += children


def _check_bucket(forest: Forest, node: int, slots: set[int]) -> None:
    row = forest.nodes[node]
    members = forest.members[row["start"] : row["start"] + row["count"]].tolist()
    if sorted(members) != sorted(slots) or len(members) > L.BUCKET_MAX:
        raise InconsistentIndexError(f"the members of bucket {node} are wrong")


def _check_entries(forest: Forest, node: int, slots: set[int]) -> None:
    row = forest.nodes[node]
    found = dict(_entries(forest, node))
    if row["entry_count"] != len(found) or sorted(forest.entry_slots[list(found)].tolist()) != sorted(
        slots
    ):
        raise InconsistentIndexError(f"the entries of node {node} are wrong")
    for entry, leaf in found.items():
        mine = forest.entries[entry]
        subscription = forest.subscriptions[forest.entry_slots[entry]]
        if mine != _expected_entry(forest, node, subscription):
            raise InconsistentIndexError(f"entry {entry} contradicts its subscription")
        if leaf != L.NOTHING:
            cell = forest.cells[leaf]
            x_is_within = cell["x_min"] <= mine["x_m"] < cell["x_max"]
            y_is_within = cell["y_min"] <= mine["y_m"] < cell["y_max"]
            if not (x_is_within and y_is_within):
                raise InconsistentIndexError(f"entry {entry} lies outside its cell")


def _expected_entry(forest: Forest, node: int, subscription: Row) -> Row:
    """Return the expected entry of a subscription in a node."""
    entries = np.zeros(1, dtype=L.ENTRY_DTYPE)
    begin, count = int(subscription["keyword_start"]), int(subscription["keyword_count"])
    entries[0]["others"] = others_signature(forest, node, forest.pool[begin : begin + count])
    entries[0]["x_m"] = subscription["x_m"]
    entries[0]["y_m"] = subscription["y_m"]
    write_reach(forest._replace(entries=entries), 0, combination_square(forest, node), subscription)
    return entries[0]


def _entries(forest: Forest, node: int) -> Iterator[tuple[int, int]]:
    """Yield entries with their leaves (NOTHING without cells); verify the fields of the cells."""
    row = forest.nodes[node]
    square = combination_square(forest, node)
    if row["cell"] == L.NOTHING:
        if row["entry_count"] > L.SMALL_MAX:
            raise InconsistentIndexError(f"node {node} has too many entries not to have cells")
        yield from ((e, L.NOTHING) for e in range(row["start"], row["start"] + row["entry_count"]))
        return
    stack = [int(row["cell"])]
    while stack:
        cell = stack.pop()
        first = int(forest.cells[cell]["first_child"])
        if first != L.NOTHING:
            stack += range(first, first + L.CHILDREN)
            expected = forest.threshold_m[first : first + L.CHILDREN].max(axis=0)
        else:
            start, count = int(forest.cells[cell]["start"]), int(forest.cells[cell]["count"])
            if count > L.LEAF_MAX and forest.cells[cell]["depth"] < L.DEPTH_MAX:
                raise InconsistentIndexError(f"leaf {cell} is over its capacity")
            bounds = forest.entries["bound_m"][start : start + count]
            if (bounds[1:] > bounds[:-1]).any():
                raise InconsistentIndexError(
                    f"entries of leaf {cell} are not sorted by decreasing bounds"
                )
            expected = np.full(L.CLASSES, -np.inf, dtype=np.float32)
            for entry in range(start, start + count):
                mine = [entry_threshold(forest, entry, square, n) for n in range(L.CLASSES)]
                expected = np.maximum(expected, mine)
                yield entry, cell
        if not np.array_equal(expected, forest.threshold_m[cell]):
            raise InconsistentIndexError(f"the thresholds of cell {cell} are wrong")


def _combinations(forest: Forest, slot: int) -> Iterator[Combination]:
    """Yield the combinations by which a subscription may be found."""
    subscription = forest.subscriptions[slot]
    start = int(subscription["keyword_start"])
    words = forest.pool[start : start + int(subscription["keyword_count"])][::-1].tolist()
    longest = 1 if is_loose(subscription) else len(words)
    for count in range(1, longest + 1):
        yield from combinations(words, count)
