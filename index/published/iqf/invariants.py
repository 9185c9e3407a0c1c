"""The invariants of IQF, from the definitions: postings are the pairs (object, keyword), each once."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from index.contracts import InconsistentIndexError
from index.published.iqf import list_kernels
from index.published.iqf.layout import Files
from index.square import Square
from index.tables import SlotTable
from index.tables.buckets import BucketTrees, objects_of
from index.tables.buckets.trees import check_entry
from index.tables.id_map_kernels import NO_KEY, find
from index.tables.quad_kernels import NO_NODE
from index.tables.run_kernels import NO_RUN, RUN_LEAST
from index.tables.runs import check_runs

Rows = npt.NDArray[Any]


def check(files: Files, trees: BucketTrees, table: SlotTable, square: Square) -> None:
    """Verify lists, runs, quadtrees and the keyword map. O(postings), in plain Python.

    Raises
    ------
    InconsistentIndexError
        If an invariant is violated; the message names it.
    """
    lists = files.lists[: files.meta[list_kernels.LIST_END]]
    live = [number for number, row in enumerate(lists) if row["keyword"] != list_kernels.NO_KEYWORD]
    _check_numbers(files, live)
    _check_runs(files, live)
    owners = {int(lists[number]["root"]): number for number in live if lists[number]["root"] != NO_NODE}
    found: dict[int, list[npt.NDArray[Any]]] = {number: [] for number in live}
    for root in owners:
        row = trees.arrays.nodes[root]
        if (row["split_x"], row["split_y"], row["half_m"]) != square:
            raise InconsistentIndexError(f"root {root} has a wrong square")
    parents = trees.arrays.nodes["parent"]
    for leaf, places in trees.check(owners, table):
        root = leaf
        while parents[root] != NO_NODE:
            root = int(parents[root])
        found[owners[root]].append(trees.arrays.entries[places])
    objects = objects_of(table)
    total = 0
    for number in live:
        row = lists[number]
        if (row["root"] == NO_NODE) != (row["size_class"] != NO_RUN):
            raise InconsistentIndexError(f"list {number} must have either a run or a tree")
        run = files.runs.records[row["start"] : row["start"] + row["count"]]
        for offset, entry in enumerate(run):
            check_entry(entry, offset, objects)
        count = _check_keyword(row, [run, *found[number]], table)
        if count == 0:
            raise InconsistentIndexError(f"keyword {row['keyword']} is not a keyword of any object")
        total += count
    if total != int(table.rows["keyword_count"][table.used()].sum()):
        raise InconsistentIndexError("an object is missing under one of its keywords")


def _check_keyword(row: Any, parts: list[Rows], table: SlotTable) -> int:  # noqa: ANN401
    """Verify that all entries of a list have its keyword, no object twice; return their number."""
    slots: list[int] = []
    for part in parts:
        for entry in part:
            if table.keywords(int(entry["slot"]))[entry["ordinal"]] != row["keyword"]:
                raise InconsistentIndexError(f"an entry of keyword {row['keyword']} is in a wrong list")
            slots.append(int(entry["slot"]))
    if len(set(slots)) != len(slots):
        raise InconsistentIndexError(f"an object occurs twice under keyword {row['keyword']}")
    return len(slots)


def _check_numbers(files: Files, live: list[int]) -> None:
    """Verify that keywords map to their lists, and that the other rows are free."""
    for number in live:
        if find(files.keys, files.values, int(files.lists[number]["keyword"])) != number:
            raise InconsistentIndexError(f"keyword {files.lists[number]['keyword']} has no list")
    free_count, number = 0, int(files.meta[list_kernels.LIST_FREE])
    while number != list_kernels.NO_LIST:
        free_count, number = free_count + 1, int(files.lists[number]["start"])
    if (
        len(live) + free_count != files.meta[list_kernels.LIST_END]
        or len(live) != files.meta[list_kernels.LIST_COUNT]
        or len(live) != (files.keys != NO_KEY).sum()
    ):
        raise InconsistentIndexError("the inverted file has a wrong count of lists")


def _check_runs(files: Files, live: list[int]) -> None:
    """Verify that lists do not overflow their runs, and that these cover the arena."""
    runs: list[tuple[int, int]] = []
    for number in live:
        row = files.lists[number]
        if row["size_class"] == NO_RUN:
            continue
        runs.append((int(row["start"]), int(row["size_class"])))
        if row["count"] > RUN_LEAST << int(row["size_class"]):
            raise InconsistentIndexError(f"list {number} overflows its run")
    check_runs(files.runs, runs)
