"""What goes into the SDK and what comes out of it."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field, fields
from enum import Enum, StrEnum
from itertools import accumulate

from nearcast.clause import Clause
from nearcast.spec_keys import expression_text, spec_key
from safe_region.earth import ObjectArea, Range
from safe_region.region import RegionMode
from safe_region.scoring import Similarity


@dataclass(frozen=True, slots=True)
class GeoObject:
    """What a publisher posts.

    Parameters
    ----------
    keywords
        What it is about; case and surrounding blanks do not matter.
    lon, lat
        Degrees, within the server's service area. Left out if there is an area.
    ttl_s
        Seconds it lives from the moment the server accepts it; a millisecond at least. Needed.
    payload
        Opaque bytes for the devices.
    key
        Your own name for it: publishing the same key again is a safe retry if nothing else changed, and
        a replacement if something did.
    area
        Where it is, instead of a point: a rectangle, or a polygon without holes. It matches a range that
        it touches. Distances and scores are those of a point inside it, which the server chooses.
    """

    keywords: Collection[str]
    lon: float | None = None
    lat: float | None = None
    ttl_s: float | None = None
    payload: bytes = b""
    key: str = ""
    area: ObjectArea | None = None


@dataclass(frozen=True, slots=True)
class Last:
    """A window: which of the live objects count, by their age.

    Parameters
    ----------
    seconds
        Those published less than so long ago. A device that is offline goes on to know which these are.
    count
        The last so many published, whatever has become of them. What has left such a window only the
        server can tell, so without a stream results are not exact.
    """

    seconds: float | None = None
    count: int | None = None


@dataclass(frozen=True, slots=True)
class TopK:
    """The k best objects, wherever the device is.

    Two that ask for the same are equal: the case of keywords does not matter.

    Parameters
    ----------
    keywords
        An object must share at least one.
    k
        How many.
    alpha
        Weight of distance against text, between 0 and 1: near 1, the closest win; near 0, those whose
        keywords are most alike.
    similarity
        How keywords are compared.
    region
        How the device keeps silent. With ELLIPSE, which is for comparison, it holds its result only,
        speaks more often and is asked where it is. With STATIONARY, for devices that do not move, it
        holds its result only, too, and the server tells it of each change.
    window
        Which objects count, by their age: `Last(seconds=600)`, `Last(count=100_000)`; None for all that
        are alive. With ANCHORED and STATIONARY only.
    distance_scale_m
        The distance that counts as much as having no keyword in common, at an alpha of 0.5; metres, 1 to
        20,037,508. None for the diagonal of the service area: the same subscription then ranks
        otherwise in a larger area.
    """

    keywords: Collection[str]
    k: int = 10
    alpha: float = 0.5
    similarity: Similarity = Similarity.JACCARD
    region: RegionMode = RegionMode.ANCHORED
    window: Last | None = None
    distance_scale_m: float | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TopK) and spec_key(self) == spec_key(other)

    def __hash__(self) -> int:
        return hash(spec_key(self))


@dataclass(frozen=True, slots=True)
class Boolean:
    """Every object that matches an expression, within a range.

    Two that ask for the same are equal: a text equals the clauses that the server returns for it.

    Parameters
    ----------
    expression
        A text with AND, OR, NOT, parentheses and quotes, such as ``coffee AND (wifi OR garden) AND NOT
        "live music"``; or keywords, all of which an object must have; or clauses, one of which it must
        match.
    range
        Where an object must be.
    moving
        Whether the range, a circle without a center or a rectangle, moves with the device, which is its
        middle. The device of a range that is fixed in place never has to say where it is.
    region
        How the safe region of a range that moves works: ANCHORED, or NEAREST for a device that holds
        nothing but its result.
    dwell_s
        How long an object must have matched, wherever the device was meanwhile, before it is in the
        result; one that misses once begins anew. The device decides it, and stays silent.
    window
        Which objects count, by their age; None for all that are alive. With ANCHORED only.
    """

    expression: str | Collection[str] | Collection[Clause]
    range: Range
    moving: bool = False
    region: RegionMode = RegionMode.ANCHORED
    dwell_s: float = 0.0
    window: Last | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Boolean) and spec_key(self) == spec_key(other)

    def __hash__(self) -> int:
        return hash(spec_key(self))

    def __repr__(self) -> str:
        others = (f"{one.name}={getattr(self, one.name)!r}" for one in fields(self)[1:])
        return f"Boolean({expression_text(self.expression)}, {', '.join(others)})"


Spec = TopK | Boolean
"""What a subscription asks for."""


@dataclass(frozen=True, slots=True)
class LiveObject:
    """A published object. Times are server time in milliseconds.

    One with an area is at a point inside it, which the server has chosen.
    """

    id: int
    lon: float
    lat: float
    keywords: frozenset[str]
    created_ms: int
    expiry_ms: int
    payload: bytes
    key: str
    area: ObjectArea | None = None


@dataclass(frozen=True, slots=True)
class Match:
    """An object in a result, with its score (smaller is better) and its distance now."""

    object: LiveObject
    score: float
    """On the server's plane, as results are ranked. Results of boolean subscriptions have none: 0."""
    distance_m: float
    """From the device's true position to the object, on the ground (WGS84), to 0.1 %. To one with an area
    it is that to its point, `LiveObject.lon` and `lat`, also from within the area."""


