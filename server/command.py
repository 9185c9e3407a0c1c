"""The commands of the server, in types of its own.

Every command has a principal: commands of calls in `principal`, those of devices in their outbox, which
is the stream that they came on. Commands of the server itself have ANYBODY.

Commands that arrive by the ten thousands a second are named tuples: a frozen dataclass takes a
microsecond to make.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from cluster.entries import Cursor
from identity.principal import ANYBODY, Principal
from safe_region.scoring.idf import IdfTable
from server.model import NewObject, Place, Spec
from server.session import Outbox, RefusedCommand, Session


@dataclass(frozen=True, slots=True)
class Publish:
    """Accept objects, all or none. The reply is their ids."""

    objects: tuple[NewObject, ...]
    principal: Principal = ANYBODY


@dataclass(frozen=True, slots=True)
class Retract:
    """Retract live objects, all or none."""

    ids: tuple[int, ...]
    principal: Principal = ANYBODY
    keys: tuple[str, ...] = ()
    """Keys of further objects."""


@dataclass(frozen=True, slots=True)
class TakeIn:
    """Take validated objects from the source: objects with a known key are ignored.

    The reply is whether the stream was read up to `before`: if not, nothing was taken.
    """

    objects: tuple[NewObject, ...]
    gone: tuple[str, ...]
    """Keys of retracted objects, known or not."""
    stream: str
    before: Cursor
    """The cursor before these objects."""
    offset: str
    """The offset in the stream after these objects."""


@dataclass(frozen=True, slots=True)
class SinkSent:
    """The changes up to a number were written to the sink."""

    number: int


@dataclass(frozen=True, slots=True)
class Search:
    """Evaluate a subscription once. The reply is a list of `Ranked` and the time."""

    spec: Spec
    lon: float
    lat: float
    principal: Principal = ANYBODY


@dataclass(frozen=True, slots=True)
class Inspect:
    """Inspect a device, one of its subscriptions, or an object. The reply is an `Inspected`."""

    principal: Principal = ANYBODY
    device_id: str = ""
    subscription_id: int | None = None
    object_id: int = 0
    object_key: str = ""
    """An alternative to the id."""


@dataclass(frozen=True, slots=True)
class AdvanceClock:
    """Set the virtual time."""

    time_ms: int
    principal: Principal = ANYBODY


@dataclass(frozen=True, slots=True)
class SetIdf:
    """Bring another table of keyword weights into force. The reply is its generation."""

    table: IdfTable
    principal: Principal = ANYBODY


@dataclass(frozen=True, slots=True)
class Forget:
    """End the subscriptions of devices that have not been seen for long, except attached ones."""

    device_ids: tuple[str, ...]
    unseen_ms: int = 0
    """For how long they have not been seen."""


@dataclass(frozen=True, slots=True)
class ForgetDevice:
    """Delete all data of a device, attached or not. The reply is the number of its subscriptions."""

    device_id: str
    principal: Principal = ANYBODY


@dataclass(frozen=True, slots=True)
class InTurn:
    """Let a node of a cluster change its state, in turn with other commands."""

    apply: Callable[[], object]
    row_count: int


@dataclass(frozen=True, slots=True)
class Sync:
    """A barrier. The reply comes when everything accepted before has been applied."""

    principal: Principal = ANYBODY


@dataclass(frozen=True, slots=True)
class Hello:
    """Attach a device to a stream."""

    outbox: Outbox
    device_id: str
    nonce: bytes
    version: int
    place: Place
    epoch: int = 0
    take_over: bool = False
    """Whether it requests to take the place of another instance."""


@dataclass(frozen=True, slots=True)
class Detach:
    """A stream, or one device's part of it, has ended."""

    outbox: Outbox
    device_id: str


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Start a subscription, change it in place, or evaluate it again."""

    outbox: Outbox
    device_id: str
    subscription_id: int
    spec: Spec
    place: Place
    name: str = ""
    """The app's name, unique among the device's subscriptions; empty for none."""


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """End a subscription."""

    outbox: Outbox
    device_id: str
    subscription_id: int


class Report(NamedTuple):
    """The device is outside the regions of these subscriptions. Validated when it was read."""

    outbox: Outbox
    device_id: str
    session: Session | None
    """The session of the device, if it was attached on this stream when the report was read."""
    sequence: int
    place: Place
    subscription_ids: tuple[int, ...]
    version: int = 0
    """The last version applied."""


class Ack(NamedTuple):
    """The device has applied everything up to a version."""

    outbox: Outbox
    device_id: str
    version: int


class Ping(NamedTuple):
    """A ping. The pong comes after the responses to everything before it."""

    outbox: Outbox
    device_id: str
    number: int
    version: int = 0
    """The last version applied."""


BARRIERS = (Sync, AdvanceClock, SetIdf)
"""Commands that are applied after all commands before them."""

VolatileCommand = Hello | Detach | Report | Ack | Ping | Search | Inspect
"""Commands that need no disk, and affect only their own device."""
DurableCommand = (
    Publish
    | Retract
    | TakeIn
    | SinkSent
    | AdvanceClock
    | SetIdf
    | Forget
    | ForgetDevice
    | InTurn
    | Sync
    | Subscribe
    | Unsubscribe
)
"""Commands that may have to be on disk before the response, and `Sync`, which waits for those."""
DeviceCommand = Hello | Detach | Subscribe | Unsubscribe | Report | Ack | Ping
Command = VolatileCommand | DurableCommand


def rejection_address(command: DeviceCommand) -> tuple[int, RefusedCommand]:
    """Return the number and the kind of command in a rejection of this command."""
    match command:
        case Hello():
            return 0, RefusedCommand.HELLO
        case Subscribe():
            return command.subscription_id, RefusedCommand.SUBSCRIBE
        case Unsubscribe():
            return command.subscription_id, RefusedCommand.UNSUBSCRIBE
        case Report():
            return command.sequence, RefusedCommand.REPORT
        case _:
            return 0, RefusedCommand.UNSPECIFIED
