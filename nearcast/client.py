"""Client: the connections to one server or a cluster, for devices, publishers and searches."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self

from nearcast.address import AddressError, address_texts, grpc_target
from nearcast.device import Device
from nearcast.errors import ClosedError, forgotten, invalid
from nearcast.model import Match, ServerStatus, Spec
from nearcast.protocol.clock import Clock
from nearcast.protocol.converters import idf_parts, server_status, whole_number
from nearcast.protocol.device_session import DeviceSession
from nearcast.protocol.inspection import plain
from nearcast.protocol.keyword_warnings import warn_of_operators
from nearcast.protocol.location import Location
from nearcast.protocol.names import checked_name
from nearcast.protocol.shapes import checked_position, number
from nearcast.protocol.specs import spec_message
from nearcast.publisher import Publisher
from nearcast.transport.calls import patiently
from nearcast.transport.channel import PRINTABLE, Channel, Tls, TokenSource, stripped_token
from nearcast.transport.codec import FLEET, SINGLE, Codec
from nearcast.transport.device_in_use import attach_when_free, checked_wait_s
from nearcast.transport.device_streams import DeviceStreams
from nearcast.transport.loopback import is_loopback
from nearcast.transport.servers import Method, Servers
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
    """A connection to a server, or to the servers of a cluster. `connect` creates it.

    It is an asynchronous context manager, which calls `close` at the end of the block.
    """

    def __init__(self, servers: Servers) -> None:
        self.clock = Clock()
        self.clock.on_leap = self._pass_time_soon
        self._servers = servers
        self._streams: set[DeviceStreams] = set()
        self._publishers: set[Publisher] = set()
        self._closed = False

    def __repr__(self) -> str:
        state = ", closed" if self._closed else ""
        return f"<nearcast.Client of {self._servers.target!r}{state}>"

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

        A client knows it from its first attached device on, or from the first response of `search`,
        `status`, `inspect` or `advance_clock`. Before, the result is no date.

        Examples
        --------
        ::

            left_s = (match.object.expiry_ms - client.now_ms()) / 1000
        """
        return self.clock.now_ms()

    def publisher(self) -> Publisher:
        """Return a new publisher, which uses a separate stream. Keep it, and use it for all objects.

        Examples
        --------
        ::

            async with client.publisher() as publisher:
                await publisher.publish(GeoObject({"tea"}, lon=14.5, lat=35.9, ttl_s=600))
        """
        self._require_open()
        publisher = Publisher(self._servers, self._publishers.discard)
        self._publishers.add(publisher)
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
            streams = self._open(SINGLE)
            try:
                return await self._attach(
                    streams, device_id, location, prefetch_m, owns_link=True, take_over=take_over
                )
            except BaseException:
                await streams.close()
                raise

        device = await attach_when_free(attach, device_id, wait_s)
        device.check_placement(stacklevel=2)
        return device

    @asynccontextmanager
    async def fleet(self) -> AsyncIterator[Fleet]:
        """Carry many devices over one stream to each server, in an ``async with`` block.

        Examples
        --------
        ::

            async with client.fleet() as fleet:
                vans = [await fleet.attach(f"van-{i}", lon=14.5, lat=35.9) for i in range(100)]
        """
        streams = self._open(FLEET)
        try:
            yield Fleet(self, streams)
        finally:
            await streams.close()

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
        response = await self._call(lambda channel: channel.devices.Search, request)
        self.clock.suggest(response.time_ms)
        warn_of_operators(spec, stacklevel=2)
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
        carrying = [streams for streams in self._streams if streams.carries(device_id)]
        if carrying:
            await asyncio.gather(*(streams.release(device_id, forgotten()) for streams in carrying))
            # The device may have reconnected and subscribed since the server forgot it.
            count += await self._forget(request)
        return count

    async def _forget(self, request: device_service_pb2.ForgetDeviceRequest) -> int:
        response = await self._call(
            lambda channel: channel.devices.ForgetDevice, request, waits_for_server=True
        )
        return int(response.subscription_count)

    async def sync(self) -> None:
        """Wait until no message is in transit.

        On return the devices of this client have received every delta caused by commands that the server
        had accepted before, from any client, and none of these devices waits for a response.
        """
        self._require_open()
        while True:
            await self._ping_all()
            await asyncio.gather(*(self._sync(channel) for channel in self._serving()))
            await self._ping_all()
            if not any(streams.is_waiting() for streams in self._streams):
                return

    def _serving(self) -> set[Channel]:
        """Return the connections of the servers that serve devices or calls of this client."""
        return {self._servers.current}.union(*(streams.channels() for streams in self._streams))

    async def _sync(self, channel: Channel) -> None:
        request = control_service_pb2.SyncRequest()
        await self._call(lambda channel: channel.control.Sync, request, first=channel)

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
        response = await self._call(lambda channel: channel.control.AdvanceClock, request)
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
        parts = list(idf_parts(table))
        response = await self._call(lambda channel: channel.control.SetIdf, parts, is_repeatable=False)
        return int(response.generation)

    async def status(self) -> ServerStatus:
        """Return the state and the measurements of the server. It responds in every state.

        With several servers, one of them responds.
        """
        request = control_service_pb2.StatusRequest()
        response = await self._call(lambda channel: channel.control.Status, request)
        self.clock.suggest(response.time_ms)
        return server_status(response)

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
        has_object = bool(object_id or object_key)
        if not device_id and not has_object and subscription_id is None:
            raise invalid("device_id", "", "the id of a device, or empty with object_id or object_key")
        if device_id and has_object and subscription_id is None:
            raise invalid("subscription_id", None, "one of the device's to inspect an object for it")
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
        response = await self._call(lambda channel: channel.control.Inspect, request)
        self.clock.suggest(response.time_ms)
        found: dict[str, Any] = plain(getattr(response, response.WhichOneof("found")))
        return {"time_ms": response.time_ms, **found}

    async def network_changed(self) -> None:
        """Reconnect at once. Call it when the phone has changed its network.

        Devices continue with the objects that they hold, resume on the new connection and catch up.
        Without this call they do so when the old connection breaks or does not respond to pings
        (`keepalive_s`).
        """
        self._require_open()
        await self._servers.renew(self._rebuild)

    def _rebuild(self) -> None:
        """Open all streams again, on the new connections."""
        for streams in self._streams:
            streams.rebuild()
        for publisher in self._publishers:
            publisher.rebuild()

    async def close(self) -> None:
        """Detach all devices and close the connection. Later calls raise `ClosedError`."""
        self._closed = True
        for publisher in list(self._publishers):
            await publisher.close()
        await asyncio.gather(*(streams.close() for streams in list(self._streams)))
        await self._servers.close()

    def _pass_time_soon(self) -> None:
        """Schedule `_pass_time`: it runs after the device that has set the clock is done."""
        asyncio.get_running_loop().call_soon(self._pass_time)

    def _pass_time(self) -> None:
        for streams in self._streams:
            for session in list(streams.sessions.values()):
                session.pass_time()

    async def _call(
        self,
        method: Method,
        request: Any,  # noqa: ANN401
        *,
        first: Channel | None = None,
        waits_for_server: bool = False,
        is_repeatable: bool = True,
    ) -> Any:  # noqa: ANN401
        """Call a method, and retry if the server requests it, with another token if there is one."""
        self._require_open()
        return await patiently(
            lambda is_returning: self._servers.call(method, request, first, waits=is_returning),
            self._servers.tries_max if is_repeatable else 1,
            can_renew_token=self._servers.can_renew_token,
            is_encrypted=self._servers.is_encrypted,
            waits_for_server=waits_for_server,
        )

    def _require_open(self) -> None:
        if self._closed:
            raise ClosedError("the client is closed")

    async def _attach(
        self,
        streams: DeviceStreams,
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
            lambda request: streams.send(device_id, request),
            location,
            prefetch_m,
            take_over=take_over,
        )
        device = Device(session, streams, self.forget_device, owns_link=owns_link)
        await streams.add(session)
        return device

    def _open(self, codec: Codec) -> DeviceStreams:
        self._require_open()
        streams = DeviceStreams(self._servers, codec)
        streams.on_close = self._streams.discard
        self._streams.add(streams)
        return streams

    async def _ping_all(self) -> None:
        await asyncio.gather(*(streams.ping() for streams in list(self._streams)))


