"""Objects in a quadtree of lists for each of their keywords: RQ+."""

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
    clear,
    copy_entry,
    found_or_made,
    has_new_entries,
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
from index.tables.free_kernels import take_rows
from index.tables.slots import Slots
from index.tables.within_kernels import BoxQueries, Wanted, wanted_of
from safe_region.jit import kernel, leaf

_NO_CELL = 0
"""A tree of lists has no other cells."""


@leaf
def _part(files: Files, number: int, level: int) -> bool:
    """Give a list children; return whether there was space. Removed objects are not copied."""
    meta = files.meta
    if meta[L.GROUP_FREE] == L.NO_LIST and meta[L.LIST_END] + 4 > files.lists.shape[0]:
        meta[L.LISTS_WANTED] = 4
        return False
    if not has_new_entries(files, int(files.lists[number]["count"])):
        return False
    children = take_rows(files.lists["start"], meta, L.GROUP_FREE, meta, L.LIST_END, 4)
    for child in range(children, children + 4):
        clear(files, child)
    files.lists[number]["first_child"] = children
    first = int(files.lists[number]["start"])
    for place in range(first, first + int(files.lists[number]["count"])):
        slot = files.entries.records[place]["slot"]
        if not files.is_gone[slot]:
            row = files.rows[slot]
            column, line = stripe_of(files, row["x_m"], 0), stripe_of(files, row["y_m"], 1)
            copy_entry(files, place, children + quarter_of(column, line, level + 1))
    return True


@leaf
def _enter_word(
    files: Files, slot: int, word: int, column: int, line: int, signature: int, cursor: Ints
) -> bool:
    """Insert an object under a keyword in all cells from the root down; return if there was space."""
    number = found_or_made(files, word, _NO_CELL)
    if number == L.NO_LIST:
        return False
    level = 0
    while True:
        is_leaf = files.lists[number]["first_child"] == L.NO_LIST
        if is_leaf and level < DEEP and files.lists[number]["count"] >= files.meta[L.LONG]:
            if not _part(files, number, level):
                return False
            is_leaf = False
        if level >= cursor[L.LEVEL]:
            place = add_entry(files, number)
            if place == NO_PLACE:
                return False
            write_object(files, place, slot, signature)
            cursor[L.LEVEL] += 1
        if is_leaf:
            return True
        level += 1
        number = int(files.lists[number]["first_child"]) + quarter_of(column, line, level)


@kernel
def enter(files: Files, slots: Slots, cursor: Ints) -> bool:
    """Insert objects whose keywords have been counted; return whether all are done."""
    for i in range(cursor[L.ROW], slots.shape[0]):
        row = files.rows[slots[i]]
        column, line = stripe_of(files, row["x_m"], 0), stripe_of(files, row["y_m"], 1)
        signature = signature_in(files, slots[i])
        cursor[L.ROW] = i
        while cursor[L.STEP] < row["keyword_count"]:
            word = word_of(files, int(files.pool[row["keyword_start"] + cursor[L.STEP]]))
            if not _enter_word(files, slots[i], word, column, line, signature, cursor):
                return False
            cursor[L.LEVEL] = 0
            cursor[L.STEP] += 1
        cursor[L.STEP] = 0
    return True


@leaf
def _walk(
    files: Files,
    root: int,
    span: Span,
    wanted: Wanted,
    frame: Frame,
    stack: Stack,
    found: Ints,
    total: int,
) -> int:
    """Keep the matching objects of the cells that cost least; return the new number of results."""
    depth = start(stack, root)
    while depth > 0:
        depth -= 1
        number = int(stack[depth, 0])
        first = int(files.lists[number]["first_child"])
        count = int(files.lists[number]["count"])
        if first != L.NO_LIST and is_worth_parting(
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
            root = int(files.words[word]["list"])
            span = span_of(files, wanted.x1_m, wanted.y1_m, wanted.x2_m, wanted.y2_m)
            total = _walk(files, root, span, wanted, frame_of(wanted), stack, found, total)
        offsets[i + 1] = total
        if total > found.shape[0]:
            return i
    return int(queries.x1_m.shape[0])
