"""Take consecutive rows of batches, and rows in any order."""

from __future__ import annotations

import numpy as np

from index.batches import InterestBatch, Ints, KeywordLists, ObjectBatch, ReachBatch


def keyword_rows(lists: KeywordLists, rows: Ints) -> KeywordLists:
    """Take rows of keyword lists."""
    counts = np.diff(lists.offsets)[rows]
    offsets = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum(counts, out=offsets[1:])
    places = np.repeat(lists.offsets[rows] - offsets[:-1], counts) + np.arange(offsets[-1])
    return KeywordLists(offsets, lists.ids[places])


def keyword_part(lists: KeywordLists, start: int, stop: int) -> KeywordLists:
    """Take consecutive keyword lists."""
    offsets = lists.offsets[start : stop + 1]
    return KeywordLists(offsets - offsets[0], lists.ids[offsets[0] : offsets[-1]])


def object_part(objects: ObjectBatch, start: int, stop: int) -> ObjectBatch:
    """Take consecutive objects."""
    return ObjectBatch(
        objects.ids[start:stop],
        objects.x_m[start:stop],
        objects.y_m[start:stop],
        keyword_part(objects.keywords, start, stop),
        None if objects.boxes is None else objects.boxes.part(np.arange(start, stop)),
    )


def interest_part(interests: InterestBatch, start: int, stop: int) -> InterestBatch:
    """Take consecutive interests."""
    return InterestBatch(
        interests.weight_m[start:stop],
        interests.similarity[start:stop],
        keyword_part(interests.keywords, start, stop),
    )


def reach_part(reaches: ReachBatch, start: int, stop: int) -> ReachBatch:
    """Take consecutive reaches."""
    return ReachBatch(
        reaches.ids[start:stop],
        reaches.x_m[start:stop],
        reaches.y_m[start:stop],
        reaches.radius_m[start:stop],
        reaches.reach_m[start:stop],
        reaches.reach_id[start:stop],
    )
