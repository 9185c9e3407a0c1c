"""Searching IQF+ for all objects in a box that have some keywords.

Plan: a narrow object is in the list of each of its keywords and of each pair of long ones, a wide one in
the list of wide objects of each of its keywords. So the shortest list of narrow objects for the required
keywords has every narrow object once, and the shortest list of wide objects every wide one. No object is
in both. A run is scanned; in a tree only cells that intersect the box are visited.

An entry is excluded by its position, which float32 and the cell may displace by `slack_m`, then by its
mark, and then by its object's position and keywords. If the key of the list implies all required
keywords, keywords are not tested.

Operations: a row O(entries in cells that intersect the box, of the shortest list).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from index.batches import Ints
from index.iqf_plus.layout import Lists, Objects
from index.iqf_plus.list_kernels import (
    NARROW_MAX,
    NO_LIST,
    PAIR_KEY_MIN,
    number_of,
    pair_key,
    wide_key,
)
from index.iqf_plus.mark_kernels import mark_bit
from index.iqf_plus.node_kernels import INNER, STACK_MAX
from index.tables.quad_kernels import NO_NODE
from index.tables.within_kernels import BoxQueries, Wanted, has_all, holds_point, keep, wanted_of
from safe_region.jit import kernel, leaf

_PAIR = 2
"""The number of keywords that the key of a pair implies."""


@leaf
def _length_of(lists: Lists, number: int) -> int:
    """Return the number of entries of a list."""
    row = lists.lists[number]
    return int(row["run_count"]) + int(row["tree_count"])


@leaf
def _narrow_list(lists: Lists, wanted: Wanted) -> int:
    """Return the shortest list with all narrow objects that have the keywords; NO_LIST if none has."""
    words = wanted.words
    if words.shape[0] > NARROW_MAX:
        return NO_LIST
    best = NO_LIST
    least = 0
    all_long = True
    for i in range(words.shape[0]):
        number = number_of(lists, int(words[i]))
        if number == NO_LIST:
            return NO_LIST
        all_long = all_long and lists.lists[number]["root"] != NO_NODE
        count = _length_of(lists, number)
        if best == NO_LIST or count < least:
            best = number
            least = count
    if not all_long:
        return best
    for i in range(words.shape[0]):
        for j in range(i + 1, words.shape[0]):
            number = number_of(lists, pair_key(int(words[i]), int(words[j])))
            if number == NO_LIST:
                return NO_LIST
            count = _length_of(lists, number)
            if count < least:
                best = number
                least = count
    return best


@leaf
def _wide_list(lists: Lists, wanted: Wanted) -> int:
    """Return the shortest list with all wide objects that have the keywords; NO_LIST if none has."""
    best = NO_LIST
    least = 0
    for i in range(wanted.words.shape[0]):
        number = number_of(lists, wide_key(int(wanted.words[i])))
        if number == NO_LIST:
            return NO_LIST
        count = _length_of(lists, number)
        if best == NO_LIST or count < least:
            best = number
            least = count
    return best


@leaf
def _scan(
    lists: Lists,
    start: int,
    count: int,
    objects: Objects,
    wanted: Wanted,
    mark: int,
    found: Ints,
    total: int,
) -> int:
    """Keep the matching entries of a run; return the new number of results.

    `mark` has the bits of the required keywords, or none if all entries have them.
    """
    slack_m = float(lists.slack_m[0])
    x1_m = wanted.x1_m - slack_m
    y1_m = wanted.y1_m - slack_m
    x2_m = wanted.x2_m + slack_m
    y2_m = wanted.y2_m + slack_m
    for place in range(start, start + count):
        entry = lists.runs.records[place]
        if not (x1_m <= entry["x_m"] <= x2_m and y1_m <= entry["y_m"] <= y2_m):
            continue
        if int(entry["mark"]) & mark != mark:
            continue
        row = objects.rows[entry["slot"]]
        if not holds_point(wanted, row["x_m"], row["y_m"]):
            continue
        first = int(row["keyword_start"])
        if mark == 0 or has_all(wanted.words, objects.pool, first, int(row["keyword_count"])):
            total = keep(found, total, row["id"])
    return total


@leaf
def _meets(lists: Lists, node: int, wanted: Wanted) -> bool:
    """Return whether a node may have entries whose objects lie in the box.

    The borders of a cell are exact, and the slack is added last: rounding is monotone.
    """
    row = lists.nodes[node]
    half_m = float(row["half_m"])
    slack_m = float(lists.slack_m[0])
    return bool(
        row["count"] != 0
        and row["x_m"] - half_m - slack_m <= wanted.x2_m
        and row["x_m"] + half_m + slack_m >= wanted.x1_m
        and row["y_m"] - half_m - slack_m <= wanted.y2_m
        and row["y_m"] + half_m + slack_m >= wanted.y1_m
    )


@leaf
def _walk(
    lists: Lists,
    root: int,
    objects: Objects,
    wanted: Wanted,
    mark: int,
    stack: npt.NDArray[np.int32],
    found: Ints,
    total: int,
) -> int:
    """Keep the matching entries of a tree; return the new number of results."""
    stack[0] = root
    depth = 1
    while depth > 0:
        depth -= 1
        row = lists.nodes[stack[depth]]
        below = int(row["below"])
        if row["count"] != INNER:
            total = _scan(lists, below, int(row["count"]), objects, wanted, mark, found, total)
            continue
        for child in range(below, below + 4):
            if _meets(lists, child, wanted):
                stack[depth] = child
                depth += 1
    return total


@leaf
def _mark_to_test(lists: Lists, number: int, wanted: Wanted) -> int:
    """Return the bits of the required keywords; none if the key of a list implies them all."""
    known = wanted.words.shape[0]
    if known == 1 or (known == _PAIR and lists.lists[number]["key"] >= PAIR_KEY_MIN):
        return 0
    mark = 0
    for word in wanted.words:
        mark |= mark_bit(word)
    return mark


@leaf
def _look(
    lists: Lists,
    number: int,
    objects: Objects,
    wanted: Wanted,
    stack: npt.NDArray[np.int32],
    found: Ints,
    total: int,
) -> int:
    """Keep the matching entries of a list, if it exists; return the new number of results."""
    if number == NO_LIST:
        return total
    mark = _mark_to_test(lists, number, wanted)
    row = lists.lists[number]
    if row["root"] != NO_NODE:
        return _walk(lists, int(row["root"]), objects, wanted, mark, stack, found, total)
    start = int(row["start"])
    return _scan(lists, start, int(row["run_count"]), objects, wanted, mark, found, total)


@kernel
def within(
    lists: Lists, objects: Objects, queries: BoxQueries, first_row: int, offsets: Ints, found: Ints
) -> int:
    """Process rows, starting from one; return the first without space (see `index.tables.matches`)."""
    stack = np.empty(STACK_MAX, dtype=np.int32)
    for i in range(first_row, queries.x1_m.shape[0]):
        total = int(offsets[i])
        wanted = wanted_of(queries, i)
        if wanted.words.shape[0] > 0 and wanted.words[0] >= 0:
            narrow = _narrow_list(lists, wanted)
            total = _look(lists, narrow, objects, wanted, stack, found, total)
            total = _look(lists, _wide_list(lists, wanted), objects, wanted, stack, found, total)
        offsets[i + 1] = total
        if total > found.shape[0]:
            return i
    return int(queries.x1_m.shape[0])
