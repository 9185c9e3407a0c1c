"""Data types of the SDK's public interface."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field, fields
from enum import Enum, IntEnum, StrEnum
from itertools import accumulate

from nearcast.clause import Clause
from nearcast.spec_keys import expression_text, spec_key
from safe_region.earth.shapes import ObjectArea, Range
from safe_region.regions.region import RegionMode
from safe_region.scoring.formulas import Similarity


@dataclass(frozen=True, slots=True)
class GeoObject:
    """An object to publish.

    Parameters
    ----------
    keywords
        Keywords of the object. Case and surrounding blanks do not matter.
    lon, lat
        Position in degrees, within the server's service area. Omit it if there is an area.
    ttl_s
        Time to live in seconds, from the time at which the server accepts the object; at least 0.001.
        Required.
    payload
        Opaque bytes for the devices.
    key
        The publisher's name for the object. Publishing the same key again is a safe retry if nothing else
        has changed, and a replacement if something has.
    area
        Area of the object in place of a point: a rectangle, or a polygon without holes. A range matches
        an area that it touches. Distances and scores refer to a point inside the area, which the server
        chooses.

    Examples
    --------
    ::

        GeoObject({"sushi"}, lon=14.51, lat=35.90, ttl_s=3600, payload=b"20 % off", key="bar-7")
        GeoObject({"market"}, ttl_s=3600, area=Bounds(14.50, 35.89, 14.52, 35.91))
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
    """A window: it selects live objects by age. Set one of the two parameters.

    Parameters
    ----------
    seconds
        Select the objects that were published within that time. A device without a stream can still
        determine these objects.
    count
        Select those among the last `count` published objects, of which some may have ended. Only the
        server knows the publications, so without a stream results are not exact.

    Examples
    --------
    ::

        TopK({"tea"}, window=Last(seconds=600))
    """

    seconds: float | None = None
    count: int | None = None


@dataclass(frozen=True, slots=True)
class TopK:
    """A spec that requests the k best objects for the position of the device.

    Two specs are equal if they request the same result. The case of keywords does not matter.

    Parameters
    ----------
    keywords
        Requested keywords. An object must share at least one of them.
    k
        Number of objects in the result.
    alpha
        Weight of distance against text, between 0 and 1. Near 1, the closest objects come first; near 0,
        the objects with the most similar keywords.
    similarity
        Measure of the similarity of keywords.
    region
        Mode of the safe region. With ELLIPSE, which is for comparison, the device holds its result only
        and reports more often, and the server requests its position. With STATIONARY, for devices that do
        not move, the device holds its result only, and the server sends each change.
    window
        Select objects by age: `Last(seconds=600)`, `Last(count=100_000)`; None for all live objects. For
        ANCHORED and STATIONARY only.
    distance_scale_m
        The distance that costs as much as having no keyword in common, at an alpha of 0.5; in metres, 1
        to 20,037,508. None for the diagonal of the service area: the same subscription then ranks
        differently in a larger area.

    Examples
    --------
    ::

        TopK({"sushi", "tea"}, k=5, alpha=0.7, distance_scale_m=5000)
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
    """A spec that requests every object that matches an expression within a range.

    Two specs are equal if they request the same result. A text equals the clauses that the server returns
    for it.

    Parameters
    ----------
    expression
        A text with AND, OR, NOT, parentheses and quotes, such as ``coffee AND (wifi OR garden) AND NOT
        "live music"``; or keywords, all of which an object must have; or clauses, one of which an object
        must match.
    range
        Range in which an object must be.
    moving
        Whether the range moves with the device, which is its middle. The range is then a circle without a
        center, or a rectangle. The device never has to report its position for a fixed range.
    region
        Mode of the safe region of a moving range: ANCHORED, or NEAREST for a device that holds its result
        only.
    dwell_s
        Time in seconds for which an object must have matched at all positions of the device before it is
        in the result. After a miss the time starts again. The device decides this and sends nothing.
    window
        Select objects by age; None for all live objects. For ANCHORED only.

    Examples
    --------
    ::

        Boolean("coffee AND (wifi OR garden) AND NOT decaf", Circle(500.0), moving=True)
        Boolean({"coffee", "wifi"}, Bounds(14.50, 35.89, 14.52, 35.91))
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
"""Spec of a subscription."""


