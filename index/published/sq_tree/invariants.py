"""The invariants of an SQ-tree, from the definitions. For tests; slow."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

import numpy as np

from index.contracts import InconsistentIndexError
from index.published.sq_tree import layout as L
from index.published.sq_tree.bound_kernels import overhang, threshold
from index.published.sq_tree.cell_kernels import find_cell
from index.published.sq_tree.layout import Slots, Tree
from index.tables.id_map_kernels import NO_KEY


def check_tree(tree: Tree, used: Slots) -> None:
    """Verify every invariant.

    Raises
    ------
    InconsistentIndexError
        If an invariant is violated; the message names it.
    """
    if tree.meta[L.STACK_SIZE]:
        raise InconsistentIndexError("subscriptions are not yet placed")
    kept: Counter[int] = Counter()
    cells = 0
    for node in (L.UNBOUNDED, *_nodes_below(tree, L.ROOT)):
        own = list(_own(tree, node))
        kept.update(own)
        members = [slot for below in _nodes_below(tree, node) for slot in _own(tree, below)]
        _check_counts(tree, node, own, members)
        cells += _check_cells(tree, node, own, members)
        _check_thresholds(tree, node, own, members)
    if kept != Counter(used.tolist()):
        raise InconsistentIndexError("a subscription is not stored exactly once")
    if cells != tree.meta[L.CELL_COUNT] or cells != int((tree.cell_keys != NO_KEY).sum()):
        raise InconsistentIndexError("the tree has a wrong count of cells")
    nodes = 1 + len(list(_nodes_below(tree, L.ROOT)))  # and the node of unbounded subscriptions
    free_nodes = tree.nodes["first_child"]
    nodes += L.CHILDREN * _chain_length(int(tree.meta[L.FREE_NODES]), free_nodes)
    if nodes != tree.meta[L.NODE_END]:
        raise InconsistentIndexError("nodes are missing")
    cells += _chain_length(int(tree.meta[L.FREE_CELLS]), tree.cells["subtree_count"])
    if cells != tree.meta[L.CELL_END]:
        raise InconsistentIndexError("cells are missing")


def _chain_length(first: int, following: Slots) -> int:
    """Return how many elements a chain has, at most one more than there are at all."""
    length = 0
    while first != L.NOTHING and length <= len(following):
        first = int(following[first])
        length += 1
    return length


def _nodes_below(tree: Tree, node: int) -> Iterator[int]:
    yield node
    first = int(tree.nodes[node]["first_child"])
    if first != L.NOTHING:
        for child in range(first, first + L.CHILDREN):
            yield from _nodes_below(tree, child)


def _own(tree: Tree, node: int) -> Iterator[int]:
    """Yield S_n."""
    previous, slot = L.NOTHING, int(tree.nodes[node]["first"])
    while slot != L.NOTHING:
        row = tree.subscriptions[slot]
        if row["node"] != node or row["previous"] != previous:
            raise InconsistentIndexError(f"the chain of node {node} is broken at slot {slot}")
        yield slot
        previous, slot = slot, int(row["next"])


def _check_counts(tree: Tree, node: int, own: list[int], members: list[int]) -> None:
    row = tree.nodes[node]
    if row["own_count"] != len(own) or row["subtree_count"] != len(members):
        raise InconsistentIndexError(f"node {node} has a wrong count of subscriptions")
    is_leaf = row["first_child"] == L.NOTHING
    if is_leaf and len(own) > tree.capacity and row["depth"] < L.DEPTH_MAX and node != L.UNBOUNDED:
        raise InconsistentIndexError(f"leaf {node} is over its capacity")
    for slot in own:
        is_unbounded = math.isinf(tree.subscriptions[slot]["reach_m"])
        if is_unbounded != (node == L.UNBOUNDED):
            raise InconsistentIndexError(f"slot {slot} is stored in node {node}")
        if node not in {L.ROOT, L.UNBOUNDED}:
            _check_place(tree, node, slot)


def _check_place(tree: Tree, node: int, slot: int) -> None:
    """Verify that the centroid is in the node; beyond the root, in the node at its border."""
    root = tree.nodes[L.ROOT]
    row = tree.nodes[node]
    for axis in ("x_m", "y_m"):
        low, high = root[axis] - root["half_m"], root[axis] + root["half_m"]
        inside = min(max(float(tree.subscriptions[slot][axis]), low), high)
        if abs(inside - row[axis]) > row["half_m"] * (1.0 + 1e-9):
            raise InconsistentIndexError(f"slot {slot} lies outside node {node}")


def _check_cells(tree: Tree, node: int, own: list[int], members: list[int]) -> int:
    """Verify T_n^r and I_n; return the number of keywords."""
    below = Counter(word for slot in members for word in _words(tree, slot))
    share = 0.0
    for word, count in below.items():
        cell = find_cell(tree, node, word)
        if cell == L.NOTHING or tree.cells[cell]["subtree_count"] != count:
            raise InconsistentIndexError(f"node {node} has a wrong count of keyword {word}")
        share += float(tree.cells[cell]["share"])
        posted = []
        previous, posting = L.NOTHING, int(tree.cells[cell]["first"])
        while posting != L.NOTHING:
            if tree.postings[posting]["cell"] != cell or tree.postings[posting]["previous"] != previous:
                raise InconsistentIndexError(f"the postings of keyword {word} at node {node} are broken")
            posted.append(int(tree.postings[posting]["slot"]))
            previous, posting = posting, int(tree.postings[posting]["next"])
        if sorted(posted) != sorted(slot for slot in own if word in _words(tree, slot)):
            raise InconsistentIndexError(f"the inverted file of node {node} is wrong for keyword {word}")
    if not np.isclose(share, tree.nodes[node]["common"], atol=1e-9):
        raise InconsistentIndexError(f"E[i_n] of node {node} is wrong")
    return len(below)


def _words(tree: Tree, slot: int) -> list[int]:
    start = int(tree.subscriptions[slot]["keyword_start"])
    count = int(tree.subscriptions[slot]["keyword_count"])
    return [int(word) for word in tree.pool[start : start + count]]


def _check_thresholds(tree: Tree, node: int, own: list[int], members: list[int]) -> None:
    """Verify that both rows of thresholds cover their subscriptions."""
    row = tree.nodes[node]
    for slots, thresholds in ((own, tree.own_m[node]), (members, tree.subtree_m[node])):
        for slot in slots:
            extra = overhang(row, tree.subscriptions[slot])
            for common in range(1, L.COMMON_MAX + 1):
                if threshold(tree.subscriptions[slot], common) + extra > thresholds[common]:
                    raise InconsistentIndexError(f"node {node} may wrongly prune slot {slot}")
