"""The invariants of an R-tree of clauses: O(clauses * tokens * depth), from the definitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from index.contracts import InconsistentIndexError
from index.published.rt_tree import layout as L
from index.published.rt_tree.layout import Tree
from index.tables import SlotTable
from index.tables.id_map_kernels import NO_KEY, find_cell
from index.tables.runs import check_runs

_SIDES = (("x1_m", "y1_m", np.less_equal), ("x2_m", "y2_m", np.greater_equal))


def check_tree(tree: Tree, table: SlotTable) -> None:
    """Verify every invariant.

    Raises
    ------
    InconsistentIndexError
        If an invariant is violated; the message names it.
    """
    expected: dict[tuple[int, int], Counter[int]] = {}
    used = table.used().tolist()
    if tree.meta[L.KIND] == L.FLAT:
        for slot in used:
            for token in table.keywords(slot).tolist():
                expected.setdefault((int(tree.meta[L.ROOT]), token), Counter())[slot] += 1
    else:
        slots = sorted(_walk(tree, int(tree.meta[L.ROOT]), L.NOTHING, 0, table, expected))
        if slots != used:
            raise InconsistentIndexError("the leaves do not match the table")
    _check_nodes(tree)
    _check_tokens(tree, table, expected)


def _walk(
    tree: Tree,
    node: int,
    parent: int,
    depth: int,
    table: SlotTable,
    expected: dict[tuple[int, int], Counter[int]],
) -> list[int]:
    """Verify a node and its descendants; return the clauses there, and the expected tokens of nodes."""
    row = tree.nodes[node]
    children = tree.children[node, : int(row["count"])].tolist()
    if row["parent"] != parent or len(children) > L.FANOUT or (not children and parent != L.NOTHING):
        raise InconsistentIndexError(f"node {node} is not among the children of its parent, or empty")
    if row["is_leaf"] != (depth == tree.meta[L.LEAF_DEPTH]):
        raise InconsistentIndexError(f"leaves are not all as deep as node {node}")
    below: list[int] = []
    for child in children:
        if row["is_leaf"]:
            if tree.clauses["leaf"][child] != node:
                raise InconsistentIndexError(f"slot {child} has a wrong leaf")
            its = [child]
        else:
            its = _walk(tree, child, node, depth + 1, table, expected)
        below += its
        for slot in its:
            for token in _shown(tree, depth, _tokens(table, slot)):
                members = expected.setdefault((node, token), Counter())
                members[child if tree.meta[L.KIND] == L.FILES else slot] += 1
    tokens = sum(len(table.keywords(slot)) for slot in below)
    if row["live"] != len(below) or row["tokens"] != tokens:
        raise InconsistentIndexError(f"node {node} has a wrong count of clauses or tokens")
    _check_box(tree, node, children)
    return below


def _tokens(table: SlotTable, slot: int) -> list[int]:
    """Return the tokens of a clause in its order."""
    start, count = int(table.rows["keyword_start"][slot]), int(table.rows["keyword_count"][slot])
    places = table.places[start : start + count]
    if sorted(places.tolist()) != list(range(count)):
        raise InconsistentIndexError(f"slot {slot} has a wrong order of tokens")
    found: list[int] = table.keywords(slot)[places].tolist()
    return found


def _shown(tree: Tree, depth: int, tokens: list[int]) -> list[int]:
    """Return the tokens of a clause that belong to its ancestor at a depth."""
    kind, leaf_depth = tree.meta[L.KIND], tree.meta[L.LEAF_DEPTH]
    if kind == L.FILES or (kind == L.TOKENS and depth > 0):
        return tokens
    if kind == L.COUNTED and depth == leaf_depth:
        return tokens[max(0, depth - 1) :]
    if kind == L.PLAIN or depth == 0:
        return []
    return tokens[:1] if kind == L.REPRESENTATIVES else tokens[depth - 1 : depth]


def _check_box(tree: Tree, node: int, children: list[int]) -> None:
    """Verify that a box contains all children, and is no larger than rounding makes it."""
    row = tree.nodes[node]
    rows = (tree.clauses if row["is_leaf"] else tree.nodes)[children]
    for x, y, outside in _SIDES:
        for side in (x, y):
            if not outside(row[side], rows[side]).all():
                raise InconsistentIndexError(f"an entry below node {node} lies outside its box")
            slack = np.spacing(np.abs(rows[side].astype(np.float32)))
            if children and not (np.abs(rows[side] - float(row[side])) <= slack).any():
                raise InconsistentIndexError(f"the box of node {node} is too large")


def _check_nodes(tree: Tree) -> None:
    nodes = 0
    waiting = [int(tree.meta[L.ROOT])]
    while waiting:
        node = waiting.pop()
        nodes += 1
        if not tree.nodes["is_leaf"][node]:
            waiting += tree.children[node, : int(tree.nodes["count"][node])].tolist()
    free = int(tree.meta[L.FREE_NODE])
    while free != L.NOTHING:
        nodes += 1
        free = int(tree.nodes["parent"][free])
    if nodes != tree.meta[L.NODE_END]:
        raise InconsistentIndexError("nodes are missing")


def _check_tokens(tree: Tree, table: SlotTable, expected: dict[tuple[int, int], Counter[int]]) -> None:
    """Verify that nodes have exactly the expected tokens."""
    keys = tree.keys[tree.keys != NO_KEY].tolist()
    if len(keys) != tree.meta[L.KEY_COUNT] or len(keys) != len(expected):
        raise InconsistentIndexError("nodes have tokens other than those below them")
    runs: list[tuple[int, int]] = []
    for key in keys:
        members = expected.get((key >> 32, key & 0xFFFFFFFF))
        cell = find_cell(tree.keys, key)
        if members is None or tree.keys[cell] != key:
            raise InconsistentIndexError(f"node {key >> 32} has a token that no entry below has")
        value = int(tree.values[cell])
        if tree.meta[L.KIND] in (L.TOKENS, L.REPRESENTATIVES):
            if value != sum(members.values()):
                raise InconsistentIndexError(f"node {key >> 32} has a wrong count of a token")
            continue
        row = tree.lists[value]
        start = int(row["start"])
        records = tree.members.records[start : start + int(row["count"])]
        found = records["slot"].tolist()
        if sorted(found) != sorted(members):
            raise InconsistentIndexError(f"a list of node {key >> 32} does not match its token")
        # Where all tokens of a clause are to be met, they are counted against this number.
        if tree.meta[L.KIND] in (L.COUNTED, L.FLAT) and records["tokens"].tolist() != [
            len(table.keywords(slot)) for slot in found
        ]:
            raise InconsistentIndexError(f"a list of node {key >> 32} has a wrong number of tokens")
        runs.append((start, int(row["size_class"])))
    check_runs(tree.members, runs)
    if tree.meta[L.KIND] not in (L.TOKENS, L.REPRESENTATIVES):
        free = list(_free_lists(tree))
        if len(free) + len(runs) != tree.meta[L.LIST_END]:
            raise InconsistentIndexError("lists are missing")


def _free_lists(tree: Tree) -> Iterator[int]:
    number = int(tree.meta[L.FREE_LIST])
    while number != L.NOTHING:
        yield number
        number = int(tree.lists["start"][number])
