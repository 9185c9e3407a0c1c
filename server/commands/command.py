"""What can be asked of the server, in its own words.

Those that arrive by the ten thousands a second are named tuples: a frozen dataclass takes a microsecond
to make.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from server.model import NewObject, TopK
from server.session import Outbox, RefusedCommand


@dataclass(frozen=True, slots=True)
class Publish:
    """Accept objects, all or none. Answered by their ids."""

    objects: tuple[NewObject, ...]


@dataclass(frozen=True, slots=True)
class Retract:
    """Take live objects back, all or none."""

    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Search:
    """Evaluate a subscription once. Answered by a list of `Ranked`."""

    spec: TopK
    lon: float
    lat: float


@dataclass(frozen=True, slots=True)
class AdvanceClock:
    """Set the virtual time."""

    time_ms: int


@dataclass(frozen=True, slots=True)
class Forget:
    """End the subscriptions of devices that have not been heard of, but for those that are attached."""

    device_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sync:
    """A barrier. Answered when everything accepted before has been applied."""


@dataclass(frozen=True, slots=True)
class Hello:
    """Attach a device to a connection."""

    outbox: Outbox
    device_id: str
    nonce: bytes
    version: int
    lon: float
    lat: float
    margin_m: float = 0.0
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class Detach:
    """A stream, or one device's part of it, has ended."""

    outbox: Outbox
    device_id: str


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Begin or re-evaluate a subscription."""

    outbox: Outbox
    device_id: str
    subscription_id: int
    spec: TopK
    lon: float
    lat: float
    margin_m: float = 0.0


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """End a subscription."""

    outbox: Outbox
    device_id: str
    subscription_id: int


class Report(NamedTuple):
    """The device is outside the regions of these subscriptions."""

    outbox: Outbox
    device_id: str
    sequence: int
    lon: float
    lat: float
    subscription_ids: tuple[int, ...]
    margin_m: float = 0.0
    heading_deg: float | None = None
    speed_mps: float | None = None
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


DeviceCommand = Hello | Detach | Subscribe | Unsubscribe | Report | Ack | Ping
Command = Publish | Retract | Search | AdvanceClock | Forget | Sync | DeviceCommand


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
