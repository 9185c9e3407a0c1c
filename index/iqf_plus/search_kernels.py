"""Searching IQF+ for a subscription: see `index.iqf_plus.index` for the plan.

An entry is excluded by its distance, then by the length that its object would have if it shared every
keyword that the entry's mark admits, and only then by its object's keywords. The positions of entries and
cells are rounded to float32: every bound allows for `slack_m`. Comparisons with the worst kept length are
strict, since among equal lengths the id decides.
"""

from __future__ import annotations

import math

from index.batches import Floats, Ints, KeywordIds
from index.iqf_plus.bound_kernels import Sought, least, least_of_mark
from index.iqf_plus.layout import Lists, Objects
from index.iqf_plus.list_kernels import NARROW_MAX, NO_LIST, number_of, pair_key, wide_key
from index.iqf_plus.node_kernels import INNER
from index.tables.buckets.question_kernels import Kept, Question, limit_of, share_of
from index.tables.heap_kernels import Heap, pop, push
from index.tables.quad_kernels import NO_NODE
from index.tables.selection_kernels import offer
from safe_region.jit import leaf
from safe_region.scoring.kernels import length, sum_of

_ROUNDING = 1e-12
"""Relative tolerance of tests on distances, which are not rounded like lengths."""

ANY = -1
"""For a second keyword: any object passes."""

NONE = 1 << 30
"""For a second keyword: only the first of the long keywords may be common."""


@leaf
def _reach2(limit_m: float, share_m: float, slack_m: float) -> float:
    """Return the squared distance beyond which an entry of at least this text part is above the limit."""
    reach_m = (limit_m - share_m) + slack_m + limit_m * _ROUNDING
    if reach_m < 0.0:
        return -1.0
    return reach_m * reach_m * (1.0 + _ROUNDING)


@leaf
def _common(question: Question, sought: Sought, words: KeywordIds) -> float:
    """Return the sum of the squared weights of common keywords; 0 if another list offers the object."""
    i = 0
    j = 0
    common = 0.0
    second = NONE
    while i < question.words.shape[0] and j < words.shape[0]:
        if question.words[i] == words[j]:
            rank = int(question.ranks[i])
            if rank < sought.rank:
                return 0.0
            if sought.rank < rank < second and sought.long[rank]:
                second = rank
            common += question.squares[i]
            i += 1
            j += 1
        elif question.words[i] < words[j]:
            i += 1
        else:
            j += 1
    return common if sought.second in (ANY, second) else 0.0


@leaf
def _scan(
    question: Question,
    sought: Sought,
    floor: float,
    lists: Lists,
    start: int,
    count: int,
    objects: Objects,
    kept: Kept,
    size: int,
) -> int:
    """Offer the objects of a run with a text part of at least `floor`; return the new size."""
    slack_m = float(lists.slack_m[0])
    limit = limit_of(question, kept, size)
    reach2 = _reach2(limit, floor, slack_m)
    for place in range(start, start + count):
        entry = lists.runs.records[place]
        dx = question.x_m - float(entry["x_m"])
        dy = question.y_m - float(entry["y_m"])
        away2 = dx * dx + dy * dy
        if away2 > reach2:
            continue
        share = least_of_mark(question, sought, int(entry["mark"]))
        if away2 > _reach2(limit, share, slack_m):
            continue
        row = objects.rows[entry["slot"]]
        if row["id"] < question.first_id:
            continue
        first = row["keyword_start"]
        keyword_count = int(row["keyword_count"])
        common = _common(question, sought, objects.pool[first : first + keyword_count])
        if common == 0.0:
            continue
        share = share_of(question, common, keyword_count, row["norm2"])
        here = length(question.x_m - row["x_m"], question.y_m - row["y_m"], share)
        if here > limit:
            continue
        size = offer(kept.lengths, kept.ids, kept.shares, size, here, row["id"], share)
        limit = limit_of(question, kept, size)
        reach2 = _reach2(limit, floor, slack_m)
    return size


@leaf
def _cell_distance(lists: Lists, node: int, x_m: float, y_m: float) -> float:
    """Return the distance from a point to a node's cell, 0 inside."""
    row = lists.nodes[node]
    half_m = float(row["half_m"])
    dx = max(0.0, abs(x_m - float(row["x_m"])) - half_m)
    dy = max(0.0, abs(y_m - float(row["y_m"])) - half_m)
    return math.sqrt(dx * dx + dy * dy)


