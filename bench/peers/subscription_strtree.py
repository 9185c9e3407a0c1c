"""A subscription index with a geometry library: shapely's STRtree of the largest discs.

The disc around the anchor whose radius is the reach contains every object that can match; the tree has
its box. The subscriptions that a query hits are verified by keywords and by the exact rule, in numpy.
Subscriptions with infinite reaches are stored separately and verified for every object.

Operations: insert, move and remove O(1) a subscription, but the tree, which is immutable, is rebuilt
before the next match, O(n log n); match O(boxes hit) an object.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import shapely

from bench.peers.box_tree import BoxTree
from index.batches import Boxes, Floats, InterestBatch, Ints, KeywordIds, Matches, ObjectBatch, ReachBatch
from index.naive.layout import SUBSCRIPTION_DTYPE
from index.tables.slots import Slots
from safe_region.scoring.formulas import Similarity

_OUTWARD = 1.0 + 1e-9
_OUTWARD_M = 1e-6
"""Boxes exceed discs by more than rounding errors."""
_COORDINATES = ("x_m", "y_m", "radius_m", "reach_m", "reach_id")


class SubscriptionStrtree(BoxTree):
    """See `index.contracts.SubscriptionIndex`."""

    def __init__(self) -> None:
        super().__init__(SUBSCRIPTION_DTYPE)

    def boxes(self, used: Slots) -> tuple[Slots, Boxes]:
        """Return the subscriptions with a finite reach, and the boxes of their discs."""
        found = used[np.isfinite(self.table.rows["reach_m"][used])]
        rows = self.table.rows[found]
        half_m = (rows["radius_m"] + rows["reach_m"]) * _OUTWARD + _OUTWARD_M
        x_m, y_m = rows["x_m"], rows["y_m"]
        return found, Boxes(x_m - half_m, y_m - half_m, x_m + half_m, y_m + half_m)

    def insert(self, reaches: ReachBatch, interests: InterestBatch) -> None:
        """Add subscriptions."""
        columns = {name: getattr(reaches, name) for name in _COORDINATES}
        columns |= {"weight_m": interests.weight_m, "similarity": interests.similarity}
        self.table.append(reaches.ids, interests.keywords, columns)
        self.is_stale = True

    def move(self, reaches: ReachBatch) -> None:
        """Replace the places and reaches of subscriptions."""
        slots = self.table.slots(reaches.ids)
        for name in _COORDINATES:
            self.table.rows[name][slots] = getattr(reaches, name)
        self.is_stale = True

    def remove(self, ids: Ints) -> None:
        """Remove subscriptions."""
        self.table.remove(ids)
        self.is_stale = True

    def match(self, objects: ObjectBatch) -> Matches:
        """Find the subscriptions that each object affects."""
        tree = self.tree()
        offsets = np.zeros(len(objects) + 1, dtype=np.int64)
        found: list[Ints] = [np.empty(0, dtype=np.int64)]
        for i in range(len(objects) if len(self) else 0):
            hits = tree.query(shapely.Point(objects.x_m[i], objects.y_m[i]))
            slots = np.concatenate([self.boxed[hits], self.apart])
            self.candidate_count += len(slots)
            found.append(
                self._verified(
                    slots,
                    int(objects.ids[i]),
                    float(objects.x_m[i]),
                    float(objects.y_m[i]),
                    objects.keywords.row(i),
                )
            )
            offsets[i + 1] = offsets[i] + len(found[-1])
        return Matches(offsets, np.concatenate(found))

    def observe(self, objects: ObjectBatch) -> None:
        """Do nothing: this index does not learn."""

    def _verified(self, slots: Slots, object_id: int, x_m: float, y_m: float, words: KeywordIds) -> Ints:
        """Return the subscriptions that share a keyword and whose length is below their reach."""
        common = self._common(slots, words)
        slots, common = slots[common > 0], common[common > 0]
        rows = self.table.rows[slots]
        distances = _text_distances(rows["similarity"], common, rows["keyword_count"], len(words))
        dx, dy = rows["x_m"] - x_m, rows["y_m"] - y_m
        away = np.sqrt(dx * dx + dy * dy) - rows["radius_m"]
        nearest = np.maximum(0.0, away) + rows["weight_m"] * distances
        tied = (nearest == rows["reach_m"]) & (object_id < rows["reach_id"])
        found: Ints = rows["id"][(nearest < rows["reach_m"]) | tied]
        return found

    def _common(self, slots: Slots, words: KeywordIds) -> Ints:
        """Count the keywords that subscriptions share with an object."""
        starts = self.table.rows["keyword_start"][slots]
        counts = self.table.rows["keyword_count"][slots].astype(np.int64)
        ends = np.cumsum(counts)
        places = np.repeat(starts - ends + counts, counts) + np.arange(counts.sum())
        is_wanted = np.isin(self.table.pool[places], words)
        wanted = np.concatenate([[0], np.cumsum(is_wanted)])
        found: Ints = wanted[ends] - wanted[ends - counts]
        return found


def _text_distances(
    similarity: npt.NDArray[np.int8], common: Ints, left: npt.NDArray[np.int32], right: int
) -> Floats:
    """Return `scoring.text_distance` of arrays."""
    jaccard = 1.0 - common / (left + right - common)
    dice = 1.0 - 2.0 * common / (left + right)
    cosine = 1.0 - common / np.sqrt((left * right).astype(np.float64))
    kinds = [similarity == Similarity.DICE, similarity == Similarity.COSINE]
    found: Floats = np.select(kinds, [dice, cosine], jaccard)
    return found
