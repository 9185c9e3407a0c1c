"""What can be asked of the server, in its own words.

Every command carries whose it is: those of calls in `principal`, those of devices in their outbox, which
is the stream that they came on. What the server asks itself to do is anybody's.

Those that arrive by the ten thousands a second are named tuples: a frozen dataclass takes a microsecond
to make.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from safe_region.idf import IdfTable
from server.model import NewObject, Place, Spec
from server.principal import ANYBODY, Principal
from server.session import Outbox, RefusedCommand, Session


@dataclass(frozen=True, slots=True)
class Publish:
    """Accept objects, all or none. Answered by their ids."""

    objects: tuple[NewObject, ...]
    principal: Principal = ANYBODY


@dataclass(frozen=True, slots=True)
class Retract:
    """Take live objects back, all or none."""

    ids: tuple[int, ...]
    principal: Principal = ANYBODY
    keys: tuple[str, ...] = ()
    """Of further ones."""


@dataclass(frozen=True, slots=True)
class TakeIn:
    """Take objects of the source, which were validated: what is known by its key is passed over."""

    objects: tuple[NewObject, ...]
    gone: tuple[str, ...]
    """Keys of what is taken back, known or not."""
    stream: str
    offset: str
    """Up to where the stream was taken with this."""


@dataclass(frozen=True, slots=True)
class SinkSent:
    """What has happened, up to a number, was written to the sink."""

    number: int


@dataclass(frozen=True, slots=True)
class Search:
    """Evaluate a subscription once. Answered by a list of `Ranked` and the time."""

    spec: Spec
    lon: float
    lat: float
    principal: Principal = ANYBODY


@dataclass(frozen=True, slots=True)
class Inspect:
    """Look at a device, at one of its subscriptions, or at an object. Answered by an `Inspected`."""

    principal: Principal = ANYBODY
    device_id: str = ""
    subscription_id: int | None = None
    object_id: int = 0
    object_key: str = ""
    """In place of the id."""


@dataclass(frozen=True, slots=True)
class AdvanceClock:
    """Set the virtual time."""

    time_ms: int
    principal: Principal = ANYBODY


@dataclass(frozen=True, slots=True)
class SetIdf:
    """Let another table of weights of keywords come into force. Answered by its generation."""

    table: IdfTable
    principal: Principal = ANYBODY


@dataclass(frozen=True, slots=True)
class Forget:
    """End the subscriptions of devices that have not been seen, but for those that are attached."""

    device_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ForgetDevice:
    """Delete all that is kept of a device, attached or not. Answered by how many subscriptions it had."""

    device_id: str
    principal: Principal = ANYBODY


@dataclass(frozen=True, slots=True)
class Sync:
    """A barrier. Answered when everything accepted before has been applied."""

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
    """Whether it asks to take the place of another instance."""


@dataclass(frozen=True, slots=True)
class Detach:
    """A stream, or one device's part of it, has ended."""

    outbox: Outbox
    device_id: str


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Begin a subscription, change it in place, or evaluate it again."""

    outbox: Outbox
    device_id: str
    subscription_id: int
    spec: Spec
    place: Place
    name: str = ""
    """The app's, unique among those of the device; empty for none."""


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
    """Of the device, if it was attached on this stream when the report was read."""
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
    """Answered by a pong behind everything before it."""

    outbox: Outbox
    device_id: str
    number: int
    version: int = 0
    """The last version applied."""


VolatileCommand = Hello | Detach | Report | Ack | Ping | Search | Inspect
"""Commands that need no disk, and concern nobody but their own device."""
DurableCommand = (
    Publish
    | Retract
    | TakeIn
    | SinkSent
    | AdvanceClock
    | SetIdf
    | Forget
    | ForgetDevice
    | Sync
    | Subscribe
    | Unsubscribe
)
"""Commands that may have to be on disk before they are answered, and `Sync`, which waits for those."""
DeviceCommand = Hello | Detach | Subscribe | Unsubscribe | Report | Ack | Ping
Command = VolatileCommand | DurableCommand


def rejection_address(command: DeviceCommand) -> tuple[int, RefusedCommand]:
    """Which number and command a rejection of this command names."""
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