@leaf
def _search_tree(
    question: Question,
    sought: Sought,
    lists: Lists,
    root: int,
    objects: Objects,
    frontier: Heap,
    kept: Kept,
    size: int,
) -> int:
    """Offer the objects of a tree, nearest cells first; return the new size."""
    nodes = lists.nodes
    slack_m = float(lists.slack_m[0])
    waiting = push(frontier, 0, 0.0, root)
    while waiting > 0:
        node = int(frontier.items[0])
        limit = limit_of(question, kept, size)
        if frontier.keys[0] > limit + limit * _ROUNDING:
            break
        waiting = pop(frontier, waiting)
        row = nodes[node]
        if row["count"] != INNER:
            below = int(row["below"])
            floor = least(question, sought.most, int(row["keyword_min"]), int(row["norm_min"]))
            size = _scan(question, sought, floor, lists, below, row["count"], objects, kept, size)
            continue
        for child in range(row["below"], row["below"] + 4):
            other = nodes[child]
            if other["count"] == 0:
                continue
            away_m = _cell_distance(lists, child, question.x_m, question.y_m)
            away_m = away_m - slack_m if away_m > slack_m else 0.0
            keyword_min, norm_min = int(other["keyword_min"]), int(other["norm_min"])
            bound = away_m + least(question, sought.most, keyword_min, norm_min)
            if bound <= limit + limit * _ROUNDING:
                waiting = push(frontier, waiting, bound, child)
    return size


@leaf
def _look(
    question: Question,
    sought: Sought,
    number: int,
    keyword_min: int,
    lists: Lists,
    objects: Objects,
    frontier: Heap,
    kept: Kept,
    size: int,
) -> int:
    """Offer the objects of a list; return the new size."""
    if number == NO_LIST:
        return size
    floor = least(question, sought.most, keyword_min, 0)
    if floor > limit_of(question, kept, size):
        return size
    row = lists.lists[number]
    if row["root"] != NO_NODE:
        return _search_tree(question, sought, lists, int(row["root"]), objects, frontier, kept, size)
    start = int(row["start"])
    return _scan(question, sought, floor, lists, start, row["run_count"], objects, kept, size)


@leaf
def _look_single(
    question: Question,
    order: Ints,
    long: Ints,
    squares: Floats,
    lists: Lists,
    objects: Objects,
    frontier: Heap,
    kept: Kept,
    size: int,
) -> int:
    """Offer the objects with one long common keyword and no rarer one; return the new size."""
    known = question.bits.shape[0]
    for rank in range(known):
        if long[rank]:
            most = float(squares[rank])
            for later in range(rank + 1, known):
                if not long[later]:
                    most += squares[later]
            number = number_of(lists, int(question.words[order[rank]]))
            single = Sought(rank, NONE, most, long, squares)
            size = _look(question, single, number, 0, lists, objects, frontier, kept, size)
    return size


@leaf
def retrieve(
    question: Question,
    order: Ints,
    long: Ints,
    squares: Floats,
    lists: Lists,
    objects: Objects,
    frontier: Heap,
    kept: Kept,
) -> int:
    """Find the best objects of a subscription; return their number.

    `order` has the positions of its keywords by rank, `squares` their squared weights.
    """
    size = 0
    if kept.ids.shape[0] == 0:
        return size
    known = question.bits.shape[0]
    left = sum_of(squares[:known])
    for rank in range(known):
        if least(question, left, 0, 0) > limit_of(question, kept, size):
            break
        word = int(question.words[order[rank]])
        wide = Sought(rank, ANY, left, long, squares)
        number = number_of(lists, wide_key(word))
        size = _look(question, wide, number, NARROW_MAX + 1, lists, objects, frontier, kept, size)
        most = left
        left -= squares[rank]
        if not long[rank]:
            number = number_of(lists, word)
            size = _look(question, wide, number, 0, lists, objects, frontier, kept, size)
            continue
        for second in range(rank + 1, known):
            if long[second]:
                other = int(question.words[order[second]])
                pair = Sought(rank, second, most, long, squares)
                number = number_of(lists, pair_key(word, other))
                size = _look(question, pair, number, 0, lists, objects, frontier, kept, size)
                most -= squares[second]
    return _look_single(question, order, long, squares, lists, objects, frontier, kept, size)
