"""Finding the subscriptions that a new object affects.

A walk through the trie visits the existing combinations of the object's keywords. The members of a bucket
are verified one by one. In an opened node the text distance follows from the combination, the
subscription and the object (`closeness_kernels`). So a search of its quadtree with a radius for each
entry finds the candidates, which are then tested in full precision.

A subscription is found once: at the end of the walk along the keywords that it shares with the object, in
decreasing order. That is a bucket or loose entry whose combination is a prefix of them, or an entry whose
combination equals them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from index.batches import Floats, Ints, KeywordIds
from index.sq_plus_tree import layout as L
from index.sq_plus_tree.cell_kernels import others_signature
from index.sq_plus_tree.closeness import TINY
from index.sq_plus_tree.closeness_kernels import class_of, combination_square, factors_of
from index.sq_plus_tree.layout import Forest, Singles, Slots
from index.sq_plus_tree.threshold_kernels import COORDINATE_ERROR
from index.sq_plus_tree.walk_kernels import Walk, descend, next_node, start
from index.tables.prefetch_kernels import prefetch
from index.tables.quad_kernels import node_distance
from index.tables.selection_kernels import is_less
from safe_region.jit import kernel, leaf
from safe_region.scoring.kernels import nearest_length, text_distance

_ALL = 0
"""No keyword is less."""
_INWARD = 1e-6
"""Relative to the reach of an entry: its float32 numbers are rounded outwards, by 2e-7 each."""
_INWARD_M = 8.0 * TINY
"""In addition, in metres: `outward` adds TINY to a number, and bounds are made of a few numbers."""


class Item(NamedTuple):
    """An object to match."""

    id: int
    x_m: float
    y_m: float
    words: KeywordIds
    squares: Floats
    """Squared weights of its keywords; ones without weights."""
    norm: float


class Room(NamedTuple):
    """The output of a search: stack of cells, factors (`closeness_kernels`), matches and counters."""

    stack: Slots
    factors: Singles
    found: Ints
    seen: Ints


@leaf
def _weigh(forest: Forest, item: Item) -> None:
    """Write the squares of an object's keywords: ones without weights or for unknown keywords."""
    is_weighed = bool(forest.meta[L.IS_WEIGHED])
    for i in range(item.words.shape[0]):
        is_known = is_weighed and item.words[i] < forest.squares.shape[0]
        item.squares[i] = forest.squares[item.words[i]] if is_known else 1.0


@leaf
def _is_affected(forest: Forest, slot: int, item: Item, depth: int, least: int) -> bool:
    """Return whether a subscription matches an object and is to be found at a combination.

    The latter holds if they share exactly `depth` keywords from `least` on.
    """
    row = forest.subscriptions[slot]
    common = 0.0
    counted = 0
    i = int(row["keyword_start"])
    end = i + int(row["keyword_count"])
    j = 0
    while i < end and j < item.words.shape[0]:
        if forest.pool[i] == item.words[j]:
            common += item.squares[j]
            if item.words[j] >= least:
                counted += 1
            i += 1
            j += 1
        elif forest.pool[i] < item.words[j]:
            i += 1
        else:
            j += 1
    if counted != depth:
        return False
    distance = text_distance(row["similarity"], common, row["norm"], item.norm)
    share = row["weight_m"] * distance
    nearest = nearest_length(row["x_m"] - item.x_m, row["y_m"] - item.y_m, row["radius_m"], share)
    return is_less(nearest, item.id, row["reach_m"], row["reach_id"])


@leaf
def _keep(forest: Forest, slot: int, found: Ints, total: int) -> int:
    if total < found.shape[0]:
        found[total] = forest.subscriptions[slot]["id"]
    return total + 1


@leaf
def _scan_members(forest: Forest, node: int, item: Item, room: Room, total: int) -> int:
    row = forest.nodes[node]
    depth, least = int(row["depth"]), int(row["keyword"])
    first = int(row["start"])
    room.seen[0] += row["count"]
    for place in range(first, first + int(row["count"])):
        prefetch(forest.subscriptions, forest.members[place])
    for place in range(first, first + int(row["count"])):
        slot = int(forest.members[place])
        if _is_affected(forest, slot, item, depth, least):
            total = _keep(forest, slot, room.found, total)
    return total