@dataclass(frozen=True, slots=True)
class LiveObject:
    """A published object.

    Parameters
    ----------
    id
        The server's number of the object.
    lon, lat
        Position in degrees; of an object with an area, a point inside it that the server has chosen.
    keywords
        Its keywords, normalised by the server: lower case, without surrounding blanks.
    created_ms, expiry_ms
        Server time at which it was published and at which it expires, in milliseconds since 1970.
    payload
        The publisher's bytes.
    key
        The publisher's name for it; empty if there is none.
    area
        Its area as the publisher gave it; None for a point.
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
    """An object in a result, with its score (smaller is better) and its current distance."""

    object: LiveObject
    score: float
    """Score, computed with the distance on the server's plane, by which results are ranked. Boolean
    subscriptions have no scores: 0."""
    distance_m: float
    """Distance from the device's true position to the object, on the ground (WGS84), to 0.1 %. For an
    object with an area it is the distance to its point, `LiveObject.lon` and `lat`, even if the device is
    within the area."""


class ChangeKind(StrEnum):
    """Kind of a change of a result. A kind equals its text: ``change.kind == "entered"``."""

    ENTERED = "entered"
    LEFT = "left"
    REORDERED = "reordered"


class ChangeReason(StrEnum):
    """Reason for a change of a result. A reason equals its text, such as ``"out of window"``."""

    SUBSCRIBED = "subscribed"
    MOVED = "moved"
    PUBLISHED = "published"
    RETRACTED = "retracted"
    REPLACED = "replaced"
    EXPIRED = "expired"
    OUT_OF_WINDOW = "out of window"
    """An object is too old for the subscription's window."""
    DWELLED = "dwelled"
    """An object has matched for the dwell time of the subscription."""
    RESUMED = "resumed"
    REFILLED = "refilled"
    """The server sent replacements for objects that expired or left the window; or it refreshed the part
    that a device holds of a result that is too large."""
    REWEIGHED = "reweighed"
    """Another table of keyword weights has come into force."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a result.

    Parameters
    ----------
    kind
        Whether the object entered, left, or has another rank.
    object
        The object.
    rank
        Its rank in the result, from 0; for an object that left, its last rank.
    reason
        The reason for the change.
    """

    kind: ChangeKind
    object: LiveObject
    rank: int
    reason: ChangeReason


class SubscriptionState(StrEnum):
    """How exact a result is. A state equals its text, such as ``"offline and stale"``."""

    EXACT = "exact"
    """The result equals the server's result."""
    LAGGING = "lagging"
    """The device is inside its safe region, but its server cannot follow the log of its cluster, so the
    server may lack changes. The result is exact as of `Device.lag_offset`. The server still responds to
    reports, and refuses new subscriptions. It ends the stream if the state lasts for half a minute."""
    CATCHING_UP = "catching up"
    """The device has reconnected, and the missed changes are on their way."""
    STALE = "stale"
    """A response is due: the device has left its safe region; or, with RegionMode.STATIONARY, an object
    has expired and the server has not sent its replacement."""
    TOO_VAGUE = "too vague"
    """The server or the device itself knows the position too vaguely. The buffer that would cover its
    margin is larger than the server allows; or the mode of the subscription needs an exact position, and
    there was none. The result has the best of the objects that the device holds. The device reports again
    when it has moved beyond the margin or its accuracy has improved."""
    TOO_MANY = "too many"
    """More objects match than the server sends (`Limits.matches_max`). The result has some of them, those
    nearest to the place of the last report. The server refreshes them at most once a second. Objects that
    have ended are not shown."""
    OFFLINE = "offline"
    """There is no stream, or the server has not responded to a request for four seconds. The device is
    inside its safe region. The result is the exact list of all objects that were known before and are
    still alive. It does not have newer objects."""
    OFFLINE_STALE = "offline and stale"
    """As OFFLINE, but the device has left its safe region, or too many objects have expired, or the
    subscription has a window of a count. The result has the best of the objects that the device holds."""
    ENDED = "ended"
    """The subscription has ended; `Subscription.error` has the reason."""


class ServerState(Enum):
    """State of a server. It accepts commands only while it is SERVING."""

    UNKNOWN = 0
    RECOVERING = 1
    SERVING = 2
    DRAINING = 3


