"""Objects in one quadtree, whose cells have a list of each keyword: IQ+."""

from __future__ import annotations

import numpy as np

from index.batches import Ints
from index.published.postings import layout as L
from index.published.postings.entry_kernels import (
    Frame,
    frame_of,
    scan,
    signature_in,
    write_object,
)
from index.published.postings.layout import Files
from index.published.postings.list_kernels import (
    NO_PLACE,
    add_entry,
    found_or_made,
    has_lists,
    has_new_entries,
    keep_entries,
    list_at,
)
from index.published.postings.place_kernels import Span, span_of, stripe_of
from index.published.postings.word_kernels import least_frequent, word_of
from index.published.quad_files.cell_kernels import (
    DEEP,
    STACK_MAX,
    Stack,
    is_worth_parting,
    push_children,
    quarter_of,
    start,
)
from index.tables.slots import Slots
from index.tables.within_kernels import BoxQueries, Wanted, wanted_of
from safe_region.jit import kernel, leaf

ROOT = 0


@leaf
def _word_at(files: Files, slot: int, step: int) -> int:
    """Return one of an object's keywords; after the last, the word that all objects have."""
    row = files.rows[slot]
    if step == row["keyword_count"]:
        return L.ALL_WORDS
    return word_of(files, int(files.pool[row["keyword_start"] + step]))


@leaf
def _enter(files: Files, slot: int, word: int, cell: int, signature: int) -> bool:
    """Insert an object into the list of a keyword in a cell; return whether there was space."""
    number = found_or_made(files, word, cell)
    if number == L.NO_LIST:
        return False
    place = add_entry(files, number)
    if place == NO_PLACE:
        return False
    write_object(files, place, slot, signature)
    return True


@leaf
def _has_parts(files: Files, number: int) -> bool:
    """Return whether there is space for the children of a cell, and all entries of its objects."""
    first = int(files.lists[number]["start"])
    count = 4
    for place in range(first, first + int(files.lists[number]["count"])):
        count += 1 + int(files.rows[files.entries.records[place]["slot"]]["keyword_count"])
    if files.meta[L.CELL_END] + 4 > files.cells.shape[0]:
        files.meta[L.CELLS_WANTED] = 4
        return False
    return has_lists(files, count) and has_new_entries(files, count)


@leaf
def _part(files: Files, cell: int, level: int) -> bool:
    """Divide a cell; return whether there was space. Removed objects are not copied."""
    number = list_at(files, L.ALL_WORDS, cell)
    if not _has_parts(files, number):
        return False
    children = int(files.meta[L.CELL_END])
    files.meta[L.CELL_END] += 4
    files.cells[children : children + 4] = L.NO_CELL
    files.cells[cell] = children
    first = int(files.lists[number]["start"])
    for place in range(first, first + int(files.lists[number]["count"])):
        slot = int(files.entries.records[place]["slot"])
        if files.is_gone[slot]:
            continue
        row = files.rows[slot]
        column, line = stripe_of(files, row["x_m"], 0), stripe_of(files, row["y_m"], 1)
        child = children + quarter_of(column, line, level + 1)
        signature = signature_in(files, slot)
        for step in range(row["keyword_count"] + 1):
            _enter(files, slot, _word_at(files, slot, step), child, signature)
    keep_entries(files, number, 0)
    return True


@leaf
def _make_way(files: Files, column: int, line: int) -> bool:
    """Divide the cells that one more object would overfill; return whether there was space."""
    cell = ROOT
    level = 0
    while True:
        while files.cells[cell] != L.NO_CELL:
            level += 1
            cell = int(files.cells[cell]) + quarter_of(column, line, level)
        number = list_at(files, L.ALL_WORDS, cell)
        if level == DEEP or number == L.NO_LIST or files.lists[number]["count"] < files.meta[L.LONG]:
            return True
        if not _part(files, cell, level):
            return False


@leaf
def _enter_word(
    files: Files, slot: int, word: int, column: int, line: int, signature: int, cursor: Ints
) -> bool:
    """Insert an object under a keyword in all cells from the root down; return if there was space."""
    cell = ROOT
    level = 0
    while True:
        is_leaf = files.cells[cell] == L.NO_CELL
        if level >= cursor[L.LEVEL]:
            is_here = is_leaf or word != L.ALL_WORDS
            if is_here and not _enter(files, slot, word, cell, signature):
                return False
            cursor[L.LEVEL] += 1
        if is_leaf:
            return True
        level += 1
        cell = int(files.cells[cell]) + quarter_of(column, line, level)


@kernel
def enter(files: Files, slots: Slots, cursor: Ints) -> bool:
    """Insert objects whose keywords have been counted; return whether all are done."""
    for i in range(cursor[L.ROW], slots.shape[0]):
        row = files.rows[slots[i]]
        column, line = stripe_of(files, row["x_m"], 0), stripe_of(files, row["y_m"], 1)
        signature = signature_in(files, slots[i])
        cursor[L.ROW] = i
        if not _make_way(files, column, line):
            return False
        while cursor[L.STEP] <= row["keyword_count"]:
            word = _word_at(files, slots[i], int(cursor[L.STEP]))
            if not _enter_word(files, slots[i], word, column, line, signature, cursor):
                return False
            cursor[L.LEVEL] = 0
            cursor[L.STEP] += 1
        cursor[L.STEP] = 0
    return True


@leaf
def _walk(
    files: Files,
    word: int,
    span: Span,
    wanted: Wanted,
    frame: Frame,
    stack: Stack,
    found: Ints,
    total: int,
) -> int:
    """Keep the matching objects of the cells that cost least; return the new number of results."""
    depth = start(stack, ROOT)
    while depth > 0:
        depth -= 1
        cell = int(stack[depth, 0])
        number = list_at(files, word, cell)
        if number == L.NO_LIST:
            continue
        first = int(files.cells[cell])
        count = int(files.lists[number]["count"])
        if first != L.NO_CELL and is_worth_parting(
            count, span, int(stack[depth, 1]), int(stack[depth, 2]), int(stack[depth, 3])
        ):
            depth = push_children(stack, depth, first, span)
        else:
            total = scan(files, number, wanted, frame, found, total)
    return total


@kernel
def within(files: Files, queries: BoxQueries, first_row: int, offsets: Ints, found: Ints) -> int:
    """Process rows, starting from one; return the first without space (see `index.tables.matches`)."""
    stack = np.empty((STACK_MAX, 4), dtype=np.int32)
    for i in range(first_row, queries.x1_m.shape[0]):
        total = int(offsets[i])
        wanted = wanted_of(queries, i)
        word = least_frequent(files, wanted.words)
        if word != L.NO_WORD:
            span = span_of(files, wanted.x1_m, wanted.y1_m, wanted.x2_m, wanted.y2_m)
            total = _walk(files, word, span, wanted, frame_of(wanted), stack, found, total)
        offsets[i + 1] = total
        if total > found.shape[0]:
            return i
    return int(queries.x1_m.shape[0])
