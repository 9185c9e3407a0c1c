"""The invariants of an inverted grid."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from index.contracts import InconsistentIndexError
from index.inverted_grid import layout as L
from index.inverted_grid.cell_kernels import (
    bucket_of,
    column_of,
    keyword_of,
    row_of,
    side_of,
    signature_without_first,
)
from index.inverted_grid.layout import Grid
from index.inverted_grid.node_kernels import CELLS_MAX
from index.inverted_grid.step_kernels import column_step, first_of, last_of, row_step
from index.tables import SlotTable
from index.tables.free_kernels import NOTHING
from index.tables.run_kernels import NO_RUN
from index.tables.runs import check_runs


def check_grid(grid: Grid, table: SlotTable) -> None:
    """Verify every invariant.

    Raises
    ------
    InconsistentIndexError
        If an invariant is violated; the message names it.
    """
    if grid.meta[L.PENDING] != 0:
        raise InconsistentIndexError("nodes are not settled")
    if grid.meta[L.CLAUSES] != len(table):
        raise InconsistentIndexError("the grid has a wrong count of clauses")
    _check_words(grid, table)
    slots = table.used()
    firsts = np.array([keyword_of(grid, slot, 0) for slot in slots.tolist()], dtype=np.int64)
    runs: list[tuple[int, int]] = []
    spans: list[tuple[int, int]] = []
    roots = np.flatnonzero(grid.roots)
    if set(roots.tolist()) != set(firsts.tolist()):
        raise InconsistentIndexError(
            "lists of keywords without clauses, or keywords of clauses without lists"
        )
    for word in roots.tolist():
        root = int(grid.roots[word]) - 1
        spans.append((root, 0))
        if grid.parents[root] != L.NO_NODE:
            raise InconsistentIndexError(f"the list of keyword {word} has a parent")
        _check_node(grid, root, set(slots[firsts == word].tolist()), 1, runs, spans)
    check_runs(grid.entries, runs)
    _check_spans(grid, spans)


def _check_words(grid: Grid, table: SlotTable) -> None:
    counts = np.zeros(len(grid.word_counts), dtype=np.int64)
    for slot in table.used().tolist():
        start = int(grid.clauses[slot]["keyword_start"])
        count = int(grid.clauses[slot]["keyword_count"])
        counts[table.keywords(slot)] += 1
        if sorted(grid.ranks[start : start + count].tolist()) != list(range(count)):
            raise InconsistentIndexError(f"the keywords of slot {slot} are not ranked")
    if (counts != grid.word_counts).any():
        raise InconsistentIndexError("a keyword has a wrong count of clauses")


def _check_node(
    grid: Grid,
    number: int,
    slots: set[int],
    depth: int,
    runs: list[tuple[int, int]],
    spans: list[tuple[int, int]],
) -> None:
    """Verify that a node has exactly these clauses below it, at its leaves."""
    node = grid.nodes[number]
    if node["count"] != len(slots):
        raise InconsistentIndexError(f"node {number} has a wrong count below it")
    if node["kind"] == L.LEAF:
        _check_leaf(grid, number, slots, runs)
        return
    first, size_class = int(node["first"]), int(node["size_class"])
    spans.append((first, size_class))
    children = list(range(first, first + (1 << size_class)))
    expected: dict[int, set[int]] = {child: set() for child in children}
    if node["kept"] != L.NO_NODE:
        expected[int(node["kept"])] = set()
        spans.append((int(node["kept"]), 0))
    for slot in slots:
        for child in _homes(grid, number, slot, depth):
            if child not in expected:
                raise InconsistentIndexError(f"node {number} cannot keep slot {slot}")
            expected[child].add(slot)
    deeper = depth + (node["kind"] != L.PLACE)
    for child, held in expected.items():
        if grid.parents[child] != number:
            raise InconsistentIndexError(f"node {child} has a wrong parent")
        _check_node(grid, child, held, deeper, runs, spans)


def _homes(grid: Grid, number: int, slot: int, depth: int) -> Iterator[int]:
    """Yield the children that a clause belongs to."""
    node = grid.nodes[number]
    first = int(node["first"])
    if node["kind"] == L.PLACE:
        clause = grid.clauses[slot]
        side = side_of(node)
        columns = range(
            column_of(node, column_step(grid.frame, clause["x1_m"]), side),
            column_of(node, column_step(grid.frame, clause["x2_m"]), side) + 1,
        )
        rows = range(
            row_of(node, row_step(grid.frame, clause["y1_m"]), side),
            row_of(node, row_step(grid.frame, clause["y2_m"]), side) + 1,
        )
        if len(columns) * len(rows) > min(CELLS_MAX, side * side - 1):
            yield int(node["kept"])
            return
        yield from (first + row * side + column for row in rows for column in columns)
        return
    keyword = keyword_of(grid, slot, depth)
    if keyword < 0:
        yield int(node["kept"])
    else:
        yield first + bucket_of(keyword, int(node["size_class"]))


def _check_leaf(grid: Grid, number: int, slots: set[int], runs: list[tuple[int, int]]) -> None:
    node = grid.nodes[number]
    start, count = int(node["first"]), int(node["count"])
    if node["size_class"] == NO_RUN:
        if count > 0:
            raise InconsistentIndexError(f"leaf {number} has no run")
        return
    runs.append((start, int(node["size_class"])))
    entries = grid.entries.records[start : start + count]
    if set(entries["slot"].tolist()) != slots:
        raise InconsistentIndexError(f"leaf {number} has wrong clauses")
    for entry in entries:
        slot = int(entry["slot"])
        clause = grid.clauses[slot]
        if entry["signature"] != signature_without_first(grid, slot):
            raise InconsistentIndexError(f"an entry of slot {slot} has another signature")
        along_x = [column_step(grid.frame, clause[name]) for name in ("x1_m", "x2_m")]
        along_y = [row_step(grid.frame, clause[name]) for name in ("y1_m", "y2_m")]
        if [first_of(entry["x"]), last_of(entry["x"])] != along_x:
            raise InconsistentIndexError(f"an entry of slot {slot} has other columns")
        if [first_of(entry["y"]), last_of(entry["y"])] != along_y:
            raise InconsistentIndexError(f"an entry of slot {slot} has other rows")


def _check_spans(grid: Grid, spans: list[tuple[int, int]]) -> None:
    """Verify that used and free nodes together are all nodes, none of them twice."""
    found = list(spans)
    for size_class, head in enumerate(grid.free_nodes.tolist()):
        first = head
        while first != NOTHING:
            found.append((first, size_class))
            first = int(grid.nodes[first]["first"])
    end = 0
    for first, size_class in sorted(found):
        if first != end:
            raise InconsistentIndexError("nodes overlap or leave a gap")
        end = first + (1 << size_class)
    if end != grid.meta[L.NODE_END]:
        raise InconsistentIndexError("the pool of nodes has a wrong end")
