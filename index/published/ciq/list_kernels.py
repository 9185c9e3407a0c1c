"""Inverted files: a list of each keyword in each cell, in increasing order of slots.

Operations: find O(1); insert and remove O(list), since the later postings move.
"""

from __future__ import annotations

from index.published.ciq import layout as L
from index.published.ciq.layout import Cover
from index.tables.float32_kernels import upper
from index.tables.free_kernels import give_back_rows, take_rows
from index.tables.id_map_kernels import LOAD_MAX, NO_VALUE, find, pop, put
from index.tables.run_kernels import RUN_LEAST, free_run, has_run, is_wasteful, moved_run, take_run
from safe_region.jit import leaf

_LOW = 0xFFFFFFFF


@leaf
def key_of(cell: int, word: int) -> int:
    """Return the hash key of a keyword in a cell."""
    return (int(cell) << 32) | (int(word) & _LOW)


@leaf
def list_of(cover: Cover, cell: int, word: int) -> int:
    """Return the list of a keyword in a cell, NO_LIST if there is none."""
    found = find(cover.list_keys, cover.list_values, key_of(cell, word))
    return L.NO_LIST if found == NO_VALUE else found


@leaf
def place_in(cover: Cover, number: int, slot: int) -> int:
    """Return the place in a list of the first posting that is not before a slot's."""
    low = int(cover.lists[number]["start"])
    high = low + int(cover.lists[number]["count"])
    while low < high:
        middle = (low + high) // 2
        if cover.postings.records[middle]["slot"] < slot:
            low = middle + 1
        else:
            high = middle
    return low


@leaf
def _made(cover: Cover, cell: int, word: int) -> int:
    """Create a list; return NO_LIST if space is lacking."""
    meta = cover.meta
    if meta[L.FREE_LIST] == L.NO_LIST and meta[L.LIST_END] >= cover.lists.shape[0]:
        meta[L.LISTS_WANTED] = 1
        return L.NO_LIST
    if meta[L.LIST_COUNT] + 1 > cover.list_keys.shape[0] * LOAD_MAX:
        meta[L.KEYS_WANTED] = 1
        return L.NO_LIST
    if not has_run(cover.postings, 0):
        meta[L.POSTINGS_WANTED] = RUN_LEAST
        return L.NO_LIST
    number = take_rows(cover.lists["start"], meta, L.FREE_LIST, meta, L.LIST_END, 1)
    meta[L.LIST_COUNT] += 1
    row = cover.lists[number]
    row["key"] = key_of(cell, word)
    row["start"] = take_run(cover.postings, 0)
    row["count"] = 0
    row["size_class"] = 0
    put(cover.list_keys, cover.list_values, int(row["key"]), number)
    return number


@leaf
def insert_posting(cover: Cover, cell: int, word: int, slot: int, weight: float) -> bool:
    """Insert a subscription into the list of a keyword in a cell; return whether there was space."""
    number = list_of(cover, cell, word)
    if number == L.NO_LIST:
        number = _made(cover, cell, word)
        if number == L.NO_LIST:
            return False
    row = cover.lists[number]
    count, size_class = int(row["count"]), int(row["size_class"])
    if count == RUN_LEAST << size_class:
        if not has_run(cover.postings, size_class + 1):
            cover.meta[L.POSTINGS_WANTED] = RUN_LEAST << (size_class + 1)
            return False
        row["start"] = moved_run(cover.postings, int(row["start"]), count, size_class, size_class + 1)
        row["size_class"] = size_class + 1
    gap = place_in(cover, number, slot)
    records = cover.postings.records
    for place in range(int(row["start"]) + count, gap, -1):
        records[place] = records[place - 1]
    records[gap]["slot"] = slot
    records[gap]["weight"] = upper(weight)
    row["count"] = count + 1
    return True


@leaf
def remove_posting(cover: Cover, cell: int, word: int, slot: int) -> None:
    """Remove a subscription from the list of a keyword in a cell."""
    number = list_of(cover, cell, word)
    row = cover.lists[number]
    row["count"] -= 1
    start, count, size_class = int(row["start"]), int(row["count"]), int(row["size_class"])
    records = cover.postings.records
    for place in range(place_in(cover, number, slot), start + count):
        records[place] = records[place + 1]
    if count == 0:
        free_run(cover.postings, start, size_class)
        pop(cover.list_keys, cover.list_values, int(row["key"]))
        give_back_rows(cover.lists["start"], cover.meta, L.FREE_LIST, number)
        cover.meta[L.LIST_COUNT] -= 1
    elif is_wasteful(cover.postings, count, size_class):
        row["start"] = moved_run(cover.postings, start, count, size_class, size_class - 1)
        row["size_class"] = size_class - 1
