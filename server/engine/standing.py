"""One subscription as the engine holds it: what it wants, where it is anchored, what its device has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from index.batches import KeywordIds
from safe_region.frame import Point
from server.model import Reach, TopK


class Held(NamedTuple):
    """An object in a buffer: its length at the anchor and its text share, both in metres."""

    length_m: float
    r_m: float


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
    anchor: Point = Point(0.0, 0.0)
    reach: Reach = Reach(0.0, 0)
    buffer: dict[int, Held] = field(default_factory=dict)
    parked: bool = True
    """Parked: not evaluated, not indexed, nothing held, until its device speaks again."""
