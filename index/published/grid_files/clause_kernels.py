"""Clauses in grid files: each is in all cells that its box intersects, in the list of one keyword there.

A function that runs out of space is called again with the same arguments and more space; a cursor has the
progress.

Operations: place O(cells) a clause, take out and move O(entries of the lists it is in).
"""

from __future__ import annotations

from index.batches import Floats, Ints
from index.published.grid_files.cell_kernels import cell_count, cell_in, is_long, span_in
from index.published.postings import layout as L
from index.published.postings.layout import Files
from index.published.postings.list_kernels import (
    NO_PLACE,
    add_entry,
    begin_directory,
    copy_entry,
    end_directory,
    found_or_made,
    has_directory,
    has_lists,
    has_new_entries,
    keep_entries,
    list_at,
)
from index.published.postings.place_kernels import Span, span_of
from index.published.postings.word_kernels import least_frequent
from index.tables.float32_kernels import lower, upper
from index.tables.slots import Slots
from safe_region.jit import kernel, leaf

_BEGINS, _STAYS, _CHANGES = 0, 1, 2
"""In a cursor, as the level of a clause that moves: it has left no cell; its key is kept; its key
changes."""


@leaf
def cells_of(files: Files, word: int, slot: int) -> Span:
    """Return the cells of a keyword's grid that a clause's box intersects."""
    row = files.rows[slot]
    return span_in(files, word, row["x1_m"], row["y1_m"], row["x2_m"], row["y2_m"])


@leaf
def _entries_spread(files: Files, number: int) -> int:
    """Return the number of entries of a list after its division by place."""
    count = 0
    start = int(files.lists[number]["start"])
    for place in range(start, start + int(files.lists[number]["count"])):
        row = files.rows[files.entries.records[place]["slot"]]
        count += cell_count(span_of(files, row["x1_m"], row["y1_m"], row["x2_m"], row["y2_m"]))
    return count


@leaf
def _spread(files: Files, word: int) -> bool:
    """Divide a keyword's list by place; return whether there was space."""
    number = int(files.words[word]["list"])
    start, count = int(files.lists[number]["start"]), int(files.lists[number]["count"])
    new_count = _entries_spread(files, number)
    list_count = min(new_count, int(files.meta[L.SIDE] * files.meta[L.SIDE]))
    if not (has_directory(files) and has_lists(files, list_count) and has_new_entries(files, new_count)):
        return False
    begin_directory(files, word)
    for place in range(start, start + count):
        span = cells_of(files, word, files.entries.records[place]["slot"])
        for step in range(cell_count(span)):
            copy_entry(files, place, found_or_made(files, word, cell_in(files, span, step)))
    keep_entries(files, number, 0)
    return True


@leaf
def _write(files: Files, place: int, slot: int) -> None:
    """Write the entry of a clause."""
    entry, row = files.entries.records[place], files.rows[slot]
    entry["x1_m"] = lower(row["x1_m"])
    entry["y1_m"] = lower(row["y1_m"])
    entry["x2_m"] = upper(row["x2_m"])
    entry["y2_m"] = upper(row["y2_m"])
    entry["slot"] = slot


@leaf
def _enter(files: Files, slot: int, word: int, cell: int) -> bool:
    """Insert a clause into a cell; return whether there was space."""
    number = found_or_made(files, word, cell)
    if number == L.NO_LIST:
        return False
    place = add_entry(files, number)
    if place == NO_PLACE:
        return False
    _write(files, place, slot)
    return True


@leaf
def _key_for(files: Files, slot: int) -> int:
    """Return the least frequent keyword of a clause, as a word."""
    row = files.rows[slot]
    start = row["keyword_start"]
    return least_frequent(files, files.pool[start : start + row["keyword_count"]])


@leaf
def _place(files: Files, slot: int, cursor: Ints) -> bool:
    """Insert a clause under its least frequent keyword; return whether there was space."""
    word = _key_for(files, slot)
    if is_long(files, word) and not _spread(files, word):
        return False
    files.rows[slot]["word"] = word
    span = cells_of(files, word, slot)
    while cursor[L.STEP] < cell_count(span):
        if not _enter(files, slot, word, cell_in(files, span, int(cursor[L.STEP]))):
            return False
        cursor[L.STEP] += 1
    files.words[word]["key_count"] += 1
    return True


@kernel
def place(files: Files, slots: Slots, cursor: Ints) -> bool:
    """Insert clauses whose keywords have been counted; return whether all are done."""
    for i in range(cursor[L.ROW], slots.shape[0]):
        if not _place(files, slots[i], cursor):
            cursor[L.ROW] = i
            return False
        cursor[L.STEP] = 0
    return True


