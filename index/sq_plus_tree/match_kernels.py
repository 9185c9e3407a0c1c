"""Who is affected by a new object.

The combinations of its keywords that exist are walked to in the trie. The members of a bucket are
verified one by one. In an opened node the text distance follows from the combination and the numbers of
keywords, so that a search of its quadtree with a radius for each entry finds the candidates, which are
then tested in full precision.

A subscription is found once: where the walk along the keywords that it shares with the object, in
decreasing order, ends. That is a bucket or loose entry whose combination they begin with, or an entry
whose combination they are.
"""

from __future__ import annotations

import numpy as np

from index.batches import Floats, Ints, KeywordIds
from index.sq_plus_tree.cell_kernels import others_signature
from index.sq_plus_tree.layout import (
    CHILDREN,
    CLASS_OFFSETS,
    CLASSES,
    NOTHING,
    SIZE_MAX,
    Forest,
    Slots,
)
from index.sq_plus_tree.threshold_kernels import COORDINATE_ERROR, OUTWARD
from index.sq_plus_tree.walk_kernels import Walk, descend, next_node, start
from index.tables.quad_kernels import node_distance
from index.tables.selection_kernels import is_less
from safe_region.jit import kernel, leaf
from safe_region.scoring_kernels import nearest_length, text_distance

_OFFSETS = np.array(CLASS_OFFSETS)
_ALL = 0
"""No keyword is less."""


@leaf
def _class_of(beyond: int) -> int:
    """Class of an object with so many keywords beyond the combination."""
    number = CLASSES - 1
    while _OFFSETS[number] > beyond:
        number -= 1
    return number


@leaf
def _is_affected(
    forest: Forest,
    slot: int,
    object_id: int,
    x_m: float,
    y_m: float,
    words: KeywordIds,
    depth: int,
    least: int,
) -> bool:
    """Whether a subscription matches an object and is to be found at a combination.

    The keywords that they share from `least` on are to be `depth`.
    """
    row = forest.subscriptions[slot]
    common = 0
    counted = 0
    i = int(row["keyword_start"])
    end = i + int(row["keyword_count"])
    j = 0
    while i < end and j < words.shape[0]:
        if forest.pool[i] == words[j]:
            common += 1
            if words[j] >= least:
                counted += 1
            i += 1
            j += 1
        elif forest.pool[i] < words[j]:
            i += 1
        else:
            j += 1
    if counted != depth:
        return False
    distance = text_distance(row["similarity"], common, row["keyword_count"], words.shape[0])
    share = row["weight_m"] * distance
    nearest = nearest_length(row["x_m"] - x_m, row["y_m"] - y_m, row["radius_m"], share)
    return is_less(nearest, object_id, row["reach_m"], row["reach_id"])


@leaf
def _keep(forest: Forest, slot: int, found: Ints, total: int) -> int:
    if total < found.shape[0]:
        found[total] = forest.subscriptions[slot]["id"]
    return total + 1


@leaf
def _scan_members(
    forest: Forest,
    node: int,
    object_id: int,
    x_m: float,
    y_m: float,
    words: KeywordIds,
    found: Ints,
    total: int,
    seen: Ints,
) -> int:
    row = forest.nodes[node]
    depth, least = int(row["depth"]), int(row["keyword"])
    first = int(row["start"])
    seen[0] += row["count"]
    for place in range(first, first + int(row["count"])):
        slot = int(forest.members[place])
        if _is_affected(forest, slot, object_id, x_m, y_m, words, depth, least):
            total = _keep(forest, slot, found, total)
    return total


