"""The invariants of clauses in cells, from the definitions. For tests; slow."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np

from index.contracts import InconsistentIndexError
from index.published.clause_cells import cell_kernels, workload_kernels
from index.published.clause_cells.layout import Cells
from index.published.clause_cells.list_kernels import NO_LIST, list_of
from index.published.clause_cells.update_kernels import home_of
from index.tables import SlotTable
from index.tables.id_map_kernels import NO_KEY
from index.tables.quad_kernels import GROUP_END, GROUP_FREE, GROUP_FREE_COUNT, NO_NODE
from index.tables.run_kernels import NO_RUN, class_of
from index.tables.runs import check_runs

_QUARTERS = 4
_UPPER = 2


def check(cells: Cells, table: SlotTable) -> None:
    """Verify every invariant.

    Raises
    ------
    InconsistentIndexError
        If an invariant is violated; the message names it.
    """
    used = table.used().tolist()
    _check_words(cells, table, used)
    lists = _check_clauses(cells, table, used)
    _check_lists(cells, lists)
    own = Counter(cell for (cell, _), slots in lists.items() for _ in slots)
    _check_cells(cells, own, {word for _, word in lists})
    _check_seen(cells)


def _check_words(cells: Cells, table: SlotTable, used: list[int]) -> None:
    required = Counter(word for slot in used for word in table.keywords(slot).tolist())
    keys = Counter(int(table.rows["word"][slot]) for slot in used)
    there = cells.word_keys[cells.word_keys != NO_KEY].tolist()
    if sorted(there) != sorted(required) or len(there) != cells.meta[workload_kernels.WORD_COUNT]:
        raise InconsistentIndexError("the keywords are not those that clauses require")
    for keyword, count in required.items():
        row = cells.words[workload_kernels.word_of(cells, keyword)]
        if (row["keyword"], row["clause_count"], row["key_count"]) != (keyword, count, keys[keyword]):
            raise InconsistentIndexError(f"keyword {keyword} has a wrong count of clauses")
        has_tree = bool(cells.meta[cell_kernels.KEYWORD_FIRST]) and keys[keyword] > 0
        if (row["root"] != NO_NODE) != has_tree:
            raise InconsistentIndexError(
                f"keyword {keyword} has a tree without clauses, or clauses without a tree"
            )


def _check_clauses(cells: Cells, table: SlotTable, used: list[int]) -> dict[tuple[int, int], list[int]]:
    """Verify the cells of clauses; return the expected clauses of each list."""
    lists: dict[tuple[int, int], list[int]] = {}
    for slot in used:
        row = table.rows[slot]
        word = int(row["word"])
        if word not in table.keywords(slot).tolist():
            raise InconsistentIndexError(f"the key of slot {slot} is not one of its keywords")
        homes = [home_of(cells, slot, step) for step in range(row["home_count"])]
        if not homes or len(set(homes)) != len(homes):
            raise InconsistentIndexError(f"slot {slot} is in no cell, or twice in a cell")
        reached = _reached(cells, cell_kernels.root_of(cells, word), slot, set(homes))
        if sorted(reached) != sorted(homes):
            raise InconsistentIndexError(f"the cells of slot {slot} do not cover its box, or overlap")
        for cell in homes:
            lists.setdefault((cell, word), []).append(slot)
    starts = [
        (int(table.rows["home"][slot]), class_of(int(table.rows["home_count"][slot])))
        for slot in used
        if table.rows["home_count"][slot] > 1
    ]
    check_runs(cells.homes, starts)
    return lists


def _reached(cells: Cells, root: int, slot: int, homes: set[int]) -> list[int]:
    """Return the cells that intersect a clause's box, down to its homes, or to leaves without one."""
    box = [float(cells.clauses[slot][name]) for name in ("x1_m", "y1_m", "x2_m", "y2_m")]
    found = []
    stack = [root]
    while stack:
        cell = stack.pop()
        if not cell_kernels.meets(cells, cell, *box):
            continue
        first = int(cells.cells[cell]["first_child"])
        if cell in homes or first == NO_NODE:
            found.append(cell)
        else:
            stack += range(first, first + _QUARTERS)
    return found