@leaf
def _scan_entries(
    forest: Forest,
    node: int,
    first: int,
    count: int,
    away_m: float,
    others: int,
    item: Item,
    at: tuple[int, int],
    room: Room,
    total: int,
) -> int:
    """Test entries: those of a leaf at this distance, in decreasing order of their bounds.

    Without cells there is no order, and `away_m` is minus infinity.

    An object that is clearly within the disc of an entry, and shares no keyword outside the combination,
    needs no verification. `others` is the signature of the object's keywords outside the combination,
    `at` the position of its factors.
    """
    depth, least = int(forest.nodes[node]["depth"]), int(forest.nodes[node]["keyword"])
    is_counted = item.words.shape[0] <= L.SIZE_MAX
    for entry in range(first, first + count):
        row = forest.entries[entry]
        bound = float(row["bound_m"])
        if bound < away_m:
            break
        rest = float(row["rest_m"])
        gained = float(row["gain_m"]) * float(room.factors[at[0], at[1], row["kind"]])
        radius = min(bound, rest + gained)
        x, y = float(row["x_m"]), float(row["y_m"])
        dx, dy = x - item.x_m, y - item.y_m
        if radius < 0.0 or dx * dx + dy * dy > radius * radius:
            continue
        room.seen[0] += 1
        slot = int(forest.entry_slots[entry])
        is_certain = False
        if row["others"] & others == 0 and not row["is_vague"] and is_counted:
            error = _INWARD_M + _INWARD * (abs(rest) + gained)
            error += 2.0 * COORDINATE_ERROR * (abs(x) + abs(y))
            inner = radius - error
            is_certain = inner > 0.0 and dx * dx + dy * dy < inner * inner
        if is_certain or _is_affected(forest, slot, item, depth, least if row["is_loose"] else _ALL):
            total = _keep(forest, slot, room.found, total)
    return total


@leaf
def _search_cells(
    forest: Forest,
    node: int,
    number: int,
    others: int,
    item: Item,
    at: tuple[int, int],
    room: Room,
    total: int,
) -> int:
    """Search the cells of a node for an object of a class."""
    stack = room.stack
    stack[0] = forest.nodes[node]["cell"]
    size = 1
    while size > 0:
        size -= 1
        cell = int(stack[size])
        threshold = forest.threshold_m[cell, number]
        away = node_distance(forest.cells, cell, item.x_m, item.y_m)
        if threshold < 0.0 or away > threshold:
            continue
        first = int(forest.cells[cell]["first_child"])
        if first != L.NOTHING:
            for child in range(first, first + L.CHILDREN):
                prefetch(forest.cells, child)
                prefetch(forest.threshold_m, child * L.CLASSES + number)
                stack[size] = child
                size += 1
        else:
            row = forest.cells[cell]
            total = _scan_entries(
                forest, node, int(row["start"]), int(row["count"]), away, others, item, at, room, total
            )
    return total


@leaf
def _search_node(forest: Forest, node: int, item: Item, room: Room, total: int) -> int:
    """Search an opened node."""
    row = forest.nodes[node]
    others = others_signature(forest, node, item.words)
    square = combination_square(forest, node)
    at = factors_of(forest, square, item.norm, room.factors)
    if row["cell"] == L.NOTHING:
        first, count = int(row["start"]), int(row["entry_count"])
        return _scan_entries(forest, node, first, count, -np.inf, others, item, at, room, total)
    number = class_of(forest, square, item.norm)
    return _search_cells(forest, node, number, others, item, at, room, total)


@kernel
def match(
    forest: Forest,
    walk: Walk,
    room: Room,
    object_ids: Ints,
    x_m: Floats,
    y_m: Floats,
    keyword_offsets: Ints,
    keyword_ids: KeywordIds,
    squares: Floats,
    norm2: Floats,
    offsets: Ints,
) -> int:
    """Write the matches of each object as CSR; return their number.

    Fills `offsets` (objects + 1) always and `room.found` up to its length; the caller retries with a
    larger one when the return value exceeds its length. `room.seen[0]` counts the verified subscriptions.
    `squares` is scratch for one number for each keyword; `norm2` is unused without weights.
    """
    is_weighed = bool(forest.meta[L.IS_WEIGHED])
    total = 0
    for i in range(object_ids.shape[0]):
        offsets[i] = total
        first, end = keyword_offsets[i], keyword_offsets[i + 1]
        norm = norm2[i] if is_weighed else float(end - first)
        item = Item(object_ids[i], x_m[i], y_m[i], keyword_ids[first:end], squares[first:end], norm)
        _weigh(forest, item)
        start(walk, item.words)
        while True:
            node = next_node(forest, walk, item.words)
            if node == L.NOTHING:
                break
            if forest.nodes[node]["is_bucket"]:
                total = _scan_members(forest, node, item, room, total)
            else:
                total = _search_node(forest, node, item, room, total)
                descend(walk, node)
    offsets[object_ids.shape[0]] = total
    return total
