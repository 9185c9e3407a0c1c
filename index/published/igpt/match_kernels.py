"""Finding the subscriptions that a new object affects: algorithm 1, term at a time in each leaf.

As printed the algorithm loses results: if a candidate falls short at a later common keyword (lines 12, 16
and 21), its sum R[s] lacks that keyword, and lines 27 and 29 decide by too small a similarity. The
following is sound:

* If a subscription matches, then at the first common keyword no bound on the remaining keywords of either
  falls short: the bounds of groups, prefixes and theorem 2 apply to all common keywords.
* So a subscription that falls short at the first keyword where it is met, whichever that is, cannot
  match. If an earlier keyword was skipped, that had excluded it already.
* Once it is a candidate, the remaining keywords alone prove nothing. Theorem 2 does, with all common
  keywords so far, as long as each keyword at which it was met is adjacent to the one before, in the
  subscription or in the object, so that there can be none in between. Skipped keywords come last, except
  for rounding, since the remainder decreases from keyword to keyword. At the end it is verified, by the
  definition.
"""

from __future__ import annotations

from typing import NamedTuple

from index.batches import Ints
from index.published.igpt import layout as L
from index.published.igpt.bound_kernels import (
    is_cell_too_far,
    is_in_cell,
    needed_similarity,
    spatial_factor,
)
from index.published.igpt.layout import Row, Slots, Tree
from index.published.igpt.list_kernels import key_of, list_of
from index.tables.id_map_kernels import home_cell
from index.tables.prefetch_kernels import prefetch
from index.tables.quad_kernels import node_distance
from index.tables.vector_kernels import (
    Arrival,
    Arrivals,
    Vector,
    arrival_at,
    is_affected,
    write_vector,
)
from safe_region.jit import kernel, leaf

CANDIDATES = 0
"""In `seen`: subscriptions that were verified."""
VISITED = 1
"""In `seen`: entries that were tested."""
SEEN_SIZE = 2

_AHEAD = 64 // 40 + 1
"""Entries from one prefetched entry to the next: a cache line has fewer."""


class Scratch(NamedTuple):
    """Scratch for one object."""

    vector: Vector
    stack: Slots
    heads: Slots  # the list of each keyword in a leaf
    groups: Slots  # the groups to scan in a leaf
    numbers: Slots  # their keywords
    candidates: Slots


class Visit(NamedTuple):
    """An object at a leaf."""

    number: int  # of the keyword in the object's order
    factor: float  # SSimUBout
    away_m: float  # distance to the leaf
    is_inside: bool
    stamp: int


@leaf
def _is_skipped(tree: Tree, entry: Row, vector: Vector, visit: Visit, so_far: float) -> bool:
    """Return whether a subscription cannot match an object, given the sum of earlier common keywords."""
    weight = float(entry["weight"])
    rest = float(entry["rest"])
    here = vector.weights[visit.number]
    away = 0.0 if visit.is_inside else visit.away_m + float(entry["inner_m"])
    factor = spatial_factor(tree, away)
    needed = needed_similarity(float(entry["kscore"]), float(entry["alpha"]), factor) - so_far
    # Theorem 1: the keyword is not in the prefix.
    if here * (weight + rest) < needed:
        return True
    # Theorem 2 and equation 5.
    unseen = min(
        rest * vector.weights[visit.number + 1],
        vector.sums[visit.number + 1] * float(entry["next_weight"]),
    )
    return bool(weight * here + unseen < needed)


@leaf
def _mark(tree: Tree, entry: Row, vector: Vector, visit: Visit) -> bool:
    """Record that a subscription was not skipped; return whether it became a candidate by this."""
    mark = tree.marks[entry["slot"]]
    here = float(entry["weight"]) * vector.weights[visit.number]
    if mark["stamp"] != visit.stamp:
        mark["stamp"] = visit.stamp
        mark["state"] = L.OPEN
        mark["similarity"] = here
        mark["place"] = entry["place"]
        mark["number"] = visit.number
        return True
    if mark["state"] != L.OPEN:
        return False
    if mark["place"] + 1 != entry["place"] and mark["number"] + 1 != visit.number:
        mark["state"] = L.GAPPED
    elif _is_skipped(tree, entry, vector, visit, float(mark["similarity"])):
        mark["state"] = L.SKIPPED
    else:
        mark["similarity"] += here
        mark["place"] = entry["place"]
        mark["number"] = visit.number
    return False


@leaf
def _scan_group(tree: Tree, group: int, scratch: Scratch, visit: Visit, count: int, seen: Ints) -> int:
    """Scan a group; return the new number of candidates."""
    row = tree.groups[group]
    start = int(row["start"])
    end = start + int(row["count"])
    left = scratch.vector.sums[visit.number]
    for place in range(start, end):
        entry = tree.entries[place]
        if tree.settings.is_grouped:
            # Theorem 4: the same holds for all following entries.
            alpha = float(entry["later_alpha"])
            needed = needed_similarity(float(entry["kscore"]), alpha, visit.factor)
            if float(entry["later_weight"]) * left < needed:
                end = place
                break
        if not _is_skipped(tree, entry, scratch.vector, visit, 0.0) and _mark(
            tree, entry, scratch.vector, visit
        ):
            scratch.candidates[count] = entry["slot"]
            count += 1
    seen[VISITED] += end - start
    return count


