"""The changes that must be on disk before a command is acknowledged, and the content of a store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from cluster.entries import Cursor
from index.batches import Floats, Ints
from nearcast.canonical import Window
from safe_region.earth.shapes import ObjectArea
from safe_region.scoring.idf import IdfTable
from server.model import LiveObject


@dataclass(frozen=True, slots=True)
class PutObject:
    """A live object."""

    item: LiveObject


@dataclass(frozen=True, slots=True)
class DeleteObject:
    """An object that was retracted, replaced, or has expired."""

    object_id: int
    has_expired: bool = False


@dataclass(frozen=True, slots=True)
class PutSubscription:
    """A subscription."""

    device_id: str
    subscription_id: int
    kind: int
    spec: str
    """The spec as JSON, which only its kind reads."""
    name: str = ""
    """Unique among the device's subscriptions; empty for none."""


@dataclass(frozen=True, slots=True)
class DeleteSubscription:
    """A subscription that has ended."""

    device_id: str
    subscription_id: int


@dataclass(frozen=True, slots=True)
class DeleteDevice:
    """All data of a device. Nothing of it remains in the files once they are cleaned."""

    device_id: str


@dataclass(frozen=True, slots=True)
class SetLastSeen:
    """A device was last seen at the time of the commit; written if the stored time is an hour older."""

    device_id: str


@dataclass(frozen=True, slots=True)
class SetTime:
    """The virtual time was advanced."""

    time_ms: int


@dataclass(frozen=True, slots=True)
class PutIdf:
    """A table of keyword weights, in place of any before."""

    generation: int
    table: IdfTable


@dataclass(frozen=True, slots=True)
class SetSourceOffset:
    """A stream of the source was read up to an offset."""

    stream: str
    offset: str


@dataclass(frozen=True, slots=True)
class SetSourceCursor:
    """A stream of the source was read into the log up to a cursor."""

    stream: str
    cursor: Cursor


@dataclass(frozen=True, slots=True)
class DeleteSent:
    """The changes up to a number were written to the sink."""

    number: int


class SinkPosition(NamedTuple):
    """Which changes the nodes of a cluster keep for its sink."""

    is_on: bool = False
    """Whether they keep changes."""
    number: int = 0
    """The number of the latest change; 0 before the first."""
    sent_number: int = 0
    """The latest number that was written to the sink, or that no sink wants."""


@dataclass(frozen=True, slots=True)
class PutChange:
    """A change for the sink of a cluster."""

    change: Happened


@dataclass(frozen=True, slots=True)
class SetSinkPosition:
    """The changes for the sink of a cluster are those of a position."""

    position: SinkPosition


@dataclass(frozen=True, slots=True)
class SetLogPosition:
    """The log was applied up to an offset, with all that it changed, which is in the same commit."""

    log_id: str
    offset: int
    time_ms: int
    """The time of the log."""
    next_object_id: int
    rules: int = 1
    """The rules of applying in force."""
    weights_pending: bool = False
    """Whether some node may not be done with the last table of weights."""


class Outcome(NamedTuple):
    """The outcome of a request in the log."""

    offset: int
    """The offset of its message in the log."""
    place: int
    """Its place among the requests of the message, from 0."""
    request_id: bytes
    time_ms: int
    """The time of the log when it was applied."""
    reply: str
    """JSON: the ids, or the refusal."""


@dataclass(frozen=True, slots=True)
class PutOutcome:
    """The outcome of a request, for its repeats."""

    outcome: Outcome


@dataclass(frozen=True, slots=True)
class DeleteOutcomes:
    """The outcomes of requests up to one in the log are no longer needed."""

    offset: int
    """The offset of its message."""
    place: int
    """Its place in the message."""


class WindowClaim(NamedTuple):
    """The windows that a node of a cluster uses."""

    time_ms: int
    """The time of the log when it claimed them."""
    windows: tuple[Window, ...]


@dataclass(frozen=True, slots=True)
class SetWindows:
    """The windows in use in a cluster, by the address of the node."""

    claims: Mapping[str, WindowClaim]


class LogPosition(NamedTuple):
    """How far a store has applied a log."""

    log_id: str = ""
    """Hexadecimal; empty for a store that has applied none."""
    offset: int = 0
    time_ms: int = 0
    outcomes: Sequence[Outcome] = ()
    """Of the latest requests, oldest first."""
    rules: int = 1
    """The rules of applying in force."""
    source_cursors: Mapping[str, Cursor] = {}
    """How far streams of the source were read into the log."""
    sink: SinkPosition = SinkPosition()
    """Which changes are kept for the sink."""
    windows: Mapping[str, WindowClaim] = {}
    """The windows in use, by the address of the node."""
    weights_pending: bool = False
    """Whether some node may not be done with the last table of weights."""


NO_LOG = LogPosition()
"""The position of a store that has applied no log."""


Mutation = (
    PutObject
    | DeleteObject
    | PutSubscription
    | DeleteSubscription
    | DeleteDevice
    | SetLastSeen
    | SetTime
    | PutIdf
    | SetSourceOffset
    | SetSourceCursor
    | DeleteSent
    | PutChange
    | SetSinkPosition
    | SetWindows
    | SetLogPosition
    | PutOutcome
    | DeleteOutcomes
)


class Happened(NamedTuple):
    """A change that is to be written to the sink."""

    number: int
    """From 1 on, without gaps, in the order of the changes."""
    action: str
    object_id: int
    time_ms: int
    about: str
    """For published objects, JSON: lon, lat, keywords, ttl_ms."""
    payload: bytes


@dataclass(frozen=True, slots=True)
class ObjectColumns:
    """Live objects, one column per field."""

    ids: Ints
    lon: Floats
    lat: Floats
    keywords: Sequence[Sequence[str]]
    created_ms: Ints
    expiry_ms: Ints
    payloads: Sequence[bytes]
    keys: Sequence[str]
    areas: Mapping[int, ObjectArea]
    """By id, for objects that have an area."""
    owners: Sequence[str]
    expired: Sequence[int]
    """Ids of expired objects in the same slice, which are still to be deleted."""

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class SubscriptionColumns:
    """Subscriptions, one column per field, those of a device together."""

    device_ids: Sequence[str]
    subscription_ids: Ints
    kinds: Ints
    specs: Sequence[Any]
    """The spec of each as parsed JSON."""
    names: Sequence[str]
    """Empty for none."""

    def __len__(self) -> int:
        return len(self.device_ids)


@dataclass(frozen=True, slots=True)
class Recovered:
    """The content of a store when it is opened; read in slices while it is iterated, objects first."""

    time_ms: int
    next_object_id: int
    idf: PutIdf | None
    source_offsets: Mapping[str, str]
    """The offsets up to which streams of the source were read, without a log."""
    objects: Iterator[ObjectColumns]
    subscriptions: Iterator[SubscriptionColumns]
    log: LogPosition = NO_LOG
