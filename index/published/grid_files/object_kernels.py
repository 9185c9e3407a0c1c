"""Objects in grid files: each is in one cell, in the list of each of its keywords there."""

from __future__ import annotations

from index.batches import Ints
from index.published.grid_files.cell_kernels import cell_count, cell_in, is_long, span_in
from index.published.postings.entry_kernels import (
    Frame,
    frame_of,
    scan,
    signature_in,
    write_object,
)
from index.published.postings.layout import NO_LIST, NO_WORD, ROW, STEP, Files
from index.published.postings.list_kernels import (
    NO_PLACE,
    add_entry,
    begin_directory,
    copy_entry,
    found_or_made,
    has_directory,
    has_lists,
    has_new_entries,
    keep_entries,
    list_at,
)
from index.published.postings.word_kernels import least_frequent, word_of
from index.tables.slots import Slots
from index.tables.within_kernels import BoxQueries, Wanted, wanted_of
from safe_region.jit import kernel, leaf


@leaf
def _cell_of(files: Files, word: int, slot: int) -> int:
    row = files.rows[slot]
    return cell_in(files, span_in(files, word, row["x_m"], row["y_m"], row["x_m"], row["y_m"]), 0)


@leaf
def _spread(files: Files, word: int) -> bool:
    """Divide a keyword's list by place; return whether there was space."""
    number = int(files.words[word]["list"])
    start, count = int(files.lists[number]["start"]), int(files.lists[number]["count"])
    if not (has_directory(files) and has_lists(files, count) and has_new_entries(files, count)):
        return False
    begin_directory(files, word)
    for place in range(start, start + count):
        slot = files.entries.records[place]["slot"]
        if not files.is_gone[slot]:
            copy_entry(files, place, found_or_made(files, word, _cell_of(files, word, slot)))
    keep_entries(files, number, 0)
    return True


@leaf
def _enter(files: Files, slot: int, word: int, signature: int) -> bool:
    """Insert an object under a keyword; return whether there was space."""
    if is_long(files, word) and not _spread(files, word):
        return False
    number = found_or_made(files, word, _cell_of(files, word, slot))
    if number == NO_LIST:
        return False
    place = add_entry(files, number)
    if place == NO_PLACE:
        return False
    write_object(files, place, slot, signature)
    return True


@kernel
def enter(files: Files, slots: Slots, cursor: Ints) -> bool:
    """Insert objects whose keywords have been counted; return whether all are done."""
    for i in range(cursor[ROW], slots.shape[0]):
        row = files.rows[slots[i]]
        signature = signature_in(files, slots[i])
        while cursor[STEP] < row["keyword_count"]:
            word = word_of(files, int(files.pool[row["keyword_start"] + cursor[STEP]]))
            if not _enter(files, slots[i], word, signature):
                cursor[ROW] = i
                return False
            cursor[STEP] += 1
        cursor[STEP] = 0
    return True


@leaf
def _look(files: Files, word: int, wanted: Wanted, frame: Frame, found: Ints, total: int) -> int:
    """Keep the matching entries of the lists of a keyword; return the new number of results."""
    span = span_in(files, word, wanted.x1_m, wanted.y1_m, wanted.x2_m, wanted.y2_m)
    for step in range(cell_count(span)):
        number = list_at(files, word, cell_in(files, span, step))
        if number != NO_LIST:
            total = scan(files, number, wanted, frame, found, total)
    return total


@kernel
def within(files: Files, queries: BoxQueries, first_row: int, offsets: Ints, found: Ints) -> int:
    """Process rows, starting from one; return the first without space (see `index.tables.matches`)."""
    for i in range(first_row, queries.x1_m.shape[0]):
        total = int(offsets[i])
        wanted = wanted_of(queries, i)
        word = least_frequent(files, wanted.words)
        if word != NO_WORD:
            total = _look(files, word, wanted, frame_of(wanted), found, total)
        offsets[i + 1] = total
        if total > found.shape[0]:
            return i
    return int(queries.x1_m.shape[0])