def _check_lists(cells: Cells, lists: dict[tuple[int, int], list[int]]) -> None:
    runs = []
    for (cell, word), slots in lists.items():
        number = list_of(cells, cell, word)
        if number == NO_LIST:
            raise InconsistentIndexError(f"keyword {word} has no list at cell {cell}")
        row = cells.lists[number]
        start = int(row["start"])
        entries = cells.entries.records[start : start + int(row["count"])]
        if sorted(entries["slot"].tolist()) != sorted(slots):
            raise InconsistentIndexError(
                f"the list of keyword {word} at cell {cell} does not match its clauses"
            )
        boxes = cells.clauses[entries["slot"]]
        for low, high in (("x1_m", "x2_m"), ("y1_m", "y2_m")):
            if (entries[low] > boxes[low]).any() or (entries[high] < boxes[high]).any():
                raise InconsistentIndexError(f"an entry at cell {cell} is smaller than its clause")
        runs.append((start, int(row["size_class"])))
    check_runs(cells.entries, runs)
    if not cells.meta[cell_kernels.KEYWORD_FIRST]:
        there = int((cells.list_keys != NO_KEY).sum())
        if there != len(lists) or there != cells.meta[cell_kernels.LIST_COUNT]:
            raise InconsistentIndexError("lists without clauses")


def _check_cells(cells: Cells, own: Counter[int], keys: set[int]) -> None:
    """Verify the trees, their counts, and the pool of cells."""
    if cells.meta[cell_kernels.KEYWORD_FIRST]:
        roots = [cell_kernels.root_of(cells, keyword) for keyword in sorted(keys)]
    else:
        roots = [int(cells.meta[cell_kernels.ROOT])]
    total = 0
    for root in roots:
        if cells.cells[root]["parent"] != NO_NODE or cells.cells[root]["depth"] != 0:
            raise InconsistentIndexError(f"root {root} has a parent")
        total += _check_tree(cells, root, own)
    groups, free = 0, int(cells.meta[GROUP_FREE])
    while free != NO_NODE:
        groups, free = groups + 1, int(cells.cells[free]["parent"])
    single, free = 0, int(cells.meta[cell_kernels.ROOT_FREE])
    while free != NO_NODE:
        single, free = single + 1, int(cells.cells[free]["parent"])
    if groups != cells.meta[GROUP_FREE_COUNT] or (
        total + _QUARTERS * groups + single != cells.meta[GROUP_END]
    ):
        raise InconsistentIndexError("the pool of cells has a wrong count")


def _check_tree(cells: Cells, root: int, own: Counter[int]) -> int:
    """Verify one tree; return the number of its cells."""
    order = [root]
    for cell in order:
        first = int(cells.cells[cell]["first_child"])
        if first != NO_NODE:
            order += range(first, first + _QUARTERS)
            for child in range(first, first + _QUARTERS):
                _check_quarter(cells, cell, child, child - first)
    for cell in reversed(order):
        row = cells.cells[cell]
        first = int(row["first_child"])
        below = 0 if first == NO_NODE else int(cells.cells["count"][first : first + _QUARTERS].sum())
        if row["own_count"] != own[cell] or row["count"] != own[cell] + below:
            raise InconsistentIndexError(f"cell {cell} has a wrong count of entries")
        if first != NO_NODE and below == 0:
            raise InconsistentIndexError(f"cell {cell} has children without entries")
        is_bare = bool(cells.meta[cell_kernels.KEYWORD_FIRST]) and own[cell] == 0
        if is_bare and (cells.lists[cell]["count"], cells.lists[cell]["size_class"]) != (0, NO_RUN):
            raise InconsistentIndexError(f"cell {cell} has a list without entries")
    return len(order)


def _check_quarter(cells: Cells, cell: int, child: int, quarter: int) -> None:
    above, row = cells.cells[cell], cells.cells[child]
    x_side = ("split_x", "x_max") if quarter % 2 else ("x_min", "split_x")
    y_side = ("split_y", "y_max") if quarter >= _UPPER else ("y_min", "split_y")
    if (row["x_min"], row["x_max"]) != tuple(above[name] for name in x_side) or (
        row["y_min"],
        row["y_max"],
    ) != tuple(above[name] for name in y_side):
        raise InconsistentIndexError(f"cell {child} is not a quarter of cell {cell}")
    if row["parent"] != cell or row["depth"] != above["depth"] + 1:
        raise InconsistentIndexError(f"cell {child} has a parent other than {cell}")


def _check_seen(cells: Cells) -> None:
    """Verify that each grid has counted all objects, and each cell the sum of its quarters."""
    end = 0
    grids = []
    for level in range(workload_kernels.LEVELS):
        side = 1 << level
        grids.append(cells.seen[end : end + side * side].reshape(side, side))
        end += side * side
    if int(grids[0][0, 0]) != cells.meta[workload_kernels.SEEN_TOTAL]:
        raise InconsistentIndexError("the workload has a wrong count")
    for coarse, fine in itertools.pairwise(grids):
        side = len(coarse)
        if not np.array_equal(coarse, fine.reshape(side, 2, side, 2).sum(axis=(1, 3))):
            raise InconsistentIndexError("a grid of the workload is not the sum of the next finer grid")
