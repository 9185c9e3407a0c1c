"""The batch operations of IQF+ that change it: see `index.iqf_plus.index` for the plan."""

from __future__ import annotations

from typing import Any

from index.batches import Ints
from index.iqf_plus.layout import Lists, Objects
from index.iqf_plus.list_kernels import (
    NARROW_MAX,
    is_long,
    number_of,
    pair_key,
    post,
    post_keyword,
    unpair,
    unpost,
    wide_key,
)
from index.iqf_plus.mark_kernels import mark_of
from index.iqf_plus.tree_kernels import DONE, rounded
from index.tables.slots import Slots
from safe_region.jit import kernel, leaf

_ROUNDING = 1e-15
"""Of differences between coordinates, relative to these."""

CURSOR_ROW = 0
"""In a cursor: rows of the batch that are done."""
CURSOR_STEP = 1
"""In a cursor: entries of the next row that are done."""


@leaf
def _enter_object(lists: Lists, objects: Objects, slot: int, cursor: Ints) -> int:
    """Enter an object wherever it belongs, from a step on; return a status."""
    row = objects.rows[slot]
    x_m = rounded(row["x_m"])
    y_m = rounded(row["y_m"])
    start = int(row["keyword_start"])
    count = int(row["keyword_count"])
    mark = mark_of(objects.pool[start : start + count])
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
def _slack(row: Any) -> float:  # noqa: ANN401
    """How far an object may be from where its entries say it is, and from what cells make of that."""
    off_m = abs(row["x_m"] - rounded(row["x_m"])) + abs(row["y_m"] - rounded(row["y_m"]))
    return float(off_m + (abs(row["x_m"]) + abs(row["y_m"])) * _ROUNDING)


@kernel
def insert(lists: Lists, objects: Objects, slots: Slots, cursor: Ints) -> int:
    """Enter objects, from `cursor` on, which says how far it is; return a status."""
    for i in range(cursor[CURSOR_ROW], slots.shape[0]):
        lists.slack_m[0] = max(lists.slack_m[0], _slack(objects.rows[slots[i]]))
        status = _enter_object(lists, objects, slots[i], cursor)
        if status != DONE:
            cursor[CURSOR_ROW] = i
            return status
        cursor[CURSOR_STEP] = 0
    return DONE


@leaf
def _drop(lists: Lists, objects: Objects, keyword: int, x_m: float, y_m: float, slot: int) -> None:
    """Take an object out from under one keyword."""
    number = number_of(lists, keyword)
    if unpost(lists, number, x_m, y_m, slot):
        unpair(lists, objects, number)


@kernel
def remove(lists: Lists, objects: Objects, slots: Slots) -> None:
    """Take objects out from wherever they are."""
    for slot in slots:
        row = objects.rows[slot]
        x_m = rounded(row["x_m"])
        y_m = rounded(row["y_m"])
        start = int(row["keyword_start"])
        end = start + int(row["keyword_count"])
        if row["keyword_count"] > NARROW_MAX:
            for i in range(start, end):
                unpost(lists, number_of(lists, wide_key(int(objects.pool[i]))), x_m, y_m, slot)
            continue
        for i in range(start, end):
            if not is_long(lists, int(objects.pool[i])):
                continue
            for j in range(i + 1, end):
                if is_long(lists, int(objects.pool[j])):
                    key = pair_key(int(objects.pool[i]), int(objects.pool[j]))
                    unpost(lists, number_of(lists, key), x_m, y_m, slot)
        for i in range(start, end):
            _drop(lists, objects, int(objects.pool[i]), x_m, y_m, slot)

