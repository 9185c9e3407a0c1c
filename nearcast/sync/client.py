"""The blocking client: the asyncio client, on an event loop in a thread."""

from __future__ import annotations

import atexit
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

import nearcast.client
from nearcast.client import KEEPALIVE_S
from nearcast.model import Match, ServerStatus, Spec
from nearcast.sync.device import Device
from nearcast.sync.loop_thread import LoopThread, checked_timeout_s
from nearcast.sync.publisher import Publisher
from nearcast.transport.channel import Tls, TokenSource
from safe_region.scoring.idf import IdfTable


class Client:
    """A connection to a server or a cluster, for programs without an event loop.

    `connect` creates it.

    It is a context manager. Its methods are those of `nearcast.Client`, and block until they are done.
    Any thread may call them.
    """

    def __init__(self, loop: LoopThread, client: nearcast.client.Client) -> None:
        self._loop = loop
        self._client = client
        atexit.register(self.close)  # while devices can still be detached

    def __repr__(self) -> str:
        return self._loop.call(self._client.__repr__).replace("nearcast.", "nearcast.sync.", 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def timeout_s(self) -> float | None:
        """Time limit of each call in seconds; None for no limit. It can be set at any time."""
        return self._loop.timeout_s

    @timeout_s.setter
    def timeout_s(self, timeout_s: float | None) -> None:
        self._loop.timeout_s = checked_timeout_s(timeout_s)

    def now_ms(self) -> int:
        """Return the server's time in milliseconds. See `nearcast.Client.now_ms`."""
        return self._loop.call(self._client.now_ms)

    def publisher(self) -> Publisher:
        """Return a new publisher, which uses a separate stream."""
        return Publisher(self._loop, self._loop.call(self._client.publisher))

    def attach(  # noqa: PLR0913 - all but the first by name, most with defaults
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
        """Attach a device on a separate stream. See `nearcast.Client.attach`.

        Examples
        --------
        ::

            with client.attach("courier-7", lon=14.50, lat=35.89) as device:
                print(device.search(TopK({"tea"}, k=3)))
        """
        attached = self._loop.run(
            self._client.attach,
            device_id,
            lon=lon,
            lat=lat,
            accuracy_m=accuracy_m,
            privacy_radius_m=privacy_radius_m,
            prefetch_m=prefetch_m,
            take_over=take_over,
            wait_s=wait_s,
            rng=rng,
        )
        return Device(self._loop, attached)

    @contextmanager
    def fleet(self) -> Iterator[Fleet]:
        """Carry many devices over one stream to each server, in a ``with`` block.

        See `nearcast.Client.fleet`.
        """
        block = self._client.fleet()
        fleet = self._loop.run(block.__aenter__)
        try:
            yield Fleet(self._loop, fleet)
        finally:
            self._loop.end(lambda: _left(block))

    def search(self, spec: Spec, *, lon: float, lat: float) -> list[Match]:
        """Return the result that a subscription would have at one place, now.

        See `nearcast.Client.search`.
        """
        return self._loop.run(self._client.search, spec, lon=lon, lat=lat)

    def forget_device(self, device_id: str) -> int:
        """Delete all data of a device on the server permanently; return its number of subscriptions.

        See `nearcast.Client.forget_device`.
        """
        return self._loop.run(self._client.forget_device, device_id)

    def sync(self) -> None:
        """Wait until no message is in transit. See `nearcast.Client.sync`."""
        self._loop.run(self._client.sync)

    def advance_clock(self, time_ms: int) -> None:
        """Set the virtual time of the server and of this client's devices.

        See `nearcast.Client.advance_clock`.
        """
        self._loop.run(self._client.advance_clock, time_ms)

    def set_idf(self, table: IdfTable) -> int:
        """Load another table of keyword weights; return its generation. See `nearcast.Client.set_idf`."""
        return self._loop.run(self._client.set_idf, table)

    def status(self) -> ServerStatus:
        """Return the state and the measurements of the server. It responds in every state."""
        return self._loop.run(self._client.status)

    def inspect(
        self,
        device_id: str = "",
        subscription_id: int | None = None,
        object_id: int = 0,
        *,
        object_key: str = "",
    ) -> dict[str, Any]:
        """Return the server's data about a device, one of its subscriptions, or an object.

        See `nearcast.Client.inspect`.
        """
        return self._loop.run(
            self._client.inspect, device_id, subscription_id, object_id, object_key=object_key
        )

    def network_changed(self) -> None:
        """Reconnect at once. See `nearcast.Client.network_changed`."""
        self._loop.run(self._client.network_changed)

    def close(self) -> None:
        """Detach all devices, close the connection and end the thread.

        Iterators of changes end, and calls that wait in other threads raise `ClosedError`, as later calls
        do. Results stay readable. A client that is still open is closed when the program ends.
        """
        atexit.unregister(self.close)
        self._loop.close(self._client.close)


class Fleet:
    """Many devices over one stream to each server. `Client.fleet` creates it."""

    def __init__(self, loop: LoopThread, fleet: nearcast.client.Fleet) -> None:
        self._loop = loop
        self._fleet = fleet

    def __repr__(self) -> str:
        return self._loop.call(self._fleet.__repr__).replace("nearcast.", "nearcast.sync.", 1)

    def attach(  # noqa: PLR0913 - all but the first by name, most with defaults
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
        """Attach a device. See `nearcast.Client.attach`."""
        attached = self._loop.run(
            self._fleet.attach,
            device_id,
            lon=lon,
            lat=lat,
            accuracy_m=accuracy_m,
            privacy_radius_m=privacy_radius_m,
            prefetch_m=prefetch_m,
            take_over=take_over,
            wait_s=wait_s,
            rng=rng,
        )
        return Device(self._loop, attached)


def connect(
    target: str | Sequence[str],
    *,
    token: TokenSource | None = None,
    tls: Tls | None = None,
    insecure: bool = False,
    keepalive_s: float = KEEPALIVE_S,
    timeout_s: float | None = None,
) -> Client:
    """Return a client of a server or a cluster. The first call of the client makes the connection.

    Use it as a context manager, or close it.

    Parameters
    ----------
    target
        Address of the server, such as ``localhost:7433``. The default port is 7433. For a cluster, the
        addresses of some or all of its servers. See `nearcast.connect`.
    token
        Token of this client, or a function that returns one. The function runs in the client's thread,
        and must not call the client. See `nearcast.connect`.
    tls
        How to verify the server; None for a connection without encryption.
    insecure
        Whether to send a token without encryption to another machine.
    keepalive_s
        After this time without data from the server the connection sends a ping.
    timeout_s
        Time limit of each call in seconds. A call that takes longer is cancelled and raises
        `TimeoutError`; it is then unknown whether the server has processed it. None for the limits of the
        calls themselves.

    Raises
    ------
    RefusedError
        If a parameter is wrong, or a token would be sent unencrypted to another machine.

    Examples
    --------
    ::

        client = nearcast.sync.connect("localhost:7433", timeout_s=5)
        print(client.status().state)
        client.close()
    """
    loop = LoopThread(checked_timeout_s(timeout_s))
    try:
        client = loop.call(
            lambda: nearcast.client.connect(
                target, token=token, tls=tls, insecure=insecure, keepalive_s=keepalive_s
            )
        )
    except BaseException:
        loop.close(_nothing)
        raise
    return Client(loop, client)


async def _nothing() -> None:
    """Do nothing."""


async def _left(block: Any) -> None:  # noqa: ANN401 - of contextlib
    await block.__aexit__(None, None, None)