@leaf
def _find(files: Files, number: int, slot: int) -> int:
    """Return the place of a clause in a list, which has it."""
    place = int(files.lists[number]["start"])
    last = place + int(files.lists[number]["count"]) - 1
    while place < last and files.entries.records[place]["slot"] != slot:
        place += 1
    return place


@leaf
def _leave(files: Files, word: int, cell: int, slot: int) -> None:
    """Remove a clause from a cell, which has it."""
    number = list_at(files, word, cell)
    row = files.lists[number]
    records = files.entries.records
    records[_find(files, number, slot)] = records[row["start"] + row["count"] - 1]
    keep_entries(files, number, int(row["count"]) - 1)


@leaf
def _release_key(files: Files, word: int) -> None:
    """Decrement the number of clauses with a key; the last one frees its grid."""
    files.words[word]["key_count"] -= 1
    if files.words[word]["key_count"] == 0:
        end_directory(files, word)


@kernel
def take_out(files: Files, slots: Slots) -> None:
    """Remove clauses from their lists."""
    for slot in slots:
        word = int(files.rows[slot]["word"])
        span = cells_of(files, word, slot)
        for step in range(cell_count(span)):
            _leave(files, word, cell_in(files, span, step), slot)
        _release_key(files, word)


@leaf
def _has(files: Files, span: Span, cell: int) -> bool:
    """Return whether a cell is in a span."""
    row, column = cell // files.meta[L.SIDE], cell % files.meta[L.SIDE]
    return bool(span.row_1 <= row <= span.row_2 and span.column_1 <= column <= span.column_2)


@leaf
def _span_of_row(files: Files, word: int, boxes: Floats, i: int) -> Span:
    return span_in(files, word, boxes[i, 0], boxes[i, 1], boxes[i, 2], boxes[i, 3])


@leaf
def _swap_box(files: Files, slot: int, boxes: Floats, i: int) -> None:
    """Swap the box of a clause and a box of a batch."""
    row = files.rows[slot]
    x1_m, y1_m, x2_m, y2_m = row["x1_m"], row["y1_m"], row["x2_m"], row["y2_m"]
    row["x1_m"] = boxes[i, 0]
    row["y1_m"] = boxes[i, 1]
    row["x2_m"] = boxes[i, 2]
    row["y2_m"] = boxes[i, 3]
    boxes[i, 0] = x1_m
    boxes[i, 1] = y1_m
    boxes[i, 2] = x2_m
    boxes[i, 3] = y2_m


@leaf
def _set_off(files: Files, slot: int, best: int, boxes: Floats, i: int) -> int:
    """Leave the cells of the old box that the new one does not have; return the next level."""
    word = int(files.rows[slot]["word"])
    span = cells_of(files, word, slot)
    new_span = _span_of_row(files, word, boxes, i)
    _swap_box(files, slot, boxes, i)
    for step in range(cell_count(span)):
        cell = cell_in(files, span, step)
        if best == word and _has(files, new_span, cell):
            number = list_at(files, word, cell)
            _write(files, _find(files, number, slot), slot)
        else:
            _leave(files, word, cell, slot)
    if best == word:
        return _STAYS
    _release_key(files, word)
    return _CHANGES


@leaf
def _arrive(files: Files, slot: int, word: int, boxes: Floats, i: int, cursor: Ints) -> bool:
    """Insert into the cells that only the new box has; return whether there was space."""
    old_span = _span_of_row(files, word, boxes, i)
    span = cells_of(files, word, slot)
    while cursor[L.STEP] < cell_count(span):
        cell = cell_in(files, span, int(cursor[L.STEP]))
        if not _has(files, old_span, cell) and not _enter(files, slot, word, cell):
            return False
        cursor[L.STEP] += 1
    return True


@kernel
def move(files: Files, slots: Slots, boxes: Floats, cursor: Ints) -> bool:
    """Swap the boxes of clauses and those of a batch; return whether all are done.

    An entry that stays in a cell is rewritten there. A clause gets another key if that is less frequent
    by now.
    """
    for i in range(cursor[L.ROW], slots.shape[0]):
        cursor[L.ROW] = i
        best = _key_for(files, slots[i])
        if cursor[L.LEVEL] == _BEGINS:
            cursor[L.LEVEL] = _set_off(files, slots[i], best, boxes, i)
        if cursor[L.LEVEL] == _STAYS:
            is_done = _arrive(files, slots[i], best, boxes, i, cursor)
        else:
            is_done = _place(files, slots[i], cursor)
        if not is_done:
            return False
        cursor[L.STEP] = 0
        cursor[L.LEVEL] = _BEGINS
    return True
