"""Who is affected by a new object: algorithm 1, term at a time in each leaf.

As printed the algorithm loses results: a keyword that is skipped adds nothing to R[s], and when another
shared keyword follows, R[s] is too small. What is sound:

* If a subscription matches, then at the first keyword that they share no bound of what is left in either
  falls short: what groups, prefixes and theorem 2 say there is about all that they share.
* So a subscription is ruled out for good if it is met for the first time, at whichever keyword, and falls
  short there. If an earlier keyword was skipped, that had ruled it out already.
* Once it is a candidate, prefixes say nothing, and theorem 2 only while its similarity so far is known:
  while each of its keywords that was met is next to the one before, in the subscription or in the object,
  so that they can share none in between. Then it is verified, by the definition.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from index.baselines.igpt.bound_kernels import (
    is_cell_too_far,
    is_in_cell,
    needed_similarity,
    spatial_similarity,
)
from index.baselines.igpt.layout import (
    CHILDREN,
    GAPPED,
    NOTHING,
    OPEN,
    ROOT,
    SKIPPED,
    STAMP,
    Row,
    Slots,
    Tree,
)
from index.baselines.igpt.list_kernels import list_of
from index.batches import Floats, Ints, KeywordIds
from index.tables.quad_kernels import node_distance
from index.tables.vector_kernels import Arrival, Vector, is_affected, write_vector
from safe_region.jit import kernel, leaf

CANDIDATES = 0
"""In `seen`: subscriptions that were verified."""
VISITED = 1
"""In `seen`: entries that were looked at."""
SEEN_SIZE = 2


class Asked(NamedTuple):
    """A batch of objects, as kernels take it."""

    ids: Ints
    x_m: Floats
    y_m: Floats
    keyword_offsets: Ints
    keyword_ids: KeywordIds
    norm2: Floats


class Scratch(NamedTuple):
    """Room for what belongs to one object."""

    vector: Vector
    stack: Slots
    candidates: Slots


class Visit(NamedTuple):
    """An object at a leaf."""

    number: int  # of the keyword in the object's order
    similarity: float  # SSimUBout
    away_m: float  # distance to the leaf
    is_inside: bool
    stamp: int


@leaf
def _is_ruled_out(tree: Tree, entry: Row, vector: Vector, visit: Visit) -> bool:
    """Whether a subscription cannot match an object, after one more keyword that they share."""
    alpha = float(entry["alpha"])
    weight = float(entry["weight"])
    rest = float(entry["rest"])
    number = visit.number
    spatial = 1.0 if visit.is_inside else spatial_similarity(tree, visit.away_m + float(entry["inner_m"]))
    needed = needed_similarity(float(entry["kscore"]), alpha, spatial)
    mark = tree.marks[entry["slot"]]
    is_new = mark["stamp"] != visit.stamp
    if is_new:
        mark["stamp"] = visit.stamp
        mark["similarity"] = 0.0
        mark["state"] = OPEN
        # Theorem 1: the keyword is not in the prefix.
        if vector.weights[number] * (weight + rest) < needed:
            mark["state"] = SKIPPED
            return True
    elif mark["place"] + 1 != entry["place"] and mark["number"] + 1 != number:
        mark["state"] = GAPPED
        return False
    # Theorem 2 and equation 5.
    so_far = float(mark["similarity"]) + weight * vector.weights[number]
    unseen = min(
        rest * vector.weights[number + 1], vector.sums[number + 1] * float(entry["next_weight"])
    )
    mark["similarity"] = so_far
    mark["place"] = entry["place"]
    mark["number"] = number
    if so_far + unseen < needed:
        mark["state"] = SKIPPED
        return True
    return False


@leaf
def _scan_group(
    tree: Tree, group: int, scratch: Scratch, visit: Visit, count: int, seen: Ints
) -> int:
    """Look at a group; return how many candidates there are now."""
    row = tree.groups[group]
    start = int(row["start"])
    left = scratch.vector.sums[visit.number]
    for place in range(start, start + int(row["count"])):
        entry = tree.entries[place]
        if tree.settings.is_grouped:
            # Theorem 4: the same holds of all that follow. Of the first entry, theorem 3.
            alpha = float(entry["later_alpha"])
            needed = needed_similarity(float(entry["kscore"]), alpha, visit.similarity)
            if float(entry["later_weight"]) * left < needed:
                break
        seen[VISITED] += 1
        mark = tree.marks[entry["slot"]]
        is_new = mark["stamp"] != visit.stamp
        if not is_new and mark["state"] != OPEN:
            continue
        if _is_ruled_out(tree, entry, scratch.vector, visit):
            continue
        if is_new:
            scratch.candidates[count] = entry["slot"]
            count += 1
    return count


@leaf
def _is_group_skipped(tree: Tree, group: int, left: float, similarity: float) -> bool:
    """Whether nobody in a group can be affected (theorem 3)."""
    row = tree.groups[group]
    needed = needed_similarity(float(row["kscore"]), float(row["alpha"]), similarity)
    return bool(float(row["weight"]) * left < needed)


@leaf
def _scan_leaf(
    tree: Tree, cell: int, arrival: Arrival, scratch: Scratch, count: int, stamp: int, seen: Ints
) -> int:
    """Look at the lists of an object's keywords in a leaf; return how many candidates there are."""
    vector = scratch.vector
    is_inside = is_in_cell(tree, cell, arrival.x_m, arrival.y_m)
    away = node_distance(tree.cells, cell, arrival.x_m, arrival.y_m)
    similarity = spatial_similarity(tree, away)
    candidate_count = 0
    for number in range(count):
        visit = Visit(number, similarity, away, is_inside, stamp)
        group = list_of(tree, cell, vector.words[number])
        while group != NOTHING:
            if not tree.settings.is_grouped or not _is_group_skipped(
                tree, group, vector.sums[number], similarity
            ):
                candidate_count = _scan_group(tree, group, scratch, visit, candidate_count, seen)
            group = int(tree.groups[group]["next"])
    return candidate_count


