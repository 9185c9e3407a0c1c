"""Who is affected by a new object.

The combinations of its keywords that exist are walked to in the trie. In each group of such a combination
the text distance follows from the number of the object's keywords, so a quadtree search with one radius
an entry finds the candidates, which are then tested in full precision.
"""

from __future__ import annotations

import numpy as np

from index.batches import Floats, Ints, KeywordIds
from index.sq_plus_tree.cell_kernels import distance_to
from index.sq_plus_tree.layout import CHILDREN, CLASS_OFFSETS, CLASSES, NOTHING, TRIE_ROOT, Forest, Slots
from index.sq_plus_tree.trie_kernels import child
from index.tables.selection_kernels import is_less
from safe_region.jit import kernel, leaf
from safe_region.scoring_kernels import common_count, nearest_length, text_distance

_OUTWARD = 1e-6
_OFFSETS = np.array(CLASS_OFFSETS)


@leaf
def _class_of(beyond: int) -> int:
    """Class of an object with so many keywords beyond the combination."""
    number = CLASSES - 1
    while _OFFSETS[number] > beyond:
        number -= 1
    return number


@leaf
def _is_affected(
    forest: Forest, slot: int, object_id: int, x_m: float, y_m: float, words: KeywordIds, common: int
) -> bool:
    row = forest.subscriptions[slot]
    distance = text_distance(row["similarity"], common, row["keyword_count"], words.shape[0])
    share = row["weight_m"] * distance
    nearest = nearest_length(row["x_m"] - x_m, row["y_m"] - y_m, row["radius_m"], share)
    return is_less(nearest, object_id, row["reach_m"], row["reach_id"])


@leaf
def _scan(
    forest: Forest,
    start: int,
    count: int,
    distance: float,
    wanted: int,
    position: int,
    object_id: int,
    x_m: float,
    y_m: float,
    words: KeywordIds,
    found: Ints,
    total: int,
    seen: Ints,
) -> int:
    """Test a stretch of entries; add what is affected to `found`.

    `wanted` is how many keywords the combination has: a subscription counts only where that is all they
    share, so that it is found once. With 0, to be verified, and with an infinite reach the first keyword
    that they share counts; `position` is the place of the combination's last keyword in the object.
    """
    for entry in range(start, start + count):
        row = forest.entries[entry]
        reach = float(row["reach_m"])
        weight = float(row["weight_m"])
        radius = reach - weight * distance + _OUTWARD * (abs(reach) + weight)
        dx = float(row["x_m"]) - x_m
        dy = float(row["y_m"]) - y_m
        if radius < 0.0 or dx * dx + dy * dy > radius * radius:
            continue
        slot = row["slot"]
        seen[0] += 1
        begin = forest.subscriptions[slot]["keyword_start"]
        theirs = forest.pool[begin : begin + forest.subscriptions[slot]["keyword_count"]]
        common = common_count(theirs, words)
        if wanted > 0 and reach != np.inf:
            if common != wanted:
                continue
        elif common_count(theirs, words[:position]) > 0:
            continue
        if _is_affected(forest, slot, object_id, x_m, y_m, words, common):
            if total < found.shape[0]:
                found[total] = forest.subscriptions[slot]["id"]
            total += 1
    return total


@leaf
def _search_group(
    forest: Forest,
    group: int,
    position: int,
    object_id: int,
    x_m: float,
    y_m: float,
    words: KeywordIds,
    found: Ints,
    total: int,
    stack: Slots,
    seen: Ints,
) -> int:
    """Search one group; `position` is the place of the last keyword of its combination in the object."""
    row = forest.groups[group]
    size, common, similarity = row["size"], row["common"], row["similarity"]
    if common > 0:
        distance = text_distance(similarity, common, size, words.shape[0])
        number = _class_of(words.shape[0] - common)
    else:
        distance = text_distance(similarity, min(size, words.shape[0]), size, words.shape[0])
        number = _class_of(words.shape[0] - 1)
    if row["cell"] == NOTHING:
        return _scan(
            forest, row["start"], row["count"], distance, common, position,
            object_id, x_m, y_m, words, found, total, seen,
        )  # fmt: skip
    inner_x = min(max(x_m, forest.root[0] - forest.root[2]), forest.root[0] + forest.root[2])
    inner_y = min(max(y_m, forest.root[1] - forest.root[2]), forest.root[1] + forest.root[2])
    stack[0] = row["cell"]
    depth = 1
    while depth > 0:
        depth -= 1
        cell = stack[depth]
        threshold = forest.threshold_m[cell, number]
        if threshold < 0.0 or distance_to(forest, cell, inner_x, inner_y) > threshold:
            continue
        first = forest.cells[cell]["first_child"]
        if first != NOTHING:
            for quarter in range(CHILDREN):
                stack[depth] = first + quarter
                depth += 1
        else:
            leaf_row = forest.cells[cell]
            total = _scan(
                forest, leaf_row["start"], leaf_row["count"], distance, common, position,
                object_id, x_m, y_m, words, found, total, seen,
            )  # fmt: skip
    return total


@kernel
def match(
    forest: Forest,
    object_ids: Ints,
    x_m: Floats,
    y_m: Floats,
    keyword_offsets: Ints,
    keyword_ids: KeywordIds,
    offsets: Ints,
    found: Ints,
    path_nodes: Slots,
    path_places: Slots,
    stack: Slots,
    seen: Ints,
) -> int:
    """Write the matches of each object as CSR; return how many there are.

    Fills `offsets` (objects + 1) always and `found` as far as it goes; the caller retries with a larger
    `found` when the return value exceeds its length. `path_nodes` and `path_places` need room for one
    more than the longest combination; `seen[0]` counts the entries that were tested in full.
    """
    total = 0
    for i in range(object_ids.shape[0]):
        offsets[i] = total
        words = keyword_ids[keyword_offsets[i] : keyword_offsets[i + 1]]
        # Depth first through the combinations: at each level the place of the keyword to try next.
        path_nodes[0] = TRIE_ROOT
        path_places[0] = 0
        level = 0
        while level >= 0:
            place = path_places[level]
            if place >= words.shape[0] or forest.nodes[path_nodes[level]]["child_count"] == 0:
                level -= 1
                continue
            path_places[level] += 1
            node = child(forest, path_nodes[level], words[place])
            if node == NOTHING:
                continue
            group = forest.nodes[node]["first_group"]
            while group != NOTHING:
                total = _search_group(
                    forest, group, place, object_ids[i], x_m[i], y_m[i],
                    words, found, total, stack, seen,
                )  # fmt: skip
                group = forest.groups[group]["next"]
            level += 1
            path_nodes[level] = node
            path_places[level] = place + 1
    offsets[object_ids.shape[0]] = total
    return total
