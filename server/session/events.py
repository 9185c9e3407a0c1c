"""The events that a session sends to its device."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from nearcast.errors import RefusedError
from server.model import Delta, Spec


class Subscribed(NamedTuple):
    """A subscription of the device, in a welcome."""

    subscription_id: int
    spec: Spec
    name: str = ""


class Welcome(NamedTuple):
    """The response to a hello."""

    time_ms: int
    subscriptions: tuple[Subscribed, ...]
    version: int
    resumed: bool
    epoch: int
    lag_offset: int = 0
    """As `Lag.offset`."""


class VersionedDelta(NamedTuple):
    """A delta with its place in the device's sequence, and its approximate size in memory."""

    version: int
    subscription_id: int
    report_sequence: int
    delta: Delta
    size_bytes: int


class EndReason(IntEnum):
    """Why a subscription has ended. The numbers equal those on the wire."""

    UNSUBSCRIBED = 1


class Unsubscribed(NamedTuple):
    """A subscription has ended."""

    subscription_id: int
    reason: EndReason = EndReason.UNSUBSCRIBED


class Pong(NamedTuple):
    """The response to a ping, after all events that were queued before the ping."""

    number: int


class RefusedCommand(IntEnum):
    """The command that a rejection refers to. The numbers equal those on the wire."""

    UNSPECIFIED = 0
    HELLO = 1
    SUBSCRIBE = 2
    UNSUBSCRIBE = 3
    REPORT = 4


class Rejection(NamedTuple):
    """A command was refused and changed nothing."""

    number: int
    command: RefusedCommand
    error: RefusedError


class Detached(NamedTuple):
    """The conversation on this stream is over."""

    error: RefusedError


class GoAway(NamedTuple):
    """The stream ends, with the conversations of all its devices. The last event of a stream."""

    error: RefusedError


class Lag(NamedTuple):
    """The server cannot follow the log of its cluster, or can again."""

    offset: int
    """The offset up to which it has applied the log; 0 once it has caught up."""


class Locate(NamedTuple):
    """The server needs the position of the device."""

    subscription_ids: tuple[int, ...]


class SnapshotDue(NamedTuple):
    """A marker in an outbox in place of coalesced deltas; it becomes snapshots when its turn comes."""


Event = (
    Welcome
    | VersionedDelta
    | Unsubscribed
    | Pong
    | Rejection
    | Detached
    | GoAway
    | Lag
    | Locate
    | SnapshotDue
)