class Fleet:
    """Many devices over one stream to each server. `Client.fleet` creates it."""

    def __init__(self, client: Client, streams: DeviceStreams) -> None:
        self._client = client
        self._streams = streams

    def __repr__(self) -> str:
        return f"<nearcast.Fleet, devices: {len(self._streams.sessions)}>"

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
                self._streams, device_id, location, prefetch_m, owns_link=False, take_over=take_over
            )

        device = await attach_when_free(attach, device_id, wait_s)
        device.check_placement(stacklevel=2)
        return device


def connect(
    target: str | Sequence[str],
    *,
    token: TokenSource | None = None,
    tls: Tls | None = None,
    insecure: bool = False,
    keepalive_s: float = KEEPALIVE_S,
) -> Client:
    """Return a client of a server or a cluster. The first call of the client makes the connection.

    Use it as a context manager, or close it. It needs a running event loop; programs without one use
    `nearcast.sync.connect`.

    Parameters
    ----------
    target
        Address of the server, such as ``localhost:7433``. The default port is 7433. For a cluster, the
        addresses of some or all of its servers: a sequence, or a text with commas. Calls and publishers
        use one of them, chosen at random, and change to another one when it cannot be reached, stops or
        starts. A device goes to the server that serves it, which need not be in the list.
    token
        Token of this client, for servers that require one: a text, or a function, async or not, that
        returns a valid token. Blanks and newlines before and after it do not matter. The SDK calls the
        function whenever a call or stream starts. When a token ends, the server ends the streams that
        started with it; devices and publishers continue with the next token by themselves.
    tls
        How to verify the server; None for a connection without encryption. With a token, None is only
        valid for addresses of this machine, such as ``localhost:7433``. It holds for all servers of a
        cluster, also those that another server names.
    insecure
        Whether to send a token without encryption to another machine. Others on the network path can
        read it and use its permissions. Set this only for networks that encrypt by themselves.
    keepalive_s
        After this time without data from the server the connection sends a ping. If there is no response
        within ten seconds, the SDK closes the connection and opens another one. Use at least 1 s:
        servers disconnect clients that ping more often than twice a second. A device notices within five
        seconds that a server does not respond to a request, whatever this value is
        (`Subscription.state`).

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
    servers = _servers(target, token, tls, keepalive_s, insecure=insecure is True)
    if token and tls is None and insecure is not True:
        _require_loopback(target)
    return Client(servers)


def _require_loopback(target: str | Sequence[str]) -> None:
    """Raise the refusal of a token that would be sent unencrypted to another machine."""
    for text in address_texts(target):
        if not is_loopback(text.strip()):
            raise invalid(
                "tls",
                None,
                f"a Tls, such as nearcast.Tls(): without it, the token would be sent to {text} "
                "unencrypted; insecure=True allows that",
            )


def _require_event_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(
            "nearcast.connect needs a running event loop: call it in a coroutine, "
            "or use nearcast.sync.connect"
        ) from None


def _servers(
    target: str | Sequence[str],
    token: TokenSource | None,
    tls: Tls | None,
    keepalive_s: float,
    *,
    insecure: bool,
) -> Servers:
    """Validate the parameters of `connect` and return the servers."""
    targets = _targets(target)
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
    return Servers(targets, token or "", tls, keepalive_s, insecure=insecure)


def _targets(target: str | Sequence[str]) -> list[str]:
    """Return the addresses for gRPC."""
    limit = "an address, such as 'localhost:7433', or several"
    if not isinstance(target, Sequence) or not target:
        raise invalid("target", target, limit)
    texts = address_texts(target)
    for text in texts:
        if not isinstance(text, str) or not text:
            raise invalid("target", target, limit)
    try:
        return [grpc_target(text) for text in texts]
    except AddressError as error:
        hint = ", and tls=nearcast.Tls() for TLS" if error.scheme else ""
        raise invalid("target", target, f"{error.limit}{hint}") from None
