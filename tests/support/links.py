"""Devices of the tests' world: the SDK's own sessions, on streams without sockets.

What a device sends waits until the server reads it, what it is sent waits until the device reads it, and
a stream that breaks loses both. Devices have a stream each, or share one as a fleet.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from nearcast.model import Spec
from nearcast.protocol.clock import Clock
from nearcast.protocol.device_session import DeviceSession
from nearcast.protocol.location import Location
from nearcast.protocol.pending_hellos import PendingHellos
from nearcast.protocol.subscription import Subscription
from nearcast.v1 import device_service_pb2
from server.session import Outbox
from tests.support.local_server import LocalServer

_Item = TypeVar("_Item")

Request = device_service_pb2.AttachRequest
Response = device_service_pb2.AttachResponse

ALL = 2**30


class Source(Generic[_Item]):
    """What somebody has sent to the server, which reads it in order, and waits where it has no room.

    Parameters
    ----------
    read
        Lets the server take one item.
    """

    def __init__(self, read: Callable[[_Item], Awaitable[None]]) -> None:
        self.unread: deque[_Item] = deque()
        self._read = read
        self._allowed = 0
        self._reading: asyncio.Task[None] | None = None

    def let_read(self, count: int) -> None:
        """Let the server read so many more items, as soon as the loop goes on."""
        self._allowed = min(len(self.unread), self._allowed + count)
        if self._allowed and (self._reading is None or self._reading.done()):
            self._reading = asyncio.create_task(self._read_all())

    async def finish(self) -> None:
        """Wait until the server has read what it may; raise what went wrong."""
        if self._reading is not None:
            await self._reading

    def close(self) -> None:
        """Lose what was not read."""
        self.unread.clear()
        self._allowed = 0
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    async def _read_all(self) -> None:
        while self._allowed:
            self._allowed -= 1
            await self._read(self.unread.popleft())


class Stream:
    """Both directions of a stream.

    Parameters
    ----------
    server
        Where it leads.
    """

    def __init__(self, server: LocalServer) -> None:
        self.outbox: Outbox = server.connect()
        self.up: Source[tuple[str, bytes | None]] = Source(self._read)
        self.down: deque[tuple[str, bytes]] = deque()
        self.hellos = PendingHellos()
        self._server = server

    async def _read(self, item: tuple[str, bytes | None]) -> None:
        await self._server.read(self.outbox, *item)

    def send(self, device_id: str, request: Request | None) -> None:
        """Send something to the server; None if the device leaves its fleet."""
        if request is not None and request.HasField("hello"):
            self.hellos.sent(device_id)
        self.up.unread.append((device_id, None if request is None else request.SerializeToString()))

    def write(self, count_max: int) -> None:
        """Let the server write what waits for this stream."""
        self.down += self._server.write(self.outbox, count_max)

    def close(self) -> None:
        """Let the server notice that the stream has ended."""
        self.up.close()
        self._server.close(self.outbox)


class Device:
    """A session, where the device is, and its habits.

    Parameters
    ----------
    device_id, nonce
        Its name, and that of the instance of its app.
    link
        What carries it.
    place
        Where it begins.
    chance
        The world's.
    kind
        A number that chooses its habits.
    take_over
        Whether it takes the place of another instance.
    """

    def __init__(
        self,
        device_id: str,
        nonce: bytes,
        link: Link,
        place: tuple[float, float],
        chance: random.Random,
        kind: int,
        *,
        take_over: bool = False,
    ) -> None:
        self.id = device_id
        self.link = link
        self.lon, self.lat = place
        # Who is private or has poor fixes begins no subscription that needs an exact position, and
        # remains so; an instance before it may have begun one.
        privacy_radius_m = (0.0, 0.7, 0.0, 3.0, 0.0)[kind % 5]
        self.is_vague = privacy_radius_m > 0.0 or kind % 5 == 4
        self.is_impatient = kind % 3 == 2
        """Whether it reports wherever it is, without waiting for answers."""
        self.clock = Clock()
        self.session = DeviceSession(
            device_id,
            nonce,
            self.clock,
            lambda request: link.send(device_id, request),
            Location(self.lon, self.lat, 0.5 if self.is_vague else 0.0, privacy_radius_m, chance),
            chance.choice((0.0, 0.0, 0.5, 2.0)),
            take_over=take_over,
        )
        self.requested: dict[str, Spec] = {}
        """What was asked for last under each name."""
        self.held_back = 0
        """Deltas that did not say which of two specs they are of."""
        self.has_been_refused = False
        """Whether some subscribe was."""
        self._given: dict[int, set[int]] = {}  # subscription -> objects it was ever given

    @property
    def is_refused(self) -> bool:
        """Whether its session has failed for good."""
        return self.session.error is not None

    @property
    def may_be_vague(self) -> bool:
        """Whether its next fix may be a poor one: not while the server relies on an exact one."""
        relies = any(one.spec.region.needs_exact_position for one in self.session.subscriptions.values())
        return self.is_vague and not (relies and self.session.location.is_exact)

    def waits_for_position(self, subscription: Subscription) -> bool:
        """Whether a subscription cannot be evaluated before this device knows exactly where it is."""
        needs = subscription.spec.region.needs_exact_position
        return needs and not self.session.location.is_exact

    def receive(self, response: Response) -> None:
        """Take what the server sends. It names no object that this instance was never given."""
        is_subscribe = response.rejection.command == device_service_pb2.Rejection.COMMAND_SUBSCRIBE
        self.has_been_refused |= response.HasField("rejection") and is_subscribe
        delta = response.delta
        given = self._given.setdefault(delta.subscription_id, set())
        given |= {entry.object.id for entry in delta.add}
        assert {drop.object_id for drop in delta.drop} <= given
        self.session.receive(response)
        subscription = self.session.subscriptions.get(delta.subscription_id)
        if subscription is not None and subscription.change is not None:
            self.held_back += bool(subscription.change.held)

    def subscribe(self, spec: Spec, name: str) -> None:
        """Ask for a subscription; with a name, for the one of that name."""
        self.session.subscribe(spec, name)
        if name:
            self.requested[name] = spec

    def report_all(self) -> None:
        """Report for every subscription, also for those with a report under way."""
        subscriptions = [
            one for one in self.session.subscriptions.values() if not self.waits_for_position(one)
        ]
        if self.session.is_caught_up and subscriptions:
            self.session.sender.report(subscriptions)


class Link:
    """What carries a device, or a fleet of them, on one stream after the other.

    Parameters
    ----------
    server
        Where streams lead.
    is_fleet
        Whether it may carry several.
    """

    def __init__(self, server: LocalServer, *, is_fleet: bool) -> None:
        self.is_fleet = is_fleet
        self.devices: dict[str, Device] = {}
        self.stream: Stream | None = None
        self._abandoned: list[Stream] = []  # the server has not noticed that they have ended
        self._server = server

    def streams(self) -> list[Stream]:
        """Return all that the server reads and writes."""
        return [*self._abandoned, *([] if self.stream is None else [self.stream])]

    def send(self, device_id: str, request: Request | None) -> None:
        """Send something to the server; without a stream it is lost."""
        if self.stream is not None:
            self.stream.send(device_id, request)

    def open(self) -> None:
        """Open a stream and say hello on it, unless there is one."""
        if self.stream is None:
            self.stream = Stream(self._server)
            for device in self.devices.values():
                device.session.connect()

    def abandon(self) -> None:
        """End the stream on this side. The server does not know yet."""
        if self.stream is None:
            return
        self._abandoned.append(self.stream)
        self.stream = None
        for device in self.devices.values():
            device.session.disconnect()

    def notify_server(self) -> None:
        """Let the server notice which streams have ended."""
        for stream in self._abandoned:
            stream.close()
        self._abandoned.clear()

    def cut(self) -> None:
        """Break the stream: both sides notice at once."""
        self.abandon()
        self.notify_server()

    def lose_server(self) -> None:
        """Note that the server is gone, and with it all streams."""
        for stream in self.streams():
            stream.up.close()
        self.abandon()
        self._abandoned.clear()

    def write(self, count_max: int = ALL) -> None:
        """Let the server write so many events, at most, to each stream."""
        for stream in self.streams():
            stream.write(count_max)

    def receive(self, count_max: int = ALL) -> bool:
        """Let devices read so many events, at most; return whether there were any."""
        stream = self.stream
        if stream is None or not stream.down:
            return False
        for _ in range(min(count_max, len(stream.down))):
            if self.stream is stream:
                self._receive(stream, *stream.down.popleft())
        return True

    def _receive(self, stream: Stream, device_id: str, data: bytes) -> None:
        response = Response.FromString(data)
        device = self.devices.get(device_id)
        if not stream.hellos.is_current(device_id, response) or device is None:
            return
        device.receive(response)
        if not self.is_fleet and _is_last(response):
            self.cut()
            if not device.is_refused:
                self.open()


def _is_last(response: Response) -> bool:
    """Whether the server ends the stream of one device with this."""
    rejection = device_service_pb2.Rejection
    return response.HasField("detached") or (
        response.HasField("rejection") and response.rejection.command == rejection.COMMAND_HELLO
    )
