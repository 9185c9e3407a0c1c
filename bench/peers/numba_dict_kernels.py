"""Loops of the dict index in compiled code: a hash of (rarest keyword, cell) to runs of entries."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from index.batches import Floats, Ints, KeywordIds
from index.tables.id_map_kernels import LOAD_MAX, NO_VALUE, Values, find, pop, put
from index.tables.run_kernels import (
    NO_RUN,
    RUN_LEAST,
    Runs,
    free_run,
    has_run,
    is_wasteful,
    moved_run,
)
from index.tables.slots import Slots
from safe_region.jit import array_leaf, kernel, leaf

Rows = npt.NDArray[Any]

DONE = 0
KEYS_FULL = -1
RUNS_FULL = -2

LINES = 1 << 15
"""Columns, and rows, of the grid: coordinates beyond it are in the outermost ones."""
CELLS_MAX = 1024
"""A box that meets more cells than this is in the list for everywhere."""
EVERYWHERE = LINES * LINES
WORD_STEP = 2 * EVERYWHERE
"""Keys are keyword * WORD_STEP + cell."""

LIST_COUNT = 0
"""In meta: number of lists, which are stored one after the other."""
CANDIDATES = 1
"""In meta: entries examined so far."""
WIDE_COUNT = 2
"""In meta: clauses in lists for everywhere."""
META_COUNT = 3

CLAUSE_DTYPE = np.dtype(
    [
        ("id", np.int64),
        ("x1_m", np.float64),
        ("y1_m", np.float64),
        ("x2_m", np.float64),
        ("y2_m", np.float64),
        ("keyword_start", np.int64),
        ("keyword_count", np.int32),
        ("rarest", np.int32),  # the keyword of its lists
    ],
    align=True,
)

ENTRY_DTYPE = np.dtype(
    [
        ("x1_m", np.float64),
        ("y1_m", np.float64),
        ("x2_m", np.float64),
        ("y2_m", np.float64),
        ("slot", np.int32),
    ],
    align=True,
)

LIST_DTYPE = np.dtype(
    [
        ("key", np.int64),
        ("start", np.int32),
        ("count", np.int32),
        ("size_class", np.int32),  # of its run
    ],
    align=True,
)


class Lists(NamedTuple):
    """All arrays."""

    keys: Ints
    values: Values
    lists: Rows
    entries: Runs
    clauses: Rows
    pool: KeywordIds
    cell_m: Floats
    meta: Ints


@leaf
def _line(x_m: float, cell_m: float) -> int:
    """Return the column, or row, of a coordinate."""
    return int(np.floor(min(max(x_m / cell_m, -LINES / 2), LINES / 2 - 1))) + LINES // 2


@leaf
def _is_wide(lists: Lists, slot: int) -> bool:
    """Return whether a clause is in one list for its keyword alone."""
    clause = lists.clauses[slot]
    cell_m = lists.cell_m[0]
    columns = _line(clause["x2_m"], cell_m) - _line(clause["x1_m"], cell_m) + 1
    rows = _line(clause["y2_m"], cell_m) - _line(clause["y1_m"], cell_m) + 1
    return bool(columns * rows > CELLS_MAX)


@array_leaf
def keys_of(lists: Lists, slot: int) -> Ints:
    """Return the keys of the lists that a clause is in."""
    clause = lists.clauses[slot]
    cell_m = lists.cell_m[0]
    key = int(clause["rarest"]) * WORD_STEP
    if _is_wide(lists, slot):
        return np.array([key + EVERYWHERE])
    column_1, column_2 = _line(clause["x1_m"], cell_m), _line(clause["x2_m"], cell_m)
    row_1, row_2 = _line(clause["y1_m"], cell_m), _line(clause["y2_m"], cell_m)
    found = np.empty((column_2 - column_1 + 1) * (row_2 - row_1 + 1), dtype=np.int64)
    end = 0
    for column in range(column_1, column_2 + 1):
        for row in range(row_1, row_2 + 1):
            found[end] = key + column * LINES + row
            end += 1
    return found


@leaf
def _make_room(lists: Lists, key: int) -> int:
    """Reserve capacity for one more entry in the list of a key; return a status."""
    number = find(lists.keys, lists.values, key)
    if number == NO_VALUE:
        number = int(lists.meta[LIST_COUNT])
        if number + 1 > lists.keys.shape[0] * LOAD_MAX:
            return KEYS_FULL
        lists.meta[LIST_COUNT] += 1
        put(lists.keys, lists.values, key, number)
        lists.lists[number]["key"] = key
        lists.lists[number]["start"] = 0
        lists.lists[number]["count"] = 0
        lists.lists[number]["size_class"] = NO_RUN
    row = lists.lists[number]
    size_class = int(row["size_class"])
    if size_class == NO_RUN or row["count"] == RUN_LEAST << size_class:
        if not has_run(lists.entries, size_class + 1):
            return RUNS_FULL
        start, count = int(row["start"]), int(row["count"])
        row["start"] = moved_run(lists.entries, start, count, size_class, size_class + 1)
        row["size_class"] = size_class + 1
    return DONE


@leaf
def _add(lists: Lists, key: int, slot: int) -> None:
    """Add a clause to a list, which has capacity."""
    row = lists.lists[find(lists.keys, lists.values, key)]
    clause = lists.clauses[slot]
    entry = lists.entries.records[int(row["start"]) + int(row["count"])]
    entry["x1_m"] = clause["x1_m"]
    entry["y1_m"] = clause["y1_m"]
    entry["x2_m"] = clause["x2_m"]
    entry["y2_m"] = clause["y2_m"]
    entry["slot"] = slot
    row["count"] += 1


@kernel
def count_words(lists: Lists, slots: Slots, counts: Slots, change: int) -> None:
    """Add `change` to the number of clauses that require each keyword."""
    for slot in slots:
        start = lists.clauses[slot]["keyword_start"]
        for i in range(start, start + lists.clauses[slot]["keyword_count"]):
            counts[lists.pool[i]] += change


@kernel
def choose_rarest(lists: Lists, slots: Slots, counts: Slots) -> None:
    """Store the rarest keyword of clauses."""
    for slot in slots:
        start = lists.clauses[slot]["keyword_start"]
        best = lists.pool[start]
        for i in range(start + 1, start + lists.clauses[slot]["keyword_count"]):
            if counts[lists.pool[i]] < counts[best]:
                best = lists.pool[i]
        lists.clauses[slot]["rarest"] = best


@kernel
def enter(lists: Lists, slots: Slots, begin: int) -> int:
    """Enter clauses from a row on; return the first row not done, or -1 - row if keys are full."""
    for i in range(begin, slots.shape[0]):
        slot = int(slots[i])
        keys = keys_of(lists, slot)
        for key in keys:
            status = _make_room(lists, key)
            if status != DONE:
                return -1 - i if status == KEYS_FULL else i
        for key in keys:
            _add(lists, key, slot)
        lists.meta[WIDE_COUNT] += _is_wide(lists, slot)
    return int(slots.shape[0])


@leaf
def _drop(lists: Lists, key: int) -> None:
    """Remove an empty list; the last one takes its number."""
    number = find(lists.keys, lists.values, key)
    free_run(lists.entries, int(lists.lists[number]["start"]), int(lists.lists[number]["size_class"]))
    pop(lists.keys, lists.values, key)
    last = int(lists.meta[LIST_COUNT]) - 1
    lists.meta[LIST_COUNT] = last
    if number == last:
        return
    lists.lists[number] = lists.lists[last]
    put(lists.keys, lists.values, int(lists.lists[number]["key"]), number)


@leaf
def _take_out(lists: Lists, key: int, slot: int) -> None:
    """Remove a clause from a list; the last of its entries fills the gap."""
    row = lists.lists[find(lists.keys, lists.values, key)]
    start = int(row["start"])
    last = start + int(row["count"]) - 1
    place = start
    while lists.entries.records[place]["slot"] != slot:
        place += 1
    lists.entries.records[place] = lists.entries.records[last]
    row["count"] -= 1
    size_class = int(row["size_class"])
    if row["count"] == 0:
        _drop(lists, key)
    elif is_wasteful(lists.entries, int(row["count"]), size_class):
        row["start"] = moved_run(lists.entries, start, int(row["count"]), size_class, size_class - 1)
        row["size_class"] = size_class - 1


@kernel
def leave(lists: Lists, slots: Slots) -> None:
    """Remove clauses from their lists."""
    for slot in slots:
        lists.meta[WIDE_COUNT] -= _is_wide(lists, int(slot))
        for key in keys_of(lists, int(slot)):
            _take_out(lists, key, int(slot))


@leaf
def _has_all(required: KeywordIds, words: KeywordIds) -> bool:
    """Return whether an object has all keywords of a clause; both are increasing."""
    at = 0
    for keyword in required:
        while at < words.shape[0] and words[at] < keyword:
            at += 1
        if at == words.shape[0] or words[at] != keyword:
            return False
    return True


class Arrivals(NamedTuple):
    """Objects: a row for each.

    No other named tuple with such fields has this name: numba would treat both as the same type, and
    check each call.
    """

    x1_m: Floats
    y1_m: Floats
    x2_m: Floats
    y2_m: Floats
    keyword_offsets: Ints
    keyword_ids: KeywordIds


@leaf
def _scan(lists: Lists, arrivals: Arrivals, i: int, key: int, cell: int, found: Ints, total: int) -> int:
    """Append the matches of a list; return the number of matches, or -1 if capacity is missing."""
    number = find(lists.keys, lists.values, key)
    if number == NO_VALUE:
        return total
    x1_m, y1_m, x2_m, y2_m = arrivals.x1_m[i], arrivals.y1_m[i], arrivals.x2_m[i], arrivals.y2_m[i]
    words = arrivals.keyword_ids[arrivals.keyword_offsets[i] : arrivals.keyword_offsets[i + 1]]
    is_area = x1_m < x2_m or y1_m < y2_m
    start, count = int(lists.lists[number]["start"]), int(lists.lists[number]["count"])
    if total + count > found.shape[0]:
        return -1
    lists.meta[CANDIDATES] += count
    for place in range(start, start + count):
        entry = lists.entries.records[place]
        if entry["x1_m"] > x2_m or entry["x2_m"] < x1_m or entry["y1_m"] > y2_m or entry["y2_m"] < y1_m:
            continue
        if is_area and cell != EVERYWHERE:
            column = _line(max(entry["x1_m"], x1_m), lists.cell_m[0])
            row = _line(max(entry["y1_m"], y1_m), lists.cell_m[0])
            if cell != column * LINES + row:
                continue
        clause = lists.clauses[entry["slot"]]
        first = int(clause["keyword_start"])
        if _has_all(lists.pool[first : first + int(clause["keyword_count"])], words):
            found[total] = clause["id"]
            total += 1
    return total


@leaf
def _match_one(lists: Lists, arrivals: Arrivals, i: int, found: Ints, total: int) -> int:
    """Append the matches of an object; return the number of matches, or -1 if capacity is missing."""
    cell_m = lists.cell_m[0]
    column_1, column_2 = _line(arrivals.x1_m[i], cell_m), _line(arrivals.x2_m[i], cell_m)
    row_1, row_2 = _line(arrivals.y1_m[i], cell_m), _line(arrivals.y2_m[i], cell_m)
    for at in range(arrivals.keyword_offsets[i], arrivals.keyword_offsets[i + 1]):
        key = int(arrivals.keyword_ids[at]) * WORD_STEP
        if lists.meta[WIDE_COUNT] > 0:
            total = _scan(lists, arrivals, i, key + EVERYWHERE, EVERYWHERE, found, total)
            if total < 0:
                return total
        for column in range(column_1, column_2 + 1):
            for row in range(row_1, row_2 + 1):
                cell = column * LINES + row
                total = _scan(lists, arrivals, i, key + cell, cell, found, total)
                if total < 0:
                    return total
    return total


@kernel
def match(lists: Lists, arrivals: Arrivals, begin: int, offsets: Ints, found: Ints) -> int:
    """Write the clauses that match each object as CSR, from a row on; return the first row not done."""
    total = int(offsets[begin])
    for i in range(begin, arrivals.x1_m.shape[0]):
        total = _match_one(lists, arrivals, i, found, total)
        if total < 0:
            return i
        offsets[i + 1] = total
    return int(arrivals.x1_m.shape[0])
