"""The inverted file: contiguous posting lists that grow, shrink and turn into quadtrees.

A list of an infrequent keyword is a run of entries. The place of an entry in a run is its offset, so that
moving a run changes no place. The entries of a frequent keyword are stored in its quadtree instead, not
twice.

Operations: add and drop O(1) amortised in a run, O(depth) in a tree; promote and demote O(entries). A
function that runs out of space returns a negative status with no change.
"""

from __future__ import annotations

import numpy as np

from index.batches import Ints
from index.published.iqf.layout import Files
from index.tables.buckets.kernels import (
    BLOCK_CAPACITY,
    DEPTH_MAX,
    fell,
    free_block,
    has_room,
    insert,
    plant,
    remove,
)
from index.tables.buckets.layout import Objects, Trees
from index.tables.free_kernels import give_back_rows, take_rows
from index.tables.id_map_kernels import LOAD_MAX, NO_VALUE, find, pop, put
from index.tables.quad_kernels import NO_NODE, free_group
from index.tables.run_kernels import (
    NO_RUN,
    RUN_LEAST,
    class_of,
    free_run,
    has_run,
    is_wasteful,
    moved_run,
)
from safe_region.jit import kernel, leaf

NO_KEYWORD = -1
NO_LIST = -1

LIST_END = 0
"""In meta: every row from here on is unused."""
LIST_FREE = 1
"""In meta: the first free row, NO_LIST if there is none."""
LIST_COUNT = 2
"""In meta: lists in use."""
META_COUNT = 3

DONE = 0
KEYS_FULL = -1
LISTS_FULL = -2
RUNS_FULL = -3
TREES_FULL = -4


@leaf
def _move_run(files: Files, number: int, size_class: int) -> None:
    """Move a list to a run of another size; the caller has verified that one is free."""
    row = files.lists[number]
    old_class = int(row["size_class"])
    row["start"] = moved_run(files.runs, int(row["start"]), int(row["count"]), old_class, size_class)
    row["size_class"] = size_class


@leaf
def _take_list(files: Files, keyword: int) -> int:
    meta = files.meta
    number = take_rows(files.lists["start"], meta, LIST_FREE, meta, LIST_END, 1)
    meta[LIST_COUNT] += 1
    row = files.lists[number]
    row["keyword"] = keyword
    row["count"] = 0
    row["size_class"] = NO_RUN
    row["root"] = NO_NODE
    put(files.keys, files.values, keyword, number)
    return number


@leaf
def _free_list(files: Files, trees: Trees, number: int) -> None:
    """Delete a keyword that no object has any more."""
    row = files.lists[number]
    pop(files.keys, files.values, int(row["keyword"]))
    if row["size_class"] != NO_RUN:
        free_run(files.runs, int(row["start"]), int(row["size_class"]))
    if row["root"] != NO_NODE:
        fell(trees, row["root"])
    row["keyword"] = NO_KEYWORD
    give_back_rows(files.lists["start"], files.meta, LIST_FREE, number)
    files.meta[LIST_COUNT] -= 1


@leaf
def list_count(files: Files, trees: Trees, number: int) -> int:
    """Return the number of objects that have a keyword."""
    row = files.lists[number]
    if row["root"] != NO_NODE:
        return int(row["count"] + trees.nodes[row["root"]]["count"])
    return int(row["count"])


@leaf
def _room_for(files: Files, trees: Trees, number: int) -> int:
    """Return DONE if a posting fits into a list, or into a new one (NO_LIST), else a negative status."""
    if number == NO_LIST:
        meta = files.meta
        if meta[LIST_COUNT] + 1 > files.keys.shape[0] * LOAD_MAX:
            return KEYS_FULL
        if meta[LIST_FREE] == NO_LIST and meta[LIST_END] >= files.lists.shape[0]:
            return LISTS_FULL
        return DONE if has_run(files.runs, 0) else RUNS_FULL
    row = files.lists[number]
    if row["root"] != NO_NODE:
        return DONE if has_room(trees) else TREES_FULL
    if row["count"] == RUN_LEAST << row["size_class"] and not has_run(files.runs, row["size_class"] + 1):
        return RUNS_FULL
    return DONE


