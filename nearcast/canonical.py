"""Canonical forms of what apps and servers exchange: objects, specs, places.

Apps write the types of `nearcast.model`, with seconds, texts and any collection. The SDK converts them to
these types, with milliseconds and tuples, which the server uses, too. `nearcast.wire` converts these to
messages and back, and the checks of the server return them with normalised contents.

Types that are made by the ten thousands a second are named tuples: a frozen dataclass takes three times
as long.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from safe_region.earth.frame import Point
from safe_region.earth.shapes import ObjectArea, Range
from safe_region.regions.region import RegionMode
from safe_region.scoring.formulas import Similarity


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
    """Qualified by the tenant in the server, as keywords are."""
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

    region_modes: ClassVar[tuple[RegionMode, ...]]
    """Modes that subscriptions of the kind support."""
    window: Window
    region: RegionMode


@dataclass(frozen=True, slots=True)
class TopK(Spec):
    """The request of a top-k subscription. Keywords are normalised, sorted and unique once validated."""

    region_modes: ClassVar[tuple[RegionMode, ...]] = (
        RegionMode.ANCHORED,
        RegionMode.ELLIPSE,
        RegionMode.STATIONARY,
    )

    keywords: tuple[str, ...]
    k: int
    alpha: float
    similarity: Similarity = Similarity.JACCARD
    region: RegionMode = RegionMode.ANCHORED
    window: Window = NO_WINDOW
    distance_scale_m: float = 0.0
    """The divisor of distances; 0 for the diagonal of the service area."""


class Clause(NamedTuple):
    """One way to match a boolean expression. Keywords are as in `TopK`."""

    required: tuple[str, ...]
    excluded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Boolean(Spec):
    """The request of a boolean subscription: objects that match a clause, within a range."""

    region_modes: ClassVar[tuple[RegionMode, ...]] = (RegionMode.ANCHORED, RegionMode.NEAREST)

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