@dataclass(frozen=True, slots=True)
class Distribution:
    """Histogram of a quantity.

    Parameters
    ----------
    bounds
        Upper bounds of the classes, in ascending order; the last one is infinite. A value is in the first
        class whose bound is larger.
    counts
        Number of values in each class.
    total
        Sum of all values.
    """

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: int

    def since(self, before: Distribution) -> Distribution:
        """Return the distribution of the values that were added since an earlier state."""
        counts = zip(self.counts, before.counts, strict=True)
        return Distribution(
            self.bounds, tuple(now - then for now, then in counts), self.total - before.total
        )

    def quantile(self, share: float) -> float:
        """Return the upper bound of the class that contains the quantile; NaN if there are no values."""
        wanted = share * sum(self.counts)
        for bound, count in zip(self.bounds, accumulate(self.counts), strict=True):
            if count and count >= wanted:
                return bound
        return math.nan


@dataclass(frozen=True, slots=True)
class CallerUsage:
    """Resources of a server that one caller uses.

    Parameters
    ----------
    tenant, id
        Owner of the token; an empty tenant is the default tenant.
    time_share
        Fraction of the time of the server's event loop that the caller used in the last seconds.
    time_us
        Time of the event loop that the caller has used in total, in microseconds.
    stream_count, call_count
        Numbers of open streams and calls.
    unread_bytes
        Bytes of responses that the caller has not read.
    """

    tenant: str
    id: str
    time_share: float
    time_us: int
    stream_count: int
    call_count: int
    unread_bytes: int


class ClusterNodeState(IntEnum):
    """What a node of a cluster can do. The numbers equal those on the wire."""

    UNKNOWN = 0
    """The server is newer than this SDK."""
    JOINING = 1
    """It applies the log, and serves no devices yet."""
    READY = 2
    DRAINING = 3
    """It stops: other nodes take its devices."""


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """A node of a cluster.

    Parameters
    ----------
    address
        Where devices reach it, as ``host:port``.
    state
        What it can do.
    slot_count
        Number of the slots that it owns, of 1,024: its share of the devices.
    is_this
        Whether it is the server that has responded.
    lease_age_ms
        Time since that server has read the node's lease, which a node renews twice a second.
    rules
        The latest rules of applying the log that it knows.
    """

    address: str
    state: ClusterNodeState
    slot_count: int
    is_this: bool
    lease_age_ms: int = 0
    rules: int = 0


@dataclass(frozen=True, slots=True)
class LogServer:
    """A server that has a stream of the log of a cluster.

    Parameters
    ----------
    name
        Its name.
    is_leader
        Whether it leads the stream.
    is_current
        Whether it has all messages, and can be reached.
    lag
        Operations that it lacks.
    """

    name: str
    is_leader: bool
    is_current: bool
    lag: int


@dataclass(frozen=True, slots=True)
class LogStream:
    """A stream of the log of a cluster.

    Parameters
    ----------
    name
        Its name.
    message_count, byte_count
        What it has.
    servers
        The servers that have it; empty if it is on one server that is in no cluster.
    """

    name: str
    message_count: int
    byte_count: int
    servers: tuple[LogServer, ...]


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """State and measurements of a server; docs/protocol.md has the names.

    Parameters
    ----------
    state
        State of the server.
    time_ms
        Server time in milliseconds; 0 while the server recovers, since it is not known yet.
    gauges
        Current quantities.
    counters
        Numbers of events since the server started.
    limits
        Limits of the server.
    distributions
        Distributions of durations and of batch sizes since the server started.
    callers
        The callers that have used most of the server's time in the last seconds, in descending order.
    nodes
        The nodes of the cluster, by address; empty for a server by itself.
    log_streams
        The streams of the log of the cluster; empty for a server by itself, and while the log does not
        respond.
    """

    state: ServerState
    time_ms: int
    gauges: dict[str, int]
    counters: dict[str, int]
    limits: dict[str, float]
    distributions: dict[str, Distribution] = field(default_factory=dict)
    callers: tuple[CallerUsage, ...] = ()
    nodes: tuple[ClusterNode, ...] = ()
    log_streams: tuple[LogStream, ...] = ()


@dataclass(slots=True)
class Counters:
    """Counters of one device.

    Parameters
    ----------
    moves
        Number of calls of `Device.move`.
    reports
        Number of positions that the device sent.
    deltas, objects
        Numbers of deltas and of objects that it received.
    bytes_sent, bytes_received
        Protobuf bytes, without HTTP/2 framing.
    """

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