class ChangeKind(StrEnum):
    """What happened to an object in a result. Equal to its text: ``change.kind == "entered"``."""

    ENTERED = "entered"
    LEFT = "left"
    REORDERED = "reordered"


class ChangeReason(StrEnum):
    """Why a result changed. Equal to its text, such as ``"out of window"``."""

    SUBSCRIBED = "subscribed"
    MOVED = "moved"
    PUBLISHED = "published"
    RETRACTED = "retracted"
    REPLACED = "replaced"
    EXPIRED = "expired"
    OUT_OF_WINDOW = "out of window"
    """An object is too old for the subscription's window."""
    DWELLED = "dwelled"
    """An object has matched for as long as the subscription asks for."""
    RESUMED = "resumed"
    REFILLED = "refilled"
    """Something expired or got too old, and others take its place; or what is held of a result that is
    too large was brought up to date."""
    REWEIGHED = "reweighed"
    """Another table of weights of keywords has come into force."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a result. `rank` counts from 0; of what has left, it is the last it had."""

    kind: ChangeKind
    object: LiveObject
    rank: int
    reason: ChangeReason


class SubscriptionState(StrEnum):
    """How far a result can be trusted. Equal to its text, such as ``"offline and stale"``."""

    EXACT = "exact"
    """It is what the server would say."""
    CATCHING_UP = "catching up"
    """The stream is back, and what was missed in between is on its way."""
    STALE = "stale"
    """A response is due: the device has left its safe region; or, with RegionMode.STATIONARY, something
    has expired and the server has not sent what takes its place."""
    TOO_VAGUE = "too vague"
    """The position is known too vaguely, to the server or to the device itself: the buffer that would
    cover its margin is larger than the server allows, or the subscription is in a mode that needs an
    exact position and there was none. What is shown is the best of what the device holds. It asks again
    when it has moved beyond the margin or its accuracy has improved."""
    TOO_MANY = "too many"
    """More objects match than the server sends (`Limits.matches_max`): what is shown is some of them,
    those that were nearest to where the device was when it last reported, brought up to date at most once
    a second; what has gone is not shown."""
    OFFLINE = "offline"
    """No stream, or a server that has left a request without a response for four seconds; the device is
    inside its safe region: what is shown is the exact list of all that was known before and is still
    alive. News do not arrive."""
    OFFLINE_STALE = "offline and stale"
    """The same, but the device has left its safe region, or too much has expired, or nobody tells what
    has left a window of so many objects: what is shown is the best of what it holds."""
    ENDED = "ended"
    """Nothing keeps it any more; `Subscription.error` says why."""


class ServerState(Enum):
    """What a server is doing. Only one that is SERVING takes commands."""

    UNKNOWN = 0
    RECOVERING = 1
    SERVING = 2
    DRAINING = 3


@dataclass(frozen=True, slots=True)
class Distribution:
    """How often a quantity was how large.

    Parameters
    ----------
    bounds
        Rising, the last infinite: values of a class are below its bound, and not below the one before.
    counts
        Values in each class.
    total
        Sum of all values.
    """

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: int

    def since(self, before: Distribution) -> Distribution:
        """Return what has come since an earlier moment."""
        counts = zip(self.counts, before.counts, strict=True)
        return Distribution(
            self.bounds, tuple(now - then for now, then in counts), self.total - before.total
        )

    def quantile(self, share: float) -> float:
        """Return what a share of the values lies below: the bound of a class; NaN if there are none."""
        wanted = share * sum(self.counts)
        for bound, count in zip(self.bounds, accumulate(self.counts), strict=True):
            if count and count >= wanted:
                return bound
        return math.nan


@dataclass(frozen=True, slots=True)
class CallerUsage:
    """What one caller has used of a server, and what it has open.

    Parameters
    ----------
    tenant, id
        Whose token it is; an empty tenant is the default one.
    time_share
        Of the time of the server's event loop in the last seconds.
    time_us
        The same in all, microseconds.
    stream_count, call_count
        What is open.
    unread_bytes
        Of answers that it has not read.
    """

    tenant: str
    id: str
    time_share: float
    time_us: int
    stream_count: int
    call_count: int
    unread_bytes: int


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """What a server tells of itself; docs/protocol.md has the names.

    Parameters
    ----------
    state
        What it is doing.
    time_ms
        Server time; 0 while it recovers, for it is not known yet.
    gauges
        How much there is now.
    counters
        How often something has happened since it began.
    limits
        What it accepts and keeps.
    distributions
        How long things took and how much was done at once, since it began.
    callers
        Those that have used most of its time in the last seconds, most first.
    """

    state: ServerState
    time_ms: int
    gauges: dict[str, int]
    counters: dict[str, int]
    limits: dict[str, float]
    distributions: dict[str, Distribution] = field(default_factory=dict)
    callers: tuple[CallerUsage, ...] = ()


@dataclass(slots=True)
class Counters:
    """What one device has done and received. Bytes are protobuf, without HTTP/2 framing."""

    moves: int = 0
    reports: int = 0
    deltas: int = 0
    objects: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0

    def __add__(self, other: Counters) -> Counters:
        return Counters(
            self.moves + other.moves,
            self.reports + other.reports,
            self.deltas + other.deltas,
            self.objects + other.objects,
            self.bytes_sent + other.bytes_sent,
            self.bytes_received + other.bytes_received,
        )