@leaf
def _scan_entries(
    forest: Forest,
    node: int,
    first: int,
    count: int,
    away_m: float,
    others: int,
    object_id: int,
    x_m: float,
    y_m: float,
    words: KeywordIds,
    found: Ints,
    total: int,
    seen: Ints,
) -> int:
    """Test entries: those of a leaf, in decreasing order of their bounds, from that many metres away.

    Without cells there is no order, and `away_m` is minus infinity.

    What is clearly within its disc, and shares no keyword outside the combination, needs no verification.
    `others` is the signature of the object's keywords outside.
    """
    depth, least = int(forest.nodes[node]["depth"]), int(forest.nodes[node]["keyword"])
    distances = forest.distances[min(words.shape[0], SIZE_MAX)]
    for entry in range(first, first + count):
        row = forest.entries[entry]
        if row["bound_m"] < away_m:
            break
        is_loose = bool(row["is_loose"])
        reach = float(row["reach_m"])
        weight = float(row["weight_m"])
        radius = reach - weight * distances[0 if is_loose else depth, row["similarity"], row["size"]]
        error = OUTWARD * (abs(reach) + weight)
        x, y = float(row["x_m"]), float(row["y_m"])
        dx, dy = x - x_m, y - y_m
        if radius + error < 0.0 or dx * dx + dy * dy > (radius + error) * (radius + error):
            continue
        seen[0] += 1
        slot = int(forest.entry_slots[entry])
        is_certain = False
        if row["others"] & others == 0 and not is_loose and not row["is_region"]:
            inner = radius - error - 2.0 * COORDINATE_ERROR * (abs(x) + abs(y))
            is_certain = inner > 0.0 and dx * dx + dy * dy < inner * inner
        if is_certain or _is_affected(
            forest, slot, object_id, x_m, y_m, words, depth, least if is_loose else _ALL
        ):
            total = _keep(forest, slot, found, total)
    return total


@leaf
def _search_cells(
    forest: Forest,
    node: int,
    others: int,
    object_id: int,
    x_m: float,
    y_m: float,
    words: KeywordIds,
    found: Ints,
    total: int,
    stack: Slots,
    seen: Ints,
) -> int:
    number = _class_of(words.shape[0] - int(forest.nodes[node]["depth"]))
    stack[0] = forest.nodes[node]["cell"]
    size = 1
    while size > 0:
        size -= 1
        cell = int(stack[size])
        threshold = forest.threshold_m[cell, number]
        away = node_distance(forest.cells, cell, x_m, y_m)
        if threshold < 0.0 or away > threshold:
            continue
        first = int(forest.cells[cell]["first_child"])
        if first != NOTHING:
            for child in range(first, first + CHILDREN):
                stack[size] = child
                size += 1
        else:
            row = forest.cells[cell]
            total = _scan_entries(
                forest, node, int(row["start"]), int(row["count"]), away, others,
                object_id, x_m, y_m, words, found, total, seen,
            )  # fmt: skip
    return total


@kernel
def match(
    forest: Forest,
    walk: Walk,
    stack: Slots,
    object_ids: Ints,
    x_m: Floats,
    y_m: Floats,
    keyword_offsets: Ints,
    keyword_ids: KeywordIds,
    offsets: Ints,
    found: Ints,
    seen: Ints,
) -> int:
    """Write the matches of each object as CSR; return how many there are.

    Fills `offsets` (objects + 1) always and `found` as far as it goes; the caller retries with a larger
    `found` when the return value exceeds its length. `seen[0]` counts what was verified.
    """
    total = 0
    for i in range(object_ids.shape[0]):
        offsets[i] = total
        words = keyword_ids[keyword_offsets[i] : keyword_offsets[i + 1]]
        start(walk, words)
        while True:
            node = next_node(forest, walk, words)
            if node == NOTHING:
                break
            row = forest.nodes[node]
            if row["is_bucket"]:
                total = _scan_members(
                    forest, node, object_ids[i], x_m[i], y_m[i], words, found, total, seen
                )
                continue
            others = others_signature(forest, node, words)
            if row["cell"] == NOTHING:
                total = _scan_entries(
                    forest, node, int(row["start"]), int(row["entry_count"]), -np.inf, others,
                    object_ids[i], x_m[i], y_m[i], words, found, total, seen,
                )  # fmt: skip
            else:
                total = _search_cells(
                    forest, node, others, object_ids[i], x_m[i], y_m[i], words, found, total, stack, seen
                )
            descend(walk, node)
    offsets[object_ids.shape[0]] = total
    return total
