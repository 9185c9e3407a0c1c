"""What has to be on disk before a command is acknowledged."""

from __future__ import annotations

from dataclasses import dataclass

from server.model import LiveObject, TopK


@dataclass(frozen=True, slots=True)
class PutObject:
    """A live object."""

    item: LiveObject


@dataclass(frozen=True, slots=True)
class DeleteObject:
    """An object that was retracted, replaced, or has expired."""

    object_id: int


@dataclass(frozen=True, slots=True)
class PutSubscription:
    """A standing subscription."""

    device_id: str
    subscription_id: int
    spec: TopK


@dataclass(frozen=True, slots=True)
class DeleteSubscription:
    """A subscription that has ended."""

    device_id: str
    subscription_id: int


@dataclass(frozen=True, slots=True)
class SetTime:
    """The virtual time was advanced."""

    time_ms: int


Row = PutObject | DeleteObject | PutSubscription | DeleteSubscription | SetTime


@dataclass(frozen=True, slots=True)
class Recovered:
    """What a store holds when it is opened."""

    time_ms: int
    next_object_id: int
    objects: tuple[LiveObject, ...]
    subscriptions: tuple[PutSubscription, ...]
