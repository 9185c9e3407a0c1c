"""The lists of IQF+: one for each keyword, and one for each pair of long keywords.

A list is a run of entries, or a tree if it has more than LONG_MIN. A keyword is *long* while its list is
a tree. An object is inserted

* under each of its keywords, and under each pair of long ones among them, if it has at most NARROW_MAX;
* otherwise under each of its keywords in separate lists of wide objects. So no object is inserted more
  than NARROW_MAX * (NARROW_MAX + 1) / 2 times, however many keywords it has.

When a keyword becomes long, the objects of its list, LONG_MIN of them, are inserted under its pairs. When
it ceases to be long, with LONG_MIN / 4 left, those are removed. So each step is short.

Operations: post and unpost O(depth + LONG_MIN). `post` returns a negative status if it ran out of space,
and is then called again with the same arguments; `meta` holds the progress of a list that is becoming
long.
"""

from __future__ import annotations

from index.iqf_plus.layout import Lists, Objects
from index.iqf_plus.node_kernels import DONE, RUNS_FULL, plant
from index.iqf_plus.tree_kernels import NO_ENTRY, gather, insert, place_of, set_entry, take_out
from index.tables.free_kernels import give_back_rows, take_rows
from index.tables.id_map_kernels import LOAD_MAX, NO_VALUE, find, pop, put
from index.tables.quad_kernels import NO_NODE
from index.tables.run_kernels import (
    NO_RUN,
    RUN_LEAST,
    class_of,
    free_run,
    has_run,
    is_wasteful,
    moved_run,
    take_run,
)
from safe_region.jit import leaf

KEYS_FULL = -3
LISTS_FULL = -4
SHORT = 1
"""A status: done, and the list has become short."""

NARROW_MAX = 8
"""Maximum number of keywords of an object that is inserted under pairs."""

NO_LIST = -1

PAIR_KEY_MIN = 1 << 32
"""Keys of pairs are not below this."""

LIST_END = 2
"""In meta: every row from here on is unused."""
LIST_FREE = 3
"""In meta: the first free row, NO_LIST if there is none."""
RIPENED = 4
"""In meta: entries of the keyword that is becoming long whose pairs are done."""
RIPENED_OTHERS = 5
"""In meta: keywords of the next entry that are done."""
LONG_MIN = 6
"""In meta: the maximum number of entries of a list without a tree."""
META_COUNT = 7


@leaf
def pair_key(one: int, other: int) -> int:
    """Return the key of a pair of keywords: above those of keywords."""
    return ((min(one, other) + 1) << 32) | max(one, other)


@leaf
def wide_key(keyword: int) -> int:
    """Return the key of a keyword's list of wide objects: negative."""
    return -keyword - 1


@leaf
def number_of(lists: Lists, key: int) -> int:
    """Return the number of a list, or NO_LIST."""
    number = find(lists.keys, lists.values, key)
    return NO_LIST if number == NO_VALUE else number


@leaf
def is_long(lists: Lists, keyword: int) -> bool:
    """Return whether a keyword has a tree."""
    number = number_of(lists, keyword)
    return bool(number != NO_LIST and lists.lists[number]["root"] != NO_NODE)


@leaf
def count_of(lists: Lists, key: int) -> int:
    """Return the number of objects in a list."""
    number = number_of(lists, key)
    if number == NO_LIST:
        return 0
    return int(lists.lists[number]["run_count"]) + int(lists.lists[number]["tree_count"])


@leaf
def _free_list(lists: Lists, number: int) -> None:
    """Delete a list without entries."""
    row = lists.lists[number]
    pop(lists.keys, lists.values, int(row["key"]))
    if row["size_class"] != NO_RUN:
        free_run(lists.runs, int(row["start"]), int(row["size_class"]))
    row["size_class"] = NO_RUN
    row["root"] = NO_NODE
    row["run_count"] = -1
    give_back_rows(lists.lists["start"], lists.meta, LIST_FREE, number)


