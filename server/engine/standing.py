"""One subscription as the engine holds it: what it wants, where it is anchored, what its device has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from index.batches import InterestBatch, KeywordIds, KeywordLists, ReachBatch
from safe_region.frame import Point
from server.model import Reach, TopK


class Held(NamedTuple):
    """An object in a buffer: its length at the anchor and its text share, both in metres."""

    length_m: float
    r_m: float


_NOWHERE = Point(0.0, 0.0)
_NOTHING = Reach(0.0, 0)


@dataclass(slots=True)
class Standing:
    """State of one subscription.

    Invariant, unless parked: `buffer` holds exactly the live qualifying objects whose
    (length at the anchor, id) is below the reach.
    """

    handle: int
    spec: TopK
    keyword_ids: KeywordIds
    weight_m: float
    anchor: Point = _NOWHERE
    reach: Reach = _NOTHING
    buffer: dict[int, Held] = field(default_factory=dict)
    parked: bool = True
    """Parked: not evaluated, not indexed, nothing held, until its device speaks again."""


def reach_batch(standings: Sequence[Standing]) -> ReachBatch:
    """Return anchors and reaches as an index takes them."""
    return ReachBatch(
        np.array([standing.handle for standing in standings], dtype=np.int64),
        np.array([standing.anchor.x_m for standing in standings], dtype=np.float64),
        np.array([standing.anchor.y_m for standing in standings], dtype=np.float64),
        np.zeros(len(standings)),
        np.array([standing.reach.length_m for standing in standings], dtype=np.float64),
        np.array([standing.reach.object_id for standing in standings], dtype=np.int64),
    )


def interest_batch(standings: Sequence[Standing]) -> InterestBatch:
    """Return what subscriptions look for, as an index takes it."""
    return InterestBatch(
        np.array([standing.weight_m for standing in standings], dtype=np.float64),
        np.array([standing.spec.similarity for standing in standings], dtype=np.int8),
        KeywordLists.of([standing.keyword_ids for standing in standings]),
    )
