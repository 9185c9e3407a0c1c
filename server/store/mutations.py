"""What has to be on disk before a command is acknowledged, and what a store gives back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from index.batches import Floats, Ints
from safe_region.earth import ObjectArea
from safe_region.idf import IdfTable
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
    """What it asks for, as JSON that only its kind reads."""
    name: str = ""
    """Unique among those of the device; empty for none."""


@dataclass(frozen=True, slots=True)
class DeleteSubscription:
    """A subscription that has ended."""

    device_id: str
    subscription_id: int


@dataclass(frozen=True, slots=True)
class DeleteDevice:
    """All that is kept of a device. Nothing of it stays in the files once they are tidied."""

    device_id: str


@dataclass(frozen=True, slots=True)
class SetLastSeen:
    """A device was last seen at the time of the commit; written only if that is news."""

    device_id: str


@dataclass(frozen=True, slots=True)
class SetTime:
    """The virtual time was advanced."""

    time_ms: int


@dataclass(frozen=True, slots=True)
class PutIdf:
    """A table of weights of keywords, in place of any before."""

    generation: int
    table: IdfTable


@dataclass(frozen=True, slots=True)
class SetSourceOffset:
    """A stream of the source was taken up to an offset."""

    stream: str
    offset: str


@dataclass(frozen=True, slots=True)
class DeleteSent:
    """What has happened, up to a number, was written to the sink."""

    number: int


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
    | DeleteSent
)


class Happened(NamedTuple):
    """Something that is to be written to the sink."""

    number: int
    """From 1 on, without gaps, in the order in which it happened."""
    action: str
    object_id: int
    time_ms: int
    about: str
    """Of what was published, JSON: lon, lat, keywords, ttl_ms."""
    payload: bytes


@dataclass(frozen=True, slots=True)
class ObjectColumns:
    """Live objects, a column a field."""

    ids: Ints
    lon: Floats
    lat: Floats
    keywords: Sequence[Sequence[str]]
    created_ms: Ints
    expiry_ms: Ints
    payloads: Sequence[bytes]
    keys: Sequence[str]
    areas: Mapping[int, ObjectArea]
    """By id, of those that have one."""
    owners: Sequence[str]
    expired: Sequence[int]
    """Ids of others found beside them, which have expired and are still to be deleted."""

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class SubscriptionColumns:
    """Subscriptions, a column a field, those of a device together."""

    device_ids: Sequence[str]
    subscription_ids: Ints
    kinds: Ints
    specs: Sequence[Any]
    """What each asks for, read as JSON."""
    names: Sequence[str]
    """Empty for none."""

    def __len__(self) -> int:
        return len(self.device_ids)


@dataclass(frozen=True, slots=True)
class Recovered:
    """What a store holds when it is opened; read in slices while it is iterated, objects first."""

    time_ms: int
    next_object_id: int
    idf: PutIdf | None
    source_offsets: Mapping[str, str]
    """Up to where streams of the source were taken."""
    objects: Iterator[ObjectColumns]
    subscriptions: Iterator[SubscriptionColumns]
