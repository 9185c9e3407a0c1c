"""Scans of the naive indexes."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from index.batches import Floats, Ints, KeywordIds
from index.tables.buckets.question_kernels import Answered, Queries
from index.tables.selection_kernels import drain, is_less, offer
from safe_region.jit import kernel, leaf
from safe_region.scoring.kernels import (
    common_count,
    common_square,
    length,
    nearest_length,
    norm_of,
    sum_of,
    text_distance,
)

Rows = npt.NDArray[Any]


@leaf
def _weigh(words: KeywordIds, squares: Floats, weighed: Floats) -> None:
    """Write the squared weight of each keyword, from weights by keyword id."""
    for i in range(words.shape[0]):
        weighed[i] = squares[words[i]]


@kernel
def match(
    subscriptions: Rows,
    pool: KeywordIds,
    object_ids: Ints,
    x_m: Floats,
    y_m: Floats,
    keyword_offsets: Ints,
    keyword_ids: KeywordIds,
    norm2: Floats,
    squares: Floats,
    weighed: Floats,
    offsets: Ints,
    found: Ints,
) -> int:
    """Write the matches of each object as CSR; return their number.

    `squares` has the squared weight of each keyword by its id; `weighed` is scratch for those of a
    subscription.

    Fills `offsets` (objects + 1) always and `found` up to its length; the caller retries with a larger
    `found` when the return value exceeds its length. O(objects * subscriptions).
    """
    total = 0
    for i in range(object_ids.shape[0]):
        offsets[i] = total
        words = keyword_ids[keyword_offsets[i] : keyword_offsets[i + 1]]
        for slot in range(subscriptions.shape[0]):
            row = subscriptions[slot]
            start = row["keyword_start"]
            count = row["keyword_count"]
            _weigh(pool[start : start + count], squares, weighed)
            common = common_square(pool[start : start + count], weighed, words)
            if common == 0.0:
                continue
            similarity = row["similarity"]
            left = norm_of(similarity, count, row["norm2"])
            right = norm_of(similarity, words.shape[0], norm2[i])
            share = row["weight_m"] * text_distance(similarity, common, left, right)
            nearest = nearest_length(row["x_m"] - x_m[i], row["y_m"] - y_m[i], row["radius_m"], share)
            if is_less(nearest, object_ids[i], row["reach_m"], row["reach_id"]):
                if total < found.shape[0]:
                    found[total] = row["id"]
                total += 1
    offsets[object_ids.shape[0]] = total
    return total


@kernel
def best(
    objects: Rows,
    pool: KeywordIds,
    queries: Queries,
    answered: Answered,
) -> None:
    """Write the best objects of each interest. O(interests * objects)."""
    for i in range(queries.weight_m.shape[0]):
        first, last = queries.keyword_offsets[i], queries.keyword_offsets[i + 1]
        words, weighed = queries.keyword_ids[first:last], queries.squares[first:last]
        similarity = queries.similarity[i]
        left = norm_of(similarity, words.shape[0], sum_of(weighed))
        begin, end = answered.starts[i], answered.starts[i + 1]
        kept_lengths = answered.lengths[begin:end]
        kept_ids = answered.ids[begin:end]
        kept_shares = answered.shares[begin:end]
        size = 0
        for slot in range(objects.shape[0]):
            row = objects[slot]
            start = row["keyword_start"]
            count = row["keyword_count"]
            common = common_square(words, weighed, pool[start : start + count])
            if common == 0.0 or row["id"] < queries.first_id[i]:
                continue
            right = norm_of(similarity, count, row["norm2"])
            share = queries.weight_m[i] * text_distance(similarity, common, left, right)
            here = length(queries.x_m[i] - row["x_m"], queries.y_m[i] - row["y_m"], share)
            if here <= queries.bound_m[i]:
                size = offer(kept_lengths, kept_ids, kept_shares, size, here, row["id"], share)
        drain(kept_lengths, kept_ids, kept_shares, size)
        answered.sizes[i] = size


@kernel
def match_clauses(
    clauses: Rows,
    pool: KeywordIds,
    x1_m: Floats,
    y1_m: Floats,
    x2_m: Floats,
    y2_m: Floats,
    keyword_offsets: Ints,
    keyword_ids: KeywordIds,
    offsets: Ints,
    found: Ints,
) -> int:
    """Write the clauses that match each object as CSR; return their number, as `match` does.

    O(objects * clauses).
    """
    total = 0
    for i in range(x1_m.shape[0]):
        offsets[i] = total
        words = keyword_ids[keyword_offsets[i] : keyword_offsets[i + 1]]
        for slot in range(clauses.shape[0]):
            row = clauses[slot]
            start = row["keyword_start"]
            count = row["keyword_count"]
            if (
                count == 0
                or row["x1_m"] > x2_m[i]
                or row["x2_m"] < x1_m[i]
                or row["y1_m"] > y2_m[i]
                or row["y2_m"] < y1_m[i]
                or common_count(pool[start : start + count], words) < count
            ):
                continue
            if total < found.shape[0]:
                found[total] = row["id"]
            total += 1
    offsets[x1_m.shape[0]] = total
    return total


@kernel
def within(
    objects: Rows,
    pool: KeywordIds,
    keyword_offsets: Ints,
    keyword_ids: KeywordIds,
    x1_m: Floats,
    y1_m: Floats,
    x2_m: Floats,
    y2_m: Floats,
    offsets: Ints,
    found: Ints,
) -> int:
    """Write the objects in each box with all its keywords as CSR; return their number, as `match` does.

    O(boxes * objects).
    """
    total = 0
    for i in range(x1_m.shape[0]):
        offsets[i] = total
        words = keyword_ids[keyword_offsets[i] : keyword_offsets[i + 1]]
        for slot in range(objects.shape[0] if words.shape[0] > 0 else 0):
            row = objects[slot]
            start = row["keyword_start"]
            count = row["keyword_count"]
            if (
                x1_m[i] <= row["x_m"] <= x2_m[i]
                and y1_m[i] <= row["y_m"] <= y2_m[i]
                and common_count(words, pool[start : start + count]) == words.shape[0]
            ):
                if total < found.shape[0]:
                    found[total] = row["id"]
                total += 1
    offsets[x1_m.shape[0]] = total
    return total


@kernel
def match_objects(
    objects: Rows,
    pool: KeywordIds,
    now_ms: int,
    keyword_offsets: Ints,
    keyword_ids: KeywordIds,
    x1_m: Floats,
    y1_m: Floats,
    x2_m: Floats,
    y2_m: Floats,
    offsets: Ints,
    found: Ints,
) -> int:
    """Write the live objects that each clause matches as CSR; return their number, as `match` does.

    O(clauses * objects).
    """
    total = 0
    for i in range(x1_m.shape[0]):
        offsets[i] = total
        words = keyword_ids[keyword_offsets[i] : keyword_offsets[i + 1]]
        for slot in range(objects.shape[0]):
            row = objects[slot]
            start = row["keyword_start"]
            count = row["keyword_count"]
            if (
                count == 0
                or row["expiry_ms"] <= now_ms
                or row["x1_m"] > x2_m[i]
                or row["x2_m"] < x1_m[i]
                or row["y1_m"] > y2_m[i]
                or row["y2_m"] < y1_m[i]
                or common_count(words, pool[start : start + count]) < words.shape[0]
            ):
                continue
            if total < found.shape[0]:
                found[total] = row["id"]
            total += 1
    offsets[x1_m.shape[0]] = total
    return total