@leaf
def _is_group_skipped(row: Row, left: float, factor: float) -> bool:
    """Return whether no subscription in a group can be affected (theorem 3)."""
    needed = needed_similarity(float(row["kscore"]), float(row["alpha"]), factor)
    return bool(float(row["weight"]) * left < needed)


@leaf
def _open_lists(tree: Tree, cell: int, scratch: Scratch, count: int) -> None:
    """Look up the lists of an object's keywords in a leaf, all at once."""
    mask = tree.list_keys.shape[0] - 1
    words = scratch.vector.words
    for number in range(count):
        home = home_cell(key_of(cell, words[number]), mask)
        prefetch(tree.list_keys, home)
        prefetch(tree.list_values, home)
    for number in range(count):
        head = list_of(tree, cell, words[number])
        scratch.heads[number] = head
        if head != L.NOTHING:
            prefetch(tree.groups, head)


@leaf
def _choose_groups(tree: Tree, scratch: Scratch, count: int, factor: float) -> int:
    """Choose the groups to scan of the lists in a leaf; return their number."""
    size = 0
    for number in range(count):
        left = scratch.vector.sums[number]
        group = int(scratch.heads[number])
        while group != L.NOTHING:
            row = tree.groups[group]
            if not tree.settings.is_grouped or not _is_group_skipped(row, left, factor):
                scratch.groups[size] = group
                scratch.numbers[size] = number
                size += 1
                start = int(row["start"])
                for ahead in range(0, int(row["count"]), _AHEAD):
                    prefetch(tree.entries, start + ahead)
            group = int(row["next"])
    return size


@leaf
def _scan_leaf(
    tree: Tree, cell: int, arrival: Arrival, scratch: Scratch, count: int, stamp: int, seen: Ints
) -> int:
    """Scan the lists of an object's keywords in a leaf; return the new number of candidates."""
    is_inside = is_in_cell(tree, cell, arrival.x_m, arrival.y_m)
    away = node_distance(tree.cells, cell, arrival.x_m, arrival.y_m)
    factor = spatial_factor(tree, away)
    _open_lists(tree, cell, scratch, count)
    candidate_count = 0
    for i in range(_choose_groups(tree, scratch, count, factor)):
        visit = Visit(int(scratch.numbers[i]), factor, away, is_inside, stamp)
        candidate_count = _scan_group(tree, int(scratch.groups[i]), scratch, visit, candidate_count, seen)
    return candidate_count


@leaf
def _verify(
    tree: Tree, arrival: Arrival, candidates: Slots, count: int, found: Ints, total: int, seen: Ints
) -> int:
    """Test candidates that were not excluded; return the new number of matches."""
    for i in range(count):
        slot = candidates[i]
        if tree.marks[slot]["state"] == L.SKIPPED:
            continue
        seen[CANDIDATES] += 1
        if is_affected(tree.subscriptions, slot, tree.pool, tree.squares, arrival):
            if total < found.shape[0]:
                found[total] = tree.subscriptions[slot]["id"]
            total += 1
    return total


@leaf
def _match_one(
    tree: Tree, arrival: Arrival, scratch: Scratch, found: Ints, total: int, seen: Ints
) -> int:
    """Find the subscriptions that an object affects; return the new number of matches."""
    count = write_vector(scratch.vector, arrival.words, tree.squares, tree.uses, arrival.norm2)
    tree.meta[L.STAMP] += 1
    stamp = int(tree.meta[L.STAMP])
    scratch.stack[0] = L.ROOT
    size = 1 if count > 0 else 0
    while size > 0:
        size -= 1
        cell = int(scratch.stack[size])
        if tree.settings.is_grouped and is_cell_too_far(tree, cell, arrival.x_m, arrival.y_m):
            continue
        first = int(tree.cells[cell]["first_child"])
        if first != L.NOTHING:
            for child in range(first, first + L.CHILDREN):
                scratch.stack[size] = child
                size += 1
        elif tree.cells[cell]["count"] > 0:
            candidates = _scan_leaf(tree, cell, arrival, scratch, count, stamp, seen)
            total = _verify(tree, arrival, scratch.candidates, candidates, found, total, seen)
    return total


@kernel
def match(
    tree: Tree, arrivals: Arrivals, scratch: Scratch, row: int, offsets: Ints, found: Ints, seen: Ints
) -> int:
    """Write the matches of objects from a row on, as CSR; return the first that is not done.

    `seen` counts the tests for the objects that are done.
    """
    for i in range(row, arrivals.ids.shape[0]):
        arrival = arrival_at(arrivals, i)
        candidates, visited = seen[CANDIDATES], seen[VISITED]
        total = _match_one(tree, arrival, scratch, found, int(offsets[i]), seen)
        offsets[i + 1] = total
        if total > found.shape[0]:
            seen[CANDIDATES] = candidates
            seen[VISITED] = visited
            return i
    return int(arrivals.ids.shape[0])
