"""The servers of a cluster, and one connection to each of them.

Calls and publishers use the current server. It is chosen at random, so that clients spread over the
servers, and stays the same until it cannot be reached, stops or starts. Then the next one of the list
takes its place. Devices use the server that serves them, which need not be in the list.

With one server in the list, gRPC waits for it and repeats calls. With several, the SDK does: it opens a
connection first, so it knows that a server which cannot be reached has not received the request.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import grpc

from nearcast.address import AddressError, server_address
from nearcast.errors import ClosedError, NearcastError, Reason, RefusedError, UnavailableError
from nearcast.transport.backoff import backoff_s
from nearcast.transport.calls import await_response, is_coming_back, named_server
from nearcast.transport.channel import Channel, Tls, TokenSource
from nearcast.transport.loopback import is_loopback

_HOPS_MAX = 3
"""Servers that one call follows."""

_TRIES_MAX = 5
"""Attempts for a call that is safe to repeat, with several servers; as many as gRPC makes with one."""

_Answer = TypeVar("_Answer")

Method = Callable[[Channel], Any]
"""Returns the method of a connection, such as ``lambda channel: channel.devices.Search``."""


class Servers:
    """The servers that a client knows.

    Parameters
    ----------
    targets
        Their addresses.
    token
        Token of this client; empty for servers that do not require one.
    tls
        How to verify a server; None for connections without encryption.
    keepalive_s
        Time without data after which a connection sends a ping.
    keepalive_timeout_s
        See `Channel`.
    insecure
        Whether a token may be sent without encryption to another machine.
    has_callers_tokens
        Whether calls have the tokens of their callers, which are protected as `token` is.
    """

    def __init__(
        self,
        targets: Sequence[str],
        token: TokenSource,
        tls: Tls | None,
        keepalive_s: float,
        *,
        keepalive_timeout_s: float | None = None,
        insecure: bool = False,
        has_callers_tokens: bool = False,
    ) -> None:
        self._token = token
        self._sends_tokens = bool(token) or has_callers_tokens
        self._tls = tls
        self._keepalive_s = keepalive_s
        self._keepalive_timeout_s = keepalive_timeout_s
        self._insecure = insecure
        self._jitter = random.Random()
        self._target = ",".join(targets)
        order = list(dict.fromkeys(targets))
        self._jitter.shuffle(order)
        self.is_single = len(order) == 1
        """Whether the list has one server."""
        self._listed = [self._channel(target, has_retries=self.is_single) for target in order]
        self._others: dict[str, Channel] = {}
        self._users: Counter[Channel] = Counter()
        self._closing: set[asyncio.Task[None]] = set()
        self._is_closed = False

    @property
    def target(self) -> str:
        """Addresses of the list, separated by commas."""
        return self._target

    @property
    def listed(self) -> tuple[Channel, ...]:
        """Connections of the servers of the list."""
        return tuple(self._listed)

    @property
    def current(self) -> Channel:
        """Connection of the server that calls and publishers use."""
        return self._listed[0]

    @property
    def is_encrypted(self) -> bool:
        """Whether the connections are encrypted."""
        return self.current.is_encrypted

    @property
    def can_renew_token(self) -> bool:
        """Whether the client can get another token when one is no longer valid."""
        return self.current.can_renew_token

    @property
    def tries_max(self) -> int:
        """Attempts for a call that is safe to repeat; with one server gRPC makes them."""
        return 1 if self.is_single else _TRIES_MAX

    def is_only(self, channel: Channel) -> bool:
        """Return whether a connection is that of the only known server, for which gRPC waits."""
        return self.is_single and channel is self.current

    def at(self, address: str) -> Channel:
        """Return the connection of a server that another server named. The caller then calls `use`.

        Raises
        ------
        RefusedError
            If the address is not valid, or a token would be sent unencrypted to another machine.
        """
        try:
            target = server_address(address)
        except AddressError as error:
            raise _refused_address(address, error.limit) from None
        if self._sends_tokens and self._tls is None and not self._insecure and not is_loopback(target):
            limit = (
                "of this machine without TLS: the token would be sent unencrypted; set tls or insecure"
            )
            raise _refused_address(target, limit)
        for channel in self._listed:
            if channel.target == target:
                return channel
        if target not in self._others:
            self._others[target] = self._channel(target, has_retries=False)
        return self._others[target]

    def use(self, channel: Channel) -> None:
        """Keep a connection open until `release`."""
        self._users[channel] += 1

    def release(self, channel: Channel) -> None:
        """Close a connection that nothing uses any more, unless its server is in the list."""
        self._users[channel] -= 1
        if not self._users[channel]:
            del self._users[channel]
            if self._others.get(channel.target) is channel:
                self._close_soon(self._others.pop(channel.target))

    def after(self, channel: Channel) -> Channel:
        """Return the connection to use instead of one; if it was the current one, change that."""
        if channel is self.current:
            self._listed.append(self._listed.pop(0))
        return self.current

    async def connected(self, first: Channel | None = None, *, waits: bool = False) -> Channel:
        """Return the connection of a server that can be reached, or of `first` if there is none.

        The only known server is returned without a check.

        Parameters
        ----------
        first
            Connection to try first; by default the current one.
        waits
            Whether to wait until a server can be reached.
        """
        first = first or self.current
        for attempt in itertools.count(1):
            self.require_open()
            candidates = list(dict.fromkeys([first, *self._listed]))
            if len(candidates) == 1:
                break
            for channel in candidates:
                if await channel.connects():
                    return self._chosen(channel)
            if not waits:
                break
            await asyncio.sleep(backoff_s(attempt, self._jitter))
        return first

    def _chosen(self, channel: Channel) -> Channel:
        """Make a connection the current one, if it is of the list and the current one has failed."""
        if channel in self._listed and not self.current.is_connected:
            while self.current is not channel:
                self.after(self.current)
        return channel

    async def call(
        self,
        method: Method,
        request: Any,  # noqa: ANN401
        first: Channel | None = None,
        *,
        waits: bool = False,
    ) -> Any:  # noqa: ANN401
        """Call a method of a server, `first` or the current one, and of the one that it names.

        Raises
        ------
        RefusedError
            If the server refuses the call.
        UnavailableError
            If no server can be reached, or the connection broke.
        """
        channel = await self.connected(first, waits=waits)
        return await self.follow(channel, lambda one: self._call(one, method, request, waits=waits))

    async def follow(self, channel: Channel, call: Callable[[Channel], Awaitable[_Answer]]) -> _Answer:
        """Make a call at a server, and at the one that its refusal names, and so on, three times at most.

        Raises
        ------
        RefusedError
            If a server names one whose address cannot be used (see `at`). Errors of the call are raised
            as they are.
        """
        for hops_left in range(_HOPS_MAX, -1, -1):
            self.use(channel)
            try:
                return await call(channel)
            except (RefusedError, grpc.aio.AioRpcError) as error:
                address = named_server(error)
                if not (hops_left and address):
                    raise
                following = self.at(address)
            finally:
                self.release(channel)
            channel = following
        raise AssertionError("unreachable")

    async def _call(self, channel: Channel, method: Method, request: Any, *, waits: bool) -> Any:  # noqa: ANN401
        metadata = await channel.metadata()
        self.require_open()
        waits = waits and self.is_only(channel)
        call = method(channel)(request, metadata=metadata, wait_for_ready=waits)
        try:
            return await await_response(call, is_encrypted=self.is_encrypted)
        except NearcastError as error:
            self.failed(channel, error)
            raise

    def failed(self, channel: Channel, error: NearcastError) -> None:
        """Change the current server if the error shows that it does not serve.

        Raises
        ------
        ClosedError
            If the connections are closed, which is then the cause.
        """
        self.require_open()
        if isinstance(error, UnavailableError) or is_coming_back(error):
            self.after(channel)

    def require_open(self) -> None:
        """Raise ClosedError if the connections are closed."""
        if self._is_closed:
            raise ClosedError("the client is closed")

    async def renew(self, notify: Callable[[], None]) -> None:
        """Replace all connections. `notify` is called before the old ones are closed."""
        old = [channel.renew() for channel in self._all()]
        notify()
        await asyncio.gather(*(channel.close() for channel in old))

    async def close(self) -> None:
        """Close all connections."""
        self._is_closed = True
        await asyncio.gather(*(channel.close() for channel in self._all()), *self._closing)

    def _all(self) -> list[Channel]:
        return [*self._listed, *self._others.values()]

    def _channel(self, target: str, *, has_retries: bool) -> Channel:
        return Channel(
            target,
            self._token,
            self._tls,
            self._keepalive_s,
            keepalive_timeout_s=self._keepalive_timeout_s,
            has_retries=has_retries,
        )

    def _close_soon(self, channel: Channel) -> None:
        """Close a connection in the background."""
        task = asyncio.create_task(channel.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


def _refused_address(address: str, limit: str) -> RefusedError:
    return RefusedError(Reason.ANOTHER_SERVER, "server", repr(address), limit, server=address)
