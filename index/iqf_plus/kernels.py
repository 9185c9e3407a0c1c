"""The batch operations of IQF+: see `index.iqf_plus.index` for the plan."""

from __future__ import annotations

from typing import Any

import numpy as np

from index.batches import Ints, KeywordIds
from index.iqf_plus.layout import Lists, Objects
from index.iqf_plus.list_kernels import (
    NARROW_MAX,
    SHORT,
    count_of,
    is_long,
    number_of,
    pair_key,
    post,
    post_keyword,
    unpair,
    unpost,
    wide_key,
)
from index.iqf_plus.mark_kernels import mark_bit, mark_of
from index.iqf_plus.node_kernels import DONE, rounded
from index.iqf_plus.search_kernels import retrieve
from index.iqf_plus.tree_kernels import NO_ENTRY
from index.tables.buckets.question_kernels import (
    Answered,
    Queries,
    Scratch,
    close,
    kept_of,
    question_of,
    scratch_for,
    words_of,
)
from index.tables.heap_kernels import Heap
from index.tables.slots import Slots
from safe_region.jit import kernel, leaf

_ROUNDING = 1e-15
"""Rounding of differences between coordinates, relative to these."""

CURSOR_ROW = 0
"""In a cursor: rows of the batch that are done."""
CURSOR_STEP = 1
"""In a cursor: entries of the next row that are done."""


@leaf
def _enter_pairs(lists: Lists, objects: Objects, slot: int, mark: int, cursor: Ints) -> int:
    """Insert a narrow object under the pairs of its long keywords, from a step on; return a status."""
    row = objects.rows[slot]
    x_m = rounded(row["x_m"])
    y_m = rounded(row["y_m"])
    start = int(row["keyword_start"])
    count = int(row["keyword_count"])
    step = count
    for i in range(start, start + count):
        if not is_long(lists, int(objects.pool[i])):
            continue
        for j in range(i + 1, start + count):
            if not is_long(lists, int(objects.pool[j])):
                continue
            if step == cursor[CURSOR_STEP]:
                key = pair_key(int(objects.pool[i]), int(objects.pool[j]))
                status = post(lists, key, x_m, y_m, slot, mark)
                if status != DONE:
                    return status
                cursor[CURSOR_STEP] += 1
            step += 1
    return DONE


@leaf
def _enter_object(lists: Lists, objects: Objects, slot: int, cursor: Ints) -> int:
    """Insert an object into all its lists, starting at a step; return a status."""
    row = objects.rows[slot]
    x_m = rounded(row["x_m"])
    y_m = rounded(row["y_m"])
    start = int(row["keyword_start"])
    count = int(row["keyword_count"])
    mark = mark_of(objects.pool[start : start + count], row["norm2"])
    while cursor[CURSOR_STEP] < count:
        keyword = int(objects.pool[start + cursor[CURSOR_STEP]])
        if count > NARROW_MAX:
            status = post(lists, wide_key(keyword), x_m, y_m, slot, mark)
        else:
            status = post_keyword(lists, objects, keyword, x_m, y_m, slot, mark)
        if status != DONE:
            return status
        cursor[CURSOR_STEP] += 1
    if count > NARROW_MAX:
        return DONE
    return _enter_pairs(lists, objects, slot, mark, cursor)


@leaf
def _slack(row: Any) -> float:  # noqa: ANN401
    """Return a bound on the distance of an object from the position in its entries.

    It covers the rounding of the entries and of the coordinates of cells.
    """
    off_m = abs(row["x_m"] - rounded(row["x_m"])) + abs(row["y_m"] - rounded(row["y_m"]))
    return float(off_m + (abs(row["x_m"]) + abs(row["y_m"])) * _ROUNDING)


@kernel
def insert(lists: Lists, objects: Objects, slots: Slots, cursor: Ints) -> int:
    """Insert objects, starting at `cursor`, which is updated; return a status."""
    for i in range(cursor[CURSOR_ROW], slots.shape[0]):
        lists.slack_m[0] = max(lists.slack_m[0], _slack(objects.rows[slots[i]]))
        status = _enter_object(lists, objects, slots[i], cursor)
        if status != DONE:
            cursor[CURSOR_ROW] = i
            return status
        cursor[CURSOR_STEP] = 0
    return DONE