@leaf
def add_posting(
    files: Files, trees: Trees, objects: Objects, slot: int, signature: int, ordinal: int
) -> int:
    """Insert an object under one of its keywords; return a status."""
    start = objects.rows[slot]["keyword_start"]
    keyword = int(objects.pool[start + ordinal])
    number = find(files.keys, files.values, keyword)
    status = _room_for(files, trees, number)
    if status != DONE:
        return status
    if number == NO_VALUE:
        number = _take_list(files, keyword)
        _move_run(files, number, 0)
    row = files.lists[number]
    if row["root"] != NO_NODE:
        insert(trees, objects, row["root"], slot, signature, ordinal)
        return DONE
    if row["count"] == RUN_LEAST << row["size_class"]:
        _move_run(files, number, row["size_class"] + 1)
    offset = row["count"]
    entry = files.runs.records[row["start"] + offset]
    entry["x_m"] = objects.rows[slot]["x_m"]
    entry["y_m"] = objects.rows[slot]["y_m"]
    entry["signature"] = signature
    entry["slot"] = slot
    entry["keyword_count"] = objects.rows[slot]["keyword_count"]
    entry["ordinal"] = ordinal
    objects.places[start + ordinal] = offset
    row["count"] += 1
    return DONE


@leaf
def drop_posting(files: Files, trees: Trees, objects: Objects, slot: int, ordinal: int) -> None:
    """Remove an object from the list of one of its keywords."""
    start = objects.rows[slot]["keyword_start"]
    number = find(files.keys, files.values, int(objects.pool[start + ordinal]))
    place = objects.places[start + ordinal]
    row = files.lists[number]
    if row["root"] != NO_NODE:
        remove(trees, objects, place)
    else:
        last = row["count"] - 1
        if place != last:
            files.runs.records[row["start"] + place] = files.runs.records[row["start"] + last]
            moved = files.runs.records[row["start"] + place]
            objects.places[objects.rows[moved["slot"]]["keyword_start"] + moved["ordinal"]] = place
        row["count"] = last
        if is_wasteful(files.runs, int(last), int(row["size_class"])):
            _move_run(files, number, int(row["size_class"]) - 1)
    if list_count(files, trees, number) == 0:
        _free_list(files, trees, number)


@leaf
def _empty_leaf(files: Files, trees: Trees, objects: Objects, number: int, leaf_node: int) -> None:
    """Move the entries of a leaf to the end of a list's run."""
    row = files.lists[number]
    while trees.nodes[leaf_node]["count"] > 0:
        block = trees.nodes[leaf_node]["block"]
        taken = (trees.nodes[leaf_node]["count"] - 1) % BLOCK_CAPACITY + 1
        for place in range(block * BLOCK_CAPACITY, block * BLOCK_CAPACITY + taken):
            offset = row["count"]
            files.runs.records[row["start"] + offset] = trees.entries[place]
            entry = trees.entries[place]
            objects.places[objects.rows[entry["slot"]]["keyword_start"] + entry["ordinal"]] = offset
            row["count"] += 1
        trees.nodes[leaf_node]["block"] = trees.blocks[block]["next"]
        trees.nodes[leaf_node]["count"] -= taken
        free_block(trees, block)


@kernel
def promote(
    files: Files, trees: Trees, objects: Objects, numbers: Ints, x_m: float, y_m: float, half_m: float
) -> int:
    """Turn lists into quadtrees with a root square about (x, y); return a status.

    After a status for lack of space, a call with the same numbers continues at the same point.
    """
    for i in range(numbers.shape[0]):
        row = files.lists[numbers[i]]
        if row["root"] == NO_NODE:
            if not has_room(trees):
                return TREES_FULL
            row["root"] = plant(trees, x_m, y_m, half_m)
        while row["count"] > 0:
            if not has_room(trees):
                return TREES_FULL
            entry = files.runs.records[row["start"] + row["count"] - 1]
            insert(trees, objects, row["root"], entry["slot"], entry["signature"], entry["ordinal"])
            row["count"] -= 1
        if row["size_class"] != NO_RUN:
            free_run(files.runs, int(row["start"]), int(row["size_class"]))
            row["size_class"] = NO_RUN
    return DONE


@kernel
def demote(files: Files, trees: Trees, objects: Objects, numbers: Ints) -> int:
    """Turn quadtrees into lists; return a status. After lack of space, it may be called again."""
    stack = np.empty(3 * DEPTH_MAX + 4, dtype=np.int32)
    for i in range(numbers.shape[0]):
        row = files.lists[numbers[i]]
        if row["root"] == NO_NODE:
            continue
        size_class = class_of(int(trees.nodes[row["root"]]["count"]))
        if not has_run(files.runs, size_class):
            return RUNS_FULL
        _move_run(files, numbers[i], size_class)
        stack[0] = row["root"]
        depth = 1
        while depth > 0:
            depth -= 1
            node = stack[depth]
            first = trees.nodes[node]["first_child"]
            if first == NO_NODE:
                _empty_leaf(files, trees, objects, numbers[i], node)
                continue
            for child in range(first, first + 4):
                stack[depth] = child
                depth += 1
            free_group(trees.nodes, trees.meta, first)
        fell(trees, row["root"])
        row["root"] = NO_NODE
    return DONE
