"""The invariants of an IR-tree: O(objects * keywords * depth)."""

from __future__ import annotations

from collections.abc import Iterator

from index.contracts import InconsistentIndexError
from index.published.ir_tree import layout as L
from index.published.ir_tree.file_kernels import code_of, count_of, key_of
from index.published.ir_tree.layout import Row, Tree
from index.tables import SlotTable
from index.tables.id_map_kernels import NO_KEY, NO_VALUE, find
from index.tables.norm_kernels import norm_of_code


def check_tree(tree: Tree, table: SlotTable) -> None:
    """Verify every invariant.

    Raises
    ------
    InconsistentIndexError
        If an invariant is violated; the message names it.
    """
    slots: list[int] = []
    nodes = 0
    for node, below in _walk(tree, int(tree.meta[L.ROOT]), L.NOTHING, table):
        nodes += 1
        _check_node(tree, node, below, table)
        if tree.nodes[node]["is_leaf"]:
            slots += below
    if sorted(slots) != table.used().tolist():
        raise InconsistentIndexError("the leaves do not match the table")
    if tree.meta[L.PENDING_COUNT] or (tree.keys != NO_KEY).sum() != tree.meta[L.KEY_COUNT]:
        raise InconsistentIndexError("the files have a wrong count of postings")
    free = int(tree.meta[L.FREE_NODE])
    while free != L.NOTHING:
        nodes += 1
        free = int(tree.nodes[free]["parent"])
    if nodes != tree.meta[L.NODE_END]:
        raise InconsistentIndexError("nodes are missing")
    used = sorted(node for node in tree.owners.tolist() if node != L.NOTHING)
    if len(used) != len(set(used)):
        raise InconsistentIndexError("a node has two files")


def _walk(tree: Tree, node: int, parent: int, table: SlotTable) -> Iterator[tuple[int, list[int]]]:
    """Yield nodes, each with the objects below."""
    row = tree.nodes[node]
    if row["parent"] != parent or not 0 <= row["count"] <= L.FANOUT:
        raise InconsistentIndexError(f"node {node} is not among the children of its parent")
    children = tree.children[node, : int(row["count"])].tolist()
    below: list[int] = []
    if row["is_leaf"]:
        for slot in children:
            if table.places[table.rows["keyword_start"][slot]] != node:
                raise InconsistentIndexError(f"slot {slot} has a wrong leaf")
        below = children
    for child in children if not row["is_leaf"] else ():
        for found, its in _walk(tree, child, node, table):
            if found == child:
                below = below + its
            yield found, its
    yield node, below


def _check_node(tree: Tree, node: int, below: list[int], table: SlotTable) -> None:
    """Verify that the bounds of a node are valid for all objects below."""
    row = tree.nodes[node]
    if row["live"] != len(below):
        raise InconsistentIndexError(f"node {node} has a wrong count of objects")
    if not below:
        if row["parent"] != L.NOTHING:
            raise InconsistentIndexError(f"node {node} is empty")
        return
    file = int(row["file"])
    if file == L.NOTHING or tree.owners[file] != node:
        raise InconsistentIndexError(f"node {node} has no file")
    for slot in below:
        _check_object(tree, row, slot, table)


def _check_object(tree: Tree, node: Row, slot: int, table: SlotTable) -> None:
    item = table.rows[slot]
    is_inside = (
        node["x1_m"] <= item["x_m"] <= node["x2_m"] and node["y1_m"] <= item["y_m"] <= node["y2_m"]
    )
    if not is_inside:
        raise InconsistentIndexError(f"slot {slot} lies outside a box above it")
    for keyword in table.keywords(slot).tolist():
        value = find(tree.keys, tree.values, key_of(int(node["file"]), keyword))
        if value == NO_VALUE:
            raise InconsistentIndexError(f"keyword {keyword} of slot {slot} is missing above it")
        if count_of(value) > item["keyword_count"] or norm_of_code(code_of(value)) > item["norm2"]:
            raise InconsistentIndexError(
                f"keyword {keyword} of slot {slot} has an invalid bound above it"
            )