@leaf
def _make_list(lists: Lists, key: int) -> int:
    """Create a list; return its number, or a negative status."""
    meta = lists.meta
    used = int(meta[LIST_END])
    if used + 1 > lists.keys.shape[0] * LOAD_MAX:
        return KEYS_FULL
    if meta[LIST_FREE] == NO_LIST and used >= lists.lists.shape[0]:
        return LISTS_FULL
    number = take_rows(lists.lists["start"], meta, LIST_FREE, meta, LIST_END, 1)
    row = lists.lists[number]
    row["key"] = key
    row["start"] = 0
    row["run_count"] = 0
    row["tree_count"] = 0
    row["root"] = NO_NODE
    row["size_class"] = NO_RUN
    put(lists.keys, lists.values, key, number)
    return number


@leaf
def _move_run(lists: Lists, number: int, size_class: int) -> None:
    """Move a list to a run of another size; the caller has verified that one is free."""
    row = lists.lists[number]
    old_class = int(row["size_class"])
    row["start"] = moved_run(lists.runs, int(row["start"]), int(row["run_count"]), old_class, size_class)
    row["size_class"] = size_class


@leaf
def _plant(lists: Lists, number: int) -> int:
    """Turn a list into a tree; return a status."""
    row = lists.lists[number]
    records = lists.runs.records
    if row["root"] == NO_NODE:
        first = records[row["start"]]
        root = plant(lists, float(first["x_m"]), float(first["y_m"]))
        if root < 0:
            return root
        row["root"] = root
    while row["run_count"] > 0:
        entry = records[row["start"] + row["run_count"] - 1]
        slot = int(entry["slot"])
        root = int(row["root"])
        status = insert(lists, root, float(entry["x_m"]), float(entry["y_m"]), slot, int(entry["mark"]))
        if status != DONE:
            return status
        row["run_count"] -= 1
        row["tree_count"] += 1
    free_run(lists.runs, int(row["start"]), int(row["size_class"]))
    row["size_class"] = NO_RUN
    return DONE


@leaf
def _enter(lists: Lists, number: int, x_m: float, y_m: float, slot: int, mark: int) -> int:
    """Insert an entry into a list, regardless of its key; return a status."""
    row = lists.lists[number]
    if row["size_class"] != NO_RUN and (
        row["root"] != NO_NODE or row["run_count"] >= lists.meta[LONG_MIN]
    ):
        status = _plant(lists, number)
        if status != DONE:
            return status
    if row["root"] != NO_NODE:
        status = insert(lists, int(row["root"]), x_m, y_m, slot, mark)
        row["tree_count"] += status == DONE
        return status
    if row["size_class"] == NO_RUN or row["run_count"] == RUN_LEAST << row["size_class"]:
        if not has_run(lists.runs, int(row["size_class"]) + 1):
            return RUNS_FULL
        _move_run(lists, number, int(row["size_class"]) + 1)
    set_entry(lists, int(row["start"]) + int(row["run_count"]), x_m, y_m, slot, mark)
    row["run_count"] += 1
    return DONE


@leaf
def post(lists: Lists, key: int, x_m: float, y_m: float, slot: int, mark: int) -> int:
    """Insert an object into the list of a pair or of wide objects; return a status."""
    number = number_of(lists, key)
    if number == NO_LIST:
        number = _make_list(lists, key)
        if number < 0:
            return number
    return _enter(lists, number, x_m, y_m, slot, mark)


