"""The model of the server: objects, subscriptions, contents of commands and deltas. No wire types.

Types that are made by the ten thousands a second are named tuples: a frozen dataclass takes three times
as long.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from safe_region.earth.frame import Point
from safe_region.earth.shapes import ObjectArea, Range
from safe_region.regions.region import RegionMode
from safe_region.scoring.formulas import Similarity

_DELTA_BYTES = 400
_ENTRY_BYTES = 400
_DROP_BYTES = 100
_WORD_BYTES = 60
"""Approximate sizes of a delta and its parts in Python: bounds need no more."""


class NewObject(NamedTuple):
    """An object that a publisher posts. Keywords are normalised, sorted and unique once validated.

    An object with an area is at a point inside it once validated, whatever its position was before.
    """

    lon: float
    lat: float
    keywords: tuple[str, ...]
    ttl_ms: int
    payload: bytes = b""
    key: str = ""
    area: ObjectArea | None = None


class LiveObject(NamedTuple):
    """An accepted object. Alive while created_ms <= t < expiry_ms."""

    object_id: int
    lon: float
    lat: float
    point: Point
    keywords: tuple[str, ...]
    created_ms: int
    expiry_ms: int
    payload: bytes
    key: str
    """Qualified by the tenant, as keywords are."""
    area: ObjectArea | None = None
    owner: str = ""
    """Qualified name of the publisher; empty if it needs no identity."""

    def equals(self, new: NewObject) -> bool:
        """Return whether publishing `new` would change nothing but the time."""
        return (
            self.lon == new.lon
            and self.lat == new.lat
            and self.area == new.area
            and self.keywords == new.keywords
            and self.expiry_ms - self.created_ms == new.ttl_ms
            and self.payload == new.payload
        )


@dataclass(frozen=True, slots=True)
class Window:
    """The live objects that count: those of the last milliseconds, or the last n published."""

    duration_ms: int = 0
    count: int = 0


NO_WINDOW = Window()
"""All live objects count."""


class Spec:
    """The request of a subscription; its type is the kind."""

    __slots__ = ()

    window: Window
    region: RegionMode


@dataclass(frozen=True, slots=True)
class TopK(Spec):
    """The request of a top-k subscription. Keywords are normalised, sorted and unique."""

    keywords: tuple[str, ...]
    k: int
    alpha: float
    similarity: Similarity = Similarity.JACCARD
    region: RegionMode = RegionMode.ANCHORED
    window: Window = NO_WINDOW
    distance_scale_m: float = 0.0
    """The divisor of distances; 0 for the diagonal of the service area."""


class Clause(NamedTuple):
    """One way to match a boolean expression. Keywords are normalised, sorted and unique."""

    required: tuple[str, ...]
    excluded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Boolean(Spec):
    """The request of a boolean subscription: objects that match a clause, within a range."""

    clauses: tuple[Clause, ...]
    range: Range
    is_moving: bool
    """Whether the range moves with the device."""
    region: RegionMode = RegionMode.ANCHORED
    dwell_ms: int = 0
    """How long an object must match before it is in the result. The device applies it."""
    window: Window = NO_WINDOW


class Place(NamedTuple):
    """Position of a device, up to a margin, and its movement; NaN for unknown values."""

    lon: float
    lat: float
    margin_m: float = 0.0
    heading_deg: float = math.nan
    """Clockwise from north."""
    speed_mps: float = math.nan


class Cause(IntEnum):
    """Why a delta is sent. The numbers equal those on the wire."""

    SUBSCRIBED = 1
    REPORTED = 2
    PUBLISHED = 3
    RETRACTED = 4
    REPLACED = 5
    RESUMED = 6
    REWEIGHED = 7
    REFILLED = 8


class DropReason(IntEnum):
    """Why a device should forget an object. The numbers equal those on the wire."""

    OUT_OF_REACH = 1
    RETRACTED = 2
    REPLACED = 3
    OUT_OF_WINDOW = 4


class Reach(NamedTuple):
    """A lower bound on the (length at the anchor, id) of the objects that a device does not hold."""

    length_m: float
    object_id: int
    idf_generation: int = 0
    """The generation of the weights in text shares; 0 if keywords count alike."""


class Slack(NamedTuple):
    """How far beyond the range at the anchor a device holds all matches; see the proto."""

    slack_m: float
    too_many: bool


Bound = Reach | Slack


class Entry(NamedTuple):
    """An object in a buffer with its text share for that subscription, in metres."""

    item: LiveObject
    r_m: float


@dataclass(slots=True)
class Delta:
    """One change of the objects that a device holds for one subscription, from the engine."""

    handle: int
    """The engine's number of the subscription."""
    cause: Cause
    anchor: Point
    bound: Bound | None
    """None if the subscription is not evaluated: its device holds nothing."""
    time_ms: int
    add: list[Entry] = field(default_factory=list)
    drop: dict[int, DropReason] = field(default_factory=dict)
    snapshot: bool = False

    @property
    def size_bytes(self) -> int:
        """The approximate size in memory in bytes. O(objects)."""
        size = _DELTA_BYTES + _DROP_BYTES * len(self.drop)
        for item, _ in self.add:
            size += _ENTRY_BYTES + len(item.payload) + _WORD_BYTES * len(item.keywords)
        return size