@leaf
def _drop(lists: Lists, objects: Objects, keyword: int, x_m: float, y_m: float, slot: int) -> int:
    """Remove an object from the list of one keyword; return a status."""
    number = number_of(lists, keyword)
    status = unpost(lists, number, x_m, y_m, slot)
    return unpair(lists, objects, number) if status == SHORT else status


@leaf
def _leave_pairs(lists: Lists, objects: Objects, x_m: float, y_m: float, slot: int) -> int:
    """Remove a narrow object from the lists of its pairs of long keywords; return a status."""
    start = int(objects.rows[slot]["keyword_start"])
    end = start + int(objects.rows[slot]["keyword_count"])
    for i in range(start, end):
        if not is_long(lists, int(objects.pool[i])):
            continue
        for j in range(i + 1, end):
            if is_long(lists, int(objects.pool[j])):
                key = pair_key(int(objects.pool[i]), int(objects.pool[j]))
                if unpost(lists, number_of(lists, key), x_m, y_m, slot) == NO_ENTRY:
                    return NO_ENTRY
    return DONE


@leaf
def _leave_object(lists: Lists, objects: Objects, slot: int) -> int:
    """Remove an object from all its lists; return a status."""
    row = objects.rows[slot]
    x_m = rounded(row["x_m"])
    y_m = rounded(row["y_m"])
    start = int(row["keyword_start"])
    end = start + int(row["keyword_count"])
    is_wide = end - start > NARROW_MAX
    if not is_wide and _leave_pairs(lists, objects, x_m, y_m, slot) == NO_ENTRY:
        return NO_ENTRY
    for i in range(start, end):
        keyword = int(objects.pool[i])
        if is_wide:
            status = unpost(lists, number_of(lists, wide_key(keyword)), x_m, y_m, slot)
        else:
            status = _drop(lists, objects, keyword, x_m, y_m, slot)
        if status == NO_ENTRY:
            return NO_ENTRY
    return DONE


@kernel
def remove(lists: Lists, objects: Objects, slots: Slots) -> int:
    """Remove objects from all their lists; return how many, fewer if the next one lacks an entry."""
    for i in range(slots.shape[0]):
        if _leave_object(lists, objects, slots[i]) == NO_ENTRY:
            return i
    return int(slots.shape[0])


@leaf
def _plan(lists: Lists, words: KeywordIds, long: Ints, scratch: Scratch) -> None:
    """Rank a subscription's keywords, shortest list first, and mark the long ones."""
    counts = scratch.counts
    order = scratch.order
    for i in range(words.shape[0]):
        count = count_of(lists, int(words[i])) + count_of(lists, wide_key(int(words[i])))
        j = i
        while j > 0 and counts[j - 1] > count:
            counts[j] = counts[j - 1]
            order[j] = order[j - 1]
            j -= 1
        counts[j] = count
        order[j] = i
    for rank in range(words.shape[0]):
        word = int(words[order[rank]])
        scratch.ranks[order[rank]] = rank
        scratch.bits[rank] = mark_bit(word)
        long[rank] = is_long(lists, word)


@kernel
def best(
    lists: Lists,
    objects: Objects,
    queries: Queries,
    answered: Answered,
    frontier: Heap,
) -> None:
    """Process a batch of queries."""
    scratch = scratch_for(queries)
    long = np.empty_like(scratch.order)
    squares = np.empty_like(scratch.largest)
    for i in range(answered.sizes.shape[0]):
        words = words_of(queries, i)
        _plan(lists, words, long, scratch)
        question = question_of(queries, i, words.shape[0], scratch)
        for rank in range(words.shape[0]):
            squares[rank] = question.squares[scratch.order[rank]]
        kept = kept_of(answered, i)
        size = retrieve(question, scratch.order, long, squares, lists, objects, frontier, kept)
        close(answered, i, kept, size)
