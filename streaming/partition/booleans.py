"""Converts the boolean subscriptions of a block to the form that the matcher takes."""

from __future__ import annotations

import numpy as np

from engine.boolean.layout import CIRCLE, RECTANGLE, BooleanSpecs, Ranges
from engine.polygons import Rings
from engine.windows import Lasts
from index.batches import Boxes, Ints, KeywordIds, KeywordLists
from safe_region.regions.region import RegionMode
from streaming.arrays.blocks import Subscriptions


def boolean_specs(block: Subscriptions, rows: Ints, words: KeywordIds, lasts: Lasts) -> BooleanSpecs:
    """Return the specs of some rows of a block. O(keywords log keywords).

    Parameters
    ----------
    block, rows
        The subscriptions.
    words
        Numbers of the block's keywords.
    lasts
        The windows of the subscriptions.
    """
    offsets, places = block.places(rows)
    owners = np.repeat(np.arange(len(rows)), np.diff(offsets))
    marks, ids = block.marks[places].astype(np.int64), words[places]
    order = np.lexsort((ids, marks, owners))
    owners, marks, ids = owners[order], marks[order], ids[order]
    clauses = marks // 2
    is_first = np.ones(len(owners), dtype=np.bool_)
    is_first[1:] = (owners[1:] != owners[:-1]) | (clauses[1:] != clauses[:-1])
    clause = np.cumsum(is_first) - 1
    count = int(is_first.sum())
    is_excluded = marks % 2 == 1
    required, excluded = (
        KeywordLists(_offsets(clause[which], count), ids[which]) for which in (~is_excluded, is_excluded)
    )
    boxes = Boxes(*(getattr(block, name)[rows] for name in ("x1_m", "y1_m", "x2_m", "y2_m")))
    is_circle = block.radius_m[rows] > 0.0
    nothing, start = np.empty(0), np.zeros(len(rows) + 1, dtype=np.int64)
    ranges = Ranges(
        np.where(is_circle, CIRCLE, RECTANGLE).astype(np.int8),
        np.zeros(len(rows), dtype=np.bool_),
        block.x_m[rows],
        block.y_m[rows],
        block.radius_m[rows],
        boxes,
        Rings(start, np.zeros(1, dtype=np.int64), nothing, nothing),
    )
    region = np.full(len(rows), int(RegionMode.ANCHORED), dtype=np.int8)
    return BooleanSpecs(_offsets(owners[is_first], len(rows)), required, excluded, ranges, region, lasts)


def _offsets(owners: Ints, count: int) -> Ints:
    """Return where the range of each owner starts, for owners in increasing order."""
    found: Ints = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=count))]).astype(np.int64)
    return found