@leaf
def _pair_up(lists: Lists, objects: Objects, number: int) -> int:
    """Insert the objects of a keyword that is becoming long under its pairs; return a status."""
    meta = lists.meta
    row = lists.lists[number]
    keyword = int(row["key"])
    while meta[RIPENED] < row["run_count"]:
        entry = lists.runs.records[row["start"] + meta[RIPENED]]
        slot = int(entry["slot"])
        start = int(objects.rows[slot]["keyword_start"])
        while meta[RIPENED_OTHERS] < objects.rows[slot]["keyword_count"]:
            other = int(objects.pool[start + meta[RIPENED_OTHERS]])
            if other != keyword and is_long(lists, other):
                key = pair_key(keyword, other)
                status = post(
                    lists, key, float(entry["x_m"]), float(entry["y_m"]), slot, int(entry["mark"])
                )
                if status != DONE:
                    return status
            meta[RIPENED_OTHERS] += 1
        meta[RIPENED_OTHERS] = 0
        meta[RIPENED] += 1
    return DONE


@leaf
def post_keyword(
    lists: Lists, objects: Objects, keyword: int, x_m: float, y_m: float, slot: int, mark: int
) -> int:
    """Insert a narrow object under a keyword, which may make it long; return a status."""
    number = number_of(lists, keyword)
    if number == NO_LIST:
        number = _make_list(lists, keyword)
        if number < 0:
            return number
    row = lists.lists[number]
    if row["root"] == NO_NODE and row["run_count"] >= lists.meta[LONG_MIN]:
        status = _pair_up(lists, objects, number)
        if status != DONE:
            return status
    status = _enter(lists, number, x_m, y_m, slot, mark)
    if status == DONE:
        lists.meta[RIPENED] = 0
    return status


@leaf
def _shorten(lists: Lists, number: int) -> bool:
    """Turn a sparse tree into a run, if one is free; return whether this was done."""
    row = lists.lists[number]
    size_class = class_of(int(row["tree_count"]))
    if not has_run(lists.runs, size_class):
        return False
    start = take_run(lists.runs, size_class)
    gather(lists, int(row["root"]), start)
    row["start"] = start
    row["size_class"] = size_class
    row["run_count"] = row["tree_count"]
    row["tree_count"] = 0
    row["root"] = NO_NODE
    if row["run_count"] == 0:
        _free_list(lists, number)
    return True


@leaf
def unpost(lists: Lists, number: int, x_m: float, y_m: float, slot: int) -> int:
    """Remove an object from a list; return DONE, SHORT or NO_ENTRY.

    A list that is empty then is deleted. With NO_ENTRY nothing has changed.
    """
    if number == NO_LIST:
        return NO_ENTRY
    row = lists.lists[number]
    if row["root"] != NO_NODE:
        if take_out(lists, int(row["root"]), x_m, y_m, slot) == NO_ENTRY:
            return NO_ENTRY
        row["tree_count"] -= 1
        if row["tree_count"] <= lists.meta[LONG_MIN] // 4 and _shorten(lists, number):
            return SHORT
        return DONE
    records = lists.runs.records
    start = int(row["start"])
    place = place_of(lists, start, int(row["run_count"]), slot)
    if place == NO_ENTRY:
        return NO_ENTRY
    records[place] = records[start + int(row["run_count"]) - 1]
    row["run_count"] -= 1
    count = int(row["run_count"])
    if count == 0:
        _free_list(lists, number)
    elif is_wasteful(lists.runs, count, int(row["size_class"])):
        _move_run(lists, number, int(row["size_class"]) - 1)
    return DONE


@leaf
def unpair(lists: Lists, objects: Objects, number: int) -> int:
    """Remove the objects of a keyword that is not long any more from its pairs; return a status."""
    row = lists.lists[number]
    keyword = int(row["key"])
    for place in range(row["start"], row["start"] + row["run_count"]):
        entry = lists.runs.records[place]
        slot = int(entry["slot"])
        start = int(objects.rows[slot]["keyword_start"])
        for i in range(start, start + objects.rows[slot]["keyword_count"]):
            other = int(objects.pool[i])
            if other != keyword and is_long(lists, other):
                pair = number_of(lists, pair_key(keyword, other))
                x_m, y_m = float(entry["x_m"]), float(entry["y_m"])
                if unpost(lists, pair, x_m, y_m, slot) == NO_ENTRY:
                    return NO_ENTRY
    return DONE
