"""The invariants of a CIQ index, from the definitions. For tests; slow."""

from __future__ import annotations

import math

import numpy as np

from index.contracts import InconsistentIndexError
from index.published.ciq.cover_kernels import cell_at, text_bound
from index.published.ciq.layout import CHILDREN, DONE_ROWS, DONE_STEPS, LIST_COUNT, Cover, Slots
from index.tables.id_map_kernels import NO_KEY
from index.tables.quad_kernels import node_distance
from index.tables.runs import check_runs

_WORD_BITS = 32


def check_cover(cover: Cover, used: Slots) -> None:
    """Verify every invariant.

    Raises
    ------
    InconsistentIndexError
        If an invariant is violated; the message names it.
    """
    if cover.meta[DONE_ROWS] or cover.meta[DONE_STEPS]:
        raise InconsistentIndexError("subscriptions are not yet inserted")
    expected: dict[int, list[int]] = {}
    for slot in used.tolist():
        row = cover.subscriptions[slot]
        if row["cell"] != cell_at(cover, row["x_m"], row["y_m"]):
            raise InconsistentIndexError(f"slot {slot} is not in its cell")
        start = int(row["keyword_start"])
        words = cover.pool[start : start + int(row["keyword_count"])].tolist()
        for column, cell in _covering(cover, int(row["cell"])):
            away = node_distance(cover.cells, cell, row["x_m"], row["y_m"])
            if cover.bounds[slot, column] != np.float32(text_bound(row, away)):
                raise InconsistentIndexError(f"slot {slot} has a wrong bound in cell {cell}")
            for word in words:
                expected.setdefault(cell << _WORD_BITS | word, []).append(slot)
    _check_lists(cover, expected)


def _covering(cover: Cover, cell: int) -> list[tuple[int, int]]:
    """Return the cells that cover the items of a smallest cell, with their columns in `bounds`."""
    found = []
    for level in range(cover.levels - 1, -1, -1):
        first = int(cover.cells[int(cover.cells[cell]["parent"])]["first_child"])
        found += [
            (CHILDREN * level + quarter, first + quarter)
            for quarter in range(CHILDREN)
            if first + quarter != cell or level == cover.levels - 1
        ]
        cell = int(cover.cells[cell]["parent"])
    return found


def _check_lists(cover: Cover, expected: dict[int, list[int]]) -> None:
    keys = cover.list_keys[cover.list_keys != NO_KEY].tolist()
    if sorted(keys) != sorted(expected) or len(keys) != cover.meta[LIST_COUNT]:
        raise InconsistentIndexError("lists do not match the subscriptions")
    runs = []
    for place in np.flatnonzero(cover.list_keys != NO_KEY).tolist():
        row = cover.lists[cover.list_values[place]]
        key, start, count = int(row["key"]), int(row["start"]), int(row["count"])
        word = key & ((1 << _WORD_BITS) - 1)
        postings = cover.postings.records[start : start + count]
        if key != cover.list_keys[place] or postings["slot"].tolist() != sorted(expected[key]):
            raise InconsistentIndexError(f"the list of keyword {word} in cell {key >> 32} is wrong")
        norms = cover.subscriptions["norm2"][postings["slot"]]
        weights = np.array([math.sqrt(cover.squares[word] / norm) for norm in norms.tolist()])
        if (postings["weight"] < weights).any() or not np.allclose(postings["weight"], weights):
            raise InconsistentIndexError(f"weights of keyword {word} in cell {key >> 32} are wrong")
        runs.append((start, int(row["size_class"])))
    check_runs(cover.postings, runs)
