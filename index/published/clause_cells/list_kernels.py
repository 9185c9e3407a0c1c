"""Lists of entries: of the clauses of one key in one cell.

Operations: enter O(1) amortised, leave O(entries of the list).
"""

from __future__ import annotations

from index.published.clause_cells.cell_kernels import (
    KEYWORD_FIRST,
    LIST_COUNT,
    LIST_END,
    LIST_FREE,
    count_entry,
    discount_entry,
)
from index.published.clause_cells.layout import Cells
from index.published.clause_cells.workload_kernels import DONE
from index.tables.float32_kernels import lower, upper
from index.tables.free_kernels import give_back_rows, take_rows
from index.tables.id_map_kernels import LOAD_MAX, NO_VALUE, find, pop, put
from index.tables.run_kernels import (
    NO_RUN,
    RUN_LEAST,
    free_run,
    has_run,
    is_wasteful,
    moved_run,
)
from safe_region.jit import leaf

NO_LIST = -1

LISTS_FULL = -4
LIST_KEYS_FULL = -5
ENTRIES_FULL = -6


@leaf
def list_key(cell: int, keyword: int) -> int:
    """Return the hash key of a key at a cell."""
    return (int(cell) << 32) | int(keyword)


@leaf
def list_of(cells: Cells, cell: int, keyword: int) -> int:
    """Return the list of a key at a cell; NO_LIST if there is none."""
    if cells.meta[KEYWORD_FIRST]:
        return cell
    found = find(cells.list_keys, cells.list_values, list_key(cell, keyword))
    return NO_LIST if found == NO_VALUE else found


@leaf
def _make_list(cells: Cells, cell: int, keyword: int) -> int:
    """Create a list; return its number, or a negative status."""
    meta = cells.meta
    if meta[LIST_COUNT] + 1 > cells.list_keys.shape[0] * LOAD_MAX:
        return LIST_KEYS_FULL
    if meta[LIST_FREE] == NO_LIST and meta[LIST_END] >= cells.lists.shape[0]:
        return LISTS_FULL
    number = take_rows(cells.lists["start"], meta, LIST_FREE, meta, LIST_END, 1)
    meta[LIST_COUNT] += 1
    cells.lists[number]["count"] = 0
    cells.lists[number]["size_class"] = NO_RUN
    put(cells.list_keys, cells.list_values, list_key(cell, keyword), number)
    return number


@leaf
def enter(cells: Cells, cell: int, keyword: int, slot: int) -> int:
    """Insert a clause under its key at a cell; return a status."""
    number = list_of(cells, cell, keyword)
    if number == NO_LIST:
        number = _make_list(cells, cell, keyword)
        if number < 0:
            return number
    row = cells.lists[number]
    size_class = int(row["size_class"])
    count = int(row["count"])
    if size_class == NO_RUN or count == RUN_LEAST << size_class:
        if not has_run(cells.entries, size_class + 1):
            return ENTRIES_FULL
        row["start"] = moved_run(cells.entries, int(row["start"]), count, size_class, size_class + 1)
        row["size_class"] = size_class + 1
    entry = cells.entries.records[row["start"] + count]
    clause = cells.clauses[slot]
    entry["x1_m"] = lower(clause["x1_m"])
    entry["y1_m"] = lower(clause["y1_m"])
    entry["x2_m"] = upper(clause["x2_m"])
    entry["y2_m"] = upper(clause["y2_m"])
    entry["slot"] = slot
    row["count"] += 1
    count_entry(cells, cell)
    return DONE


@leaf
def _free_list(cells: Cells, number: int, cell: int, keyword: int) -> None:
    """Free the run and the row of a list without entries."""
    row = cells.lists[number]
    free_run(cells.entries, int(row["start"]), int(row["size_class"]))
    row["size_class"] = NO_RUN
    if not cells.meta[KEYWORD_FIRST]:
        pop(cells.list_keys, cells.list_values, list_key(cell, keyword))
        give_back_rows(cells.lists["start"], cells.meta, LIST_FREE, number)
        cells.meta[LIST_COUNT] -= 1


@leaf
def leave(cells: Cells, cell: int, keyword: int, slot: int) -> None:
    """Remove a clause from the list of its key at a cell, which has it."""
    number = list_of(cells, cell, keyword)
    row = cells.lists[number]
    records = cells.entries.records
    start = int(row["start"])
    last = start + int(row["count"]) - 1
    place = start
    while place < last and records[place]["slot"] != slot:
        place += 1
    records[place] = records[last]
    row["count"] -= 1
    count = int(row["count"])
    size_class = int(row["size_class"])
    if count == 0:
        _free_list(cells, number, cell, keyword)
    elif is_wasteful(cells.entries, count, size_class):
        row["start"] = moved_run(cells.entries, start, count, size_class, size_class - 1)
        row["size_class"] = size_class - 1
    discount_entry(cells, cell)
