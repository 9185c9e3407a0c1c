"""Client: one connection to a server, for devices, publishers and searches."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self

from nearcast.address import AddressError, grpc_target
from nearcast.device import Device
from nearcast.errors import ClosedError, UnavailableError, forgotten, invalid
from nearcast.model import Match, ServerStatus, Spec
from nearcast.protocol.clock import Clock
from nearcast.protocol.converters import idf_parts, server_status, whole_number
from nearcast.protocol.device_session import DeviceSession
from nearcast.protocol.inspection import plain
from nearcast.protocol.location import Location
from nearcast.protocol.names import checked_name
from nearcast.protocol.shapes import checked_position, number
from nearcast.protocol.specs import spec_message
from nearcast.publisher import Publisher
from nearcast.transport.calls import patiently
from nearcast.transport.channel import PRINTABLE, Channel, Tls, TokenSource, stripped_token
from nearcast.transport.codec import FLEET, SINGLE, Codec
from nearcast.transport.device_in_use import attach_when_free, checked_wait_s
from nearcast.transport.device_stream import DeviceStream
from nearcast.transport.loopback import is_loopback
from nearcast.v1 import control_service_pb2, device_service_pb2
from nearcast.wire.geometry import position_message
from nearcast.wire.objects import object_from
from safe_region.scoring.idf import IdfTable

_NONCE_BYTES = 16
KEEPALIVE_S = 240.0
"""More than a third of the server's lease. By then devices have sent their own pings, so a phone that has
nothing to report wakes its radio for these pings only."""
_KEEPALIVE_S_MIN = 0.001
_KEEPALIVE_S_MAX = 24.0 * 3600.0


class Client:
    """A connection to a server. `connect` creates it.

    It is an asynchronous context manager, which calls `close` at the end of the block.
    """

    def __init__(self, channel: Channel) -> None:
        self.clock = Clock()
        self.clock.on_leap = self._pass_time_soon
        self._channel = channel
        self._streams: set[DeviceStream] = set()
        self._publishers: list[Publisher] = []
        self._closed = False

    def __repr__(self) -> str:
        state = ", closed" if self._closed else ""
        return f"<nearcast.Client of {self._channel.target!r}{state}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def now_ms(self) -> int:
        """Return the server's time in milliseconds, as far as this client knows it.

        A client knows it from its first attached device on, or from `advance_clock`.

        Examples
        --------
        ::

            left_s = (match.object.expiry_ms - client.now_ms()) / 1000
        """
        return self.clock.now_ms()

    def publisher(self) -> Publisher:
        """Return a new publisher, which uses a separate stream.

        Examples
        --------
        ::

            async with client.publisher() as publisher:
                await publisher.publish(GeoObject({"tea"}, lon=14.5, lat=35.9, ttl_s=600))
        """
        self._require_open()
        publisher = Publisher(self._channel)
        self._publishers.append(publisher)
        return publisher

    async def attach(  # noqa: PLR0913 - all but the first by name, most with defaults
        self,
        device_id: str,
        *,
        lon: float,
        lat: float,
        accuracy_m: float = 0.0,
        privacy_radius_m: float = 0.0,
        prefetch_m: float = 0.0,
        take_over: bool = False,
        wait_s: float | None = None,
        rng: random.Random | None = None,
    ) -> Device:
        """Attach a device on a separate stream.

        A device has one instance of the app at a time. If another instance is attached, this one replaces
        it at once if `token` is the token of this device, or with `take_over`. The other instance ends,
        and its subscriptions end with `Reason.SUPERSEDED`. Otherwise the SDK waits until the other
        instance is detached. It waits for the time after which the server notices that an instance has
        vanished, and logs this time.

        Parameters
        ----------
        device_id
            Name of the device on the server.
        lon, lat
            Position of the device, in degrees.
        accuracy_m
            Accuracy of the fix in metres.
        privacy_radius_m
            The SDK sends positions that are blurred by up to this distance, never the true position, nor
            heading or speed; 0 for a device that is not private.
        prefetch_m
            Distance from the edge of a safe region at which the device already reports, so that the next
            region arrives in time.
        take_over
            Whether to replace another instance that is attached.
        wait_s
            Time to wait for another instance to be detached. With 0 the call is refused at once; None is
            the time that the server gives.
        rng
            Random generator of the blur; for tests.

        Raises
        ------
        RefusedError
            If another instance of this device is still attached (`Reason.DEVICE_IN_USE`), or the server
            refuses the token.
        UnavailableError
            If the server cannot be reached.

        Examples
        --------
        ::

            device = await client.attach("courier-7", lon=14.50, lat=35.89)
            async with await client.attach("courier-8", lon=14.50, lat=35.89) as device:
                ...  # detached at the end of the block
        """
        wait_s = checked_wait_s(wait_s)
        location = Location(lon, lat, accuracy_m, privacy_radius_m, rng)

        async def attach() -> Device:
            stream = self._stream(SINGLE)
            try:
                return await self._attach(
                    stream, device_id, location, prefetch_m, owns_link=True, take_over=take_over
                )
            except BaseException:
                await stream.close()
                raise

        device = await attach_when_free(attach, device_id, wait_s)
        device.check_placement(stacklevel=2)
        return device

    @asynccontextmanager
    async def fleet(self) -> AsyncIterator[Fleet]:
        """Carry many devices over one stream, in an ``async with`` block.

        Examples
        --------
        ::

            async with client.fleet() as fleet:
                vans = [await fleet.attach(f"van-{i}", lon=14.5, lat=35.9) for i in range(100)]
        """
        stream = self._stream(FLEET)
        try:
            yield Fleet(self, stream)
        finally:
            await stream.close()

    async def search(self, spec: Spec, *, lon: float, lat: float) -> list[Match]:
        """Return the result that a subscription would have at one place, now.

        The SDK sends the exact place to the server: see also `Device.search`.

        Raises
        ------
        RefusedError
            If the server refuses the search; the error names field, value and limit.

        Examples
        --------
        ::

            for match in await client.search(TopK({"tea"}, k=3), lon=14.50, lat=35.89):
                print(match.object.key, match.distance_m)
        """
        request = device_service_pb2.SearchRequest(
            spec=spec_message(spec), position=position_message(checked_position(lon, lat))
        )
        response = await self._call(self._channel.devices.Search, request)
        return [
            Match(object_from(found.object), found.score, found.distance_m) for found in response.matches
        ]

    async def forget_device(self, device_id: str) -> int:
        """Delete all data of a device on the server permanently; return its number of subscriptions.

        The deletion is durable on return. For an unknown device the server deletes nothing, and the call
        succeeds. If the device is attached, here or elsewhere, the server detaches it, and its
        subscriptions end with `Reason.FORGOTTEN`. If it attaches again later, it is a new device. The
        call waits up to a minute for a server that is stopping or starting.

        Raises
        ------
        RefusedError
            If the token belongs neither to the device nor to a gateway or an operator.
        UnavailableError
            If the server cannot be reached. Whether it deleted the device is then unknown.
        """
        request = device_service_pb2.ForgetDeviceRequest(device_id=device_id)
        count = await self._forget(request)
        carrying = [stream for stream in self._streams if stream.carries(device_id)]
        if carrying:
            await asyncio.gather(*(stream.release(device_id, forgotten()) for stream in carrying))
            # The device may have reconnected and subscribed since the server forgot it.
            count += await self._forget(request)
        return count

    async def _forget(self, request: device_service_pb2.ForgetDeviceRequest) -> int:
        method = self._channel.devices.ForgetDevice
        response = await self._call(method, request, waits_for_server=True)
        return int(response.subscription_count)

    async def sync(self) -> None:
        """Wait until no message is in transit.

        On return the devices of this client have received every delta caused by commands that the server
        had accepted before, from any client, and none of these devices waits for a response.
        """
        self._require_open()
        while True:
            await self._ping_all()
            await self._call(self._channel.control.Sync, control_service_pb2.SyncRequest())
            await self._ping_all()
            if not any(stream.is_waiting() for stream in self._streams):
                return

    async def advance_clock(self, time_ms: int) -> None:
        """Set the virtual time of the server and of this client's devices.

        Raises
        ------
        RefusedError
            If the server runs on real time, or time would run backwards.
        """
        limit = f"a whole number of milliseconds, 0 to {2**63 - 1}"
        whole_number(time_ms, "time_ms", 0, limit)
        request = control_service_pb2.AdvanceClockRequest(time_ms=time_ms)
        response = await self._call(self._channel.control.AdvanceClock, request)
        self.clock.is_virtual = True
        self.clock.observe(response.time_ms)
        self._pass_time()

    async def set_idf(self, table: IdfTable) -> int:
        """Load another table of keyword weights for `Similarity.TFIDF`; return its generation.

        The table is durable on return. The server then recomputes the weights of its objects and
        subscriptions in the background. A subscription's result is exact by the table of its
        `idf_generation`.

        Raises
        ------
        RefusedError
            If another table is still coming into force, or a weight is out of its limits.
        """
        if not isinstance(table, IdfTable):
            raise invalid("table", table, "an IdfTable")
        response = await self._call(self._channel.control.SetIdf, list(idf_parts(table)))
        return int(response.generation)

    async def status(self) -> ServerStatus:
        """Return the state and the measurements of the server. It responds in every state."""
        return server_status(
            await self._call(self._channel.control.Status, control_service_pb2.StatusRequest())
        )

    async def inspect(
        self,
        device_id: str = "",
        subscription_id: int | None = None,
        object_id: int = 0,
        *,
        object_key: str = "",
    ) -> dict[str, Any]:
        """Return the server's data about a device, one of its subscriptions, or an object.

        Parameters
        ----------
        device_id
            The device; empty for an object.
        subscription_id
            One of its subscriptions; None for the whole device.
        object_id
            The object. With a subscription, the response has a `judgement`: the reason why the device has
            the object or does not have it.
        object_key
            The publisher's key of a live object, in place of its id.

        Returns
        -------
        dict
            The fields of `InspectedDevice`, `InspectedSubscription` or `InspectedObject` of the protocol,
            and `time_ms`. The fields include the positions at which the server evaluated devices.

        Raises
        ------
        RefusedError
            If there is no such device, subscription or object.
        """
        checked_name(device_id, "device_id", optional=True)
        if subscription_id is not None:
            limit = "the number of a subscription, at least 1, or None"
            whole_number(subscription_id, "subscription_id", 1, limit, 2**31 - 1)
        whole_number(object_id, "object_id", -(2**63), "the id of an object, or 0 for none")
        request = control_service_pb2.InspectRequest()
        if subscription_id is not None:
            request.subscription.device_id = device_id
            request.subscription.subscription_id = subscription_id
            request.subscription.object_id = object_id
            request.subscription.object_key = object_key
        elif device_id:
            request.device_id = device_id
        elif object_key:
            request.object_key = object_key
        else:
            request.object_id = object_id
        response = await self._call(self._channel.control.Inspect, request)
        found: dict[str, Any] = plain(getattr(response, response.WhichOneof("found")))
        return {"time_ms": response.time_ms, **found}

    async def network_changed(self) -> None:
        """Reconnect at once. Call it when the phone has changed its network.

        Devices continue with the objects that they hold, resume on the new connection and catch up.
        Without this call they do so when the old connection breaks or does not respond to pings
        (`keepalive_s`).
        """
        self._require_open()
        old = self._channel.renew()
        for stream in self._streams:
            stream.rebuild()
        for publisher in self._publishers:
            publisher.rebuild()
        await old.close()

    async def close(self) -> None:
        """Detach all devices and close the connection. Later calls raise `ClosedError`."""
        self._closed = True
        for publisher in self._publishers:
            await publisher.close()
        await asyncio.gather(*(stream.close() for stream in list(self._streams)))
        await self._channel.close()

    def _pass_time_soon(self) -> None:
        """Schedule `_pass_time`: it runs after the device that has set the clock is done."""
        asyncio.get_running_loop().call_soon(self._pass_time)

    def _pass_time(self) -> None:
        for stream in self._streams:
            for session in list(stream.sessions.values()):
                session.pass_time()

    async def _call(
        self,
        method: Any,  # noqa: ANN401
        request: Any,  # noqa: ANN401
        *,
        waits_for_server: bool = False,
    ) -> Any:  # noqa: ANN401
        """Call a method, and retry if the server requests it, with another token if there is one."""

        async def call(_is_returning: bool) -> Any:  # noqa: ANN401, FBT001
            metadata = await self._channel.metadata()
            self._require_open()
            return await method(request, metadata=metadata)

        try:
            return await patiently(
                call,
                can_renew_token=self._channel.can_renew_token,
                is_encrypted=self._channel.is_encrypted,
                waits_for_server=waits_for_server,
            )
        except UnavailableError:
            self._require_open()
            raise

    def _require_open(self) -> None:
        if self._closed:
            raise ClosedError("the client is closed")

    async def _attach(
        self,
        stream: DeviceStream,
        device_id: str,
        location: Location,
        prefetch_m: float,
        *,
        owns_link: bool,
        take_over: bool,
    ) -> Device:
        session = DeviceSession(
            device_id,
            os.urandom(_NONCE_BYTES),
            self.clock,
            lambda request: stream.send(device_id, request),
            location,
            prefetch_m,
            take_over=take_over,
        )
        device = Device(session, stream, self.forget_device, owns_link=owns_link)
        await stream.add(session)
        return device

    def _stream(self, codec: Codec) -> DeviceStream:
        self._require_open()
        stream = DeviceStream(self._channel, codec)
        stream.on_close = self._streams.discard
        self._streams.add(stream)
        return stream

    async def _ping_all(self) -> None:
        await asyncio.gather(*(stream.ping() for stream in list(self._streams)))


class Fleet:
    """Many devices over one stream. `Client.fleet` creates it."""

    def __init__(self, client: Client, stream: DeviceStream) -> None:
        self._client = client
        self._stream = stream

    def __repr__(self) -> str:
        return f"<nearcast.Fleet, devices: {len(self._stream.sessions)}>"

    async def attach(  # noqa: PLR0913 - all but the first by name, most with defaults
        self,
        device_id: str,
        *,
        lon: float,
        lat: float,
        accuracy_m: float = 0.0,
        privacy_radius_m: float = 0.0,
        prefetch_m: float = 0.0,
        take_over: bool = False,
        wait_s: float | None = None,
        rng: random.Random | None = None,
    ) -> Device:
        """Attach a device. Parameters and behaviour are those of `Client.attach`."""
        wait_s = checked_wait_s(wait_s)
        location = Location(lon, lat, accuracy_m, privacy_radius_m, rng)

        async def attach() -> Device:
            return await self._client._attach(  # noqa: SLF001
                self._stream, device_id, location, prefetch_m, owns_link=False, take_over=take_over
            )

        device = await attach_when_free(attach, device_id, wait_s)
        device.check_placement(stacklevel=2)
        return device


def connect(
    target: str,
    *,
    token: TokenSource | None = None,
    tls: Tls | None = None,
    insecure: bool = False,
    keepalive_s: float = KEEPALIVE_S,
) -> Client:
    """Return a client of a server. The first call of the client makes the connection.

    Use it as a context manager, or close it. It needs a running event loop; programs without one use
    `nearcast.sync.connect`.

    Parameters
    ----------
    target
        Address of the server, such as ``localhost:7433``. The default port is 7433.
    token
        Token of this client, for servers that require one: a text, or a function, async or not, that
        returns a valid token. Blanks and newlines before and after it do not matter. The SDK calls the
        function whenever a call or stream starts. When a token ends, the server ends the streams that
        started with it; devices and publishers continue with the next token by themselves.
    tls
        How to verify the server; None for a connection without encryption. With a token, None is only
        valid for addresses of this machine, such as ``localhost:7433``.
    insecure
        Whether to send a token without encryption to another machine. Others on the network path can
        read it and use its permissions. Set this only for networks that encrypt by themselves.
    keepalive_s
        After this time without data from the server the connection sends a ping. If there is no response
        within ten seconds, the SDK closes the connection and opens another one. Use at least 10 s:
        servers disconnect clients that ping more often. A device notices within five seconds that a
        server does not respond to a request, whatever this value is (`Subscription.state`).

    Returns
    -------
    Client
        An open client.

    Raises
    ------
    RefusedError
        If a parameter is wrong, or a token would be sent unencrypted to another machine.
    RuntimeError
        If there is no running event loop.

    Examples
    --------
    ::

        async with nearcast.connect("localhost:7433") as client:
            print((await client.status()).state)
    """
    _require_event_loop()
    channel = _channel(target, token, tls, keepalive_s)
    if token and tls is None and insecure is not True and not is_loopback(target):
        raise invalid(
            "tls",
            None,
            f"a Tls, such as nearcast.Tls(): without it, the token would be sent to {target} "
            "unencrypted; insecure=True allows that",
        )
    return Client(channel)


def _require_event_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(
            "nearcast.connect needs a running event loop: call it in a coroutine, "
            "or use nearcast.sync.connect"
        ) from None


def _channel(target: str, token: TokenSource | None, tls: Tls | None, keepalive_s: float) -> Channel:
    """Validate the parameters of `connect` and return a channel."""
    if not isinstance(target, str) or not target:
        raise invalid("target", target, "an address, such as 'localhost:7433'")
    try:
        target = grpc_target(target)
    except AddressError as error:
        hint = ", and tls=nearcast.Tls() for TLS" if error.scheme else ""
        raise invalid("target", target, f"{error.limit}{hint}") from None
    if not isinstance(token, str | None) and not callable(token):
        raise invalid("token", type(token).__name__, "a text, a function that returns one, or None")
    if isinstance(token, str):
        token = stripped_token(token)
        if token is None:
            raise invalid("token", "not shown", f"a {PRINTABLE}")
    if not isinstance(tls, Tls | None):
        raise invalid("tls", tls, "a Tls, or None")
    limit = f"a number of seconds, {_KEEPALIVE_S_MIN:g} to {_KEEPALIVE_S_MAX:g}"
    if not _KEEPALIVE_S_MIN <= number(keepalive_s, "keepalive_s", limit) <= _KEEPALIVE_S_MAX:
        raise invalid("keepalive_s", keepalive_s, limit)
    return Channel(target, token or "", tls, keepalive_s)