@leaf
def _verify(
    tree: Tree, arrival: Arrival, candidates: Slots, count: int, found: Ints, total: int, seen: Ints
) -> int:
    """Test candidates that were not ruled out; return how many have been found."""
    for i in range(count):
        slot = candidates[i]
        if tree.marks[slot]["state"] == SKIPPED:
            continue
        seen[CANDIDATES] += 1
        row = tree.subscriptions[slot]
        if is_affected(row, tree.pool, tree.squares, arrival):
            if total < found.shape[0]:
                found[total] = row["id"]
            total += 1
    return total


@leaf
def _match_one(
    tree: Tree, arrival: Arrival, scratch: Scratch, found: Ints, total: int, seen: Ints
) -> int:
    """Find who is affected by an object; return how many have been found."""
    count = write_vector(scratch.vector, arrival.words, tree.squares, tree.uses, arrival.norm2)
    tree.meta[STAMP] += 1
    stamp = int(tree.meta[STAMP])
    scratch.stack[0] = ROOT
    size = 1 if count > 0 else 0
    while size > 0:
        size -= 1
        cell = int(scratch.stack[size])
        if tree.settings.is_grouped and is_cell_too_far(tree, cell, arrival.x_m, arrival.y_m):
            continue
        first = int(tree.cells[cell]["first_child"])
        if first != NOTHING:
            for child in range(first, first + CHILDREN):
                scratch.stack[size] = child
                size += 1
        elif tree.cells[cell]["count"] > 0:
            candidates = _scan_leaf(tree, cell, arrival, scratch, count, stamp, seen)
            total = _verify(tree, arrival, scratch.candidates, candidates, found, total, seen)
    return total


@kernel
def match(
    tree: Tree, asked: Asked, scratch: Scratch, row: int, offsets: Ints, found: Ints, seen: Ints
) -> int:
    """Write the matches of objects from a row on, as CSR; return the first that is not done.

    `seen` counts what was looked at for those that are.
    """
    for i in range(row, asked.ids.shape[0]):
        words = asked.keyword_ids[asked.keyword_offsets[i] : asked.keyword_offsets[i + 1]]
        arrival = Arrival(asked.ids[i], asked.x_m[i], asked.y_m[i], words, asked.norm2[i])
        candidates, visited = seen[CANDIDATES], seen[VISITED]
        total = _match_one(tree, arrival, scratch, found, int(offsets[i]), seen)
        offsets[i + 1] = total
        if total > found.shape[0]:
            seen[CANDIDATES] = candidates
            seen[VISITED] = visited
            return i
    return int(asked.ids.shape[0])
