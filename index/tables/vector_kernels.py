"""Keyword sets as vectors of unit length, and the exact test for candidates of their bounds.

The weight of a keyword in a set is the root of its fraction of the set's sum of squares. The product of
two vectors is the set-cosine, or with weights the tf-idf cosine. Jaccard <= Dice <= set-cosine holds for
any two sets, so the product bounds each similarity from above.

Keywords have one order for all sets: by decreasing square, that is, rare ones first. Those of equal
squares are in the order of decreasing id, since a vocabulary numbers keywords in order of first
occurrence, and frequent ones tend to occur early. Within a set weights never increase along it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from index.batches import Floats, Ints, KeywordIds
from index.tables.selection_kernels import is_less
from safe_region.jit import array_leaf, leaf
from safe_region.scoring.kernels import nearest_length, norm_of, text_distance

Rows = npt.NDArray[Any]

SLACK = 1e-12
"""Relative margin of bounds: four orders of magnitude above the rounding error of their inputs."""


class Vector(NamedTuple):
    """Arrays for the keywords of a set, in their order."""

    words: KeywordIds
    weights: Floats  # with a 0 after them
    sums: Floats  # of the weights from here on, with a 0 after them


def new_vector(count: int) -> Vector:
    """Return arrays for this many keywords."""
    return Vector(np.empty(count, dtype=np.int32), np.empty(count + 1), np.empty(count + 1))


@leaf
def comes_before(one: int, other: int, squares: Floats) -> bool:
    """Return whether a keyword comes before another in the order."""
    return bool(squares[one] > squares[other] or (squares[one] == squares[other] and one > other))


@leaf
def write_vector(
    vector: Vector, words: KeywordIds, squares: Floats, uses: npt.NDArray[np.int32], norm2: float
) -> int:
    """Write the keywords of a set that any subscription has; return their number. O(words^2) at worst."""
    count = 0
    for word in words:
        if not 0 <= word < uses.shape[0] or uses[word] == 0:
            continue
        place = count
        while place > 0 and comes_before(word, vector.words[place - 1], squares):
            vector.words[place] = vector.words[place - 1]
            place -= 1
        vector.words[place] = word
        count += 1
    vector.weights[count] = 0.0
    vector.sums[count] = 0.0
    for place in range(count - 1, -1, -1):
        weight = math.sqrt(squares[vector.words[place]] / norm2)
        vector.weights[place] = weight
        vector.sums[place] = vector.sums[place + 1] + weight
    return count


class Arrival(NamedTuple):
    """An object, prepared for the test."""

    object_id: int
    x_m: float
    y_m: float
    words: KeywordIds
    norm2: float


class Arrivals(NamedTuple):
    """A batch of objects, as kernels take it.

    All kernels that match vectors take this type: numba is slow to distinguish named tuples of similar
    fields.
    """

    ids: Ints
    x_m: Floats
    y_m: Floats
    keyword_offsets: Ints
    keyword_ids: KeywordIds
    norm2: Floats


@array_leaf
def arrival_at(arrivals: Arrivals, i: int) -> Arrival:
    """Return one object of a batch."""
    words = arrivals.keyword_ids[arrivals.keyword_offsets[i] : arrivals.keyword_offsets[i + 1]]
    return Arrival(arrivals.ids[i], arrivals.x_m[i], arrivals.y_m[i], words, arrivals.norm2[i])


@leaf
def is_affected(rows: Rows, slot: int, pool: KeywordIds, squares: Floats, arrival: Arrival) -> bool:
    """Return whether an object matches the subscription in a slot: the definition, in float64."""
    row = rows[slot]
    words = arrival.words
    common = 0.0
    i = int(row["keyword_start"])
    end = i + int(row["keyword_count"])
    j = 0
    while i < end and j < words.shape[0]:
        if pool[i] == words[j]:
            common += squares[pool[i]]
            i += 1
            j += 1
        elif pool[i] < words[j]:
            i += 1
        else:
            j += 1
    if common == 0.0:
        return False
    similarity = row["similarity"]
    left = norm_of(similarity, row["keyword_count"], row["norm2"])
    right = norm_of(similarity, words.shape[0], arrival.norm2)
    share = row["weight_m"] * text_distance(similarity, common, left, right)
    nearest = nearest_length(row["x_m"] - arrival.x_m, row["y_m"] - arrival.y_m, row["radius_m"], share)
    return is_less(nearest, arrival.object_id, row["reach_m"], row["reach_id"])
