"""The handler of `/v1/attach`: a WebSocket becomes the conversation of one device."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Collection
from typing import TypeVar

from aiohttp import WSCloseCode, WSMessage, WSMsgType, web
from aiohttp.abc import AbstractStreamWriter

from gateway import frames
from gateway.counters import Counters
from gateway.device_socket import DeviceSocket, respond_to_ping
from gateway.fleets import Fleets
from gateway.frames import FRAME_BYTES_MAX
from gateway.handshake import PROTOCOL, header_token, require_handshake
from identity.authenticator import Authenticator
from identity.expiry import ending
from identity.principal import Principal
from identity.quotas import Account
from identity.rules import Action, require_action
from nearcast.errors import Reason, RefusedError

_FIRST_FRAME_S = 10.0
"""How long a client may take from the handshake to its token, and to its hello."""

_CLOSE_S = 5.0
"""How long to wait for the close frame of a client."""

_PINGS = (WSMsgType.PING, WSMsgType.PONG)
_PING_S = 0.1
"""Interval between two pings of a client without a token, beyond which they wait."""

_NEVER_FULL = 2**62
"""Bytes after which a WebSocket would wait when it sends: `DeviceSocket` bounds what waits."""


_Frame = TypeVar("_Frame")


class Attachment:
    """Serves WebSockets.

    Parameters
    ----------
    authenticator
        Authenticates devices.
    fleets
        The streams to the server.
    counters
        The counters of the gateway.
    origins
        Origins of pages that may connect.
    heartbeat_s
        Interval between pings on a connection that is silent.
    """

    def __init__(
        self,
        authenticator: Authenticator,
        fleets: Fleets,
        counters: Counters,
        origins: Collection[str],
        heartbeat_s: float,
    ) -> None:
        self.sockets: set[DeviceSocket] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._authenticator = authenticator
        self._fleets = fleets
        self._counters = counters
        self._origins = origins
        self._heartbeat_s = heartbeat_s

    async def idle(self) -> None:
        """Wait until no device is connected."""
        await self._idle.wait()

    async def handle(self, request: web.Request) -> web.WebSocketResponse:
        """Serve one WebSocket until it ends."""
        try:
            require_handshake(request, self._origins)
        except RefusedError:
            self._counters.handshakes_refused += 1
            raise
        socket = web.WebSocketResponse(
            timeout=_CLOSE_S,
            heartbeat=self._heartbeat_s,
            protocols=(PROTOCOL,),
            compress=False,
            autoping=False,
            max_msg_size=FRAME_BYTES_MAX + 1,  # of which a frame must stay below
            writer_limit=_NEVER_FULL,
        )
        self._counters.sockets += 1
        try:
            writer = await socket.prepare(request)
            if request.transport is not None:
                await self._serve(request.transport, socket, writer, request)
        except RefusedError as error:
            self._counters.refused[error.reason.name] += 1
            await _refuse(socket, error)
        finally:
            self._counters.sockets -= 1
        return socket

    async def _serve(
        self,
        transport: asyncio.Transport,
        socket: web.WebSocketResponse,
        writer: AbstractStreamWriter,
        request: web.Request,
    ) -> None:
        caller = await self._caller(request, socket, transport)
        fleet = self._fleets.fleet(caller.tenant)
        caller.account.begin_stream()
        try:
            device = DeviceSocket(socket, writer, transport, caller, fleet, self._counters, request.task)
            self.sockets.add(device)
            self._idle.clear()
            try:
                with ending(caller, device.expire, device.end_expired):
                    await self._read(device, caller.account)
            except RefusedError as error:
                await device.send_away(error)
            finally:
                self.sockets.discard(device)
                if not self.sockets:
                    self._idle.set()
                await device.finish()
        finally:
            caller.account.end_stream()

    async def _caller(
        self, request: web.Request, socket: web.WebSocketResponse, transport: asyncio.Transport
    ) -> Principal:
        """Return the caller, by the token in a header or in the first frame.

        Raises
        ------
        RefusedError
            If there is none, or its role may not attach devices.
        """
        token = header_token(request)
        if token is None and not self._authenticator.is_open:
            token = await _first(_token_in(socket, transport))
        caller = self._authenticator.principal(token)
        require_action(caller, Action.ATTACH)
        return caller

    async def _read(self, device: DeviceSocket, account: Account) -> None:
        """Read frames at the rate of the caller, until the WebSocket ends."""
        message = await _first(_frame(device, account))
        if message is not None and message.type is WSMsgType.TEXT and self._authenticator.is_open:
            message = await _first(_frame(device, account))  # that was a token, which is not needed
        while message is not None and message.type is WSMsgType.BINARY:
            await _take(account)
            await device.receive(message.data)
            message = await _frame(device, account)
        if message is not None and message.type is WSMsgType.TEXT:
            device.end(WSCloseCode.UNSUPPORTED_DATA)


async def _token_in(socket: web.WebSocketResponse, transport: asyncio.Transport) -> str | None:
    """Return the text of the first frame; None if it has none. Pings before it wait for each other."""
    while (message := await socket.receive()).type in _PINGS:
        await respond_to_ping(socket, transport, message)
        await asyncio.sleep(_PING_S)
    return str(message.data) if message.type is WSMsgType.TEXT else None


async def _frame(device: DeviceSocket, account: Account) -> WSMessage | None:
    """Return the next frame; a ping before it is an operation of the caller."""
    while (message := await device.read()) is not None and message.type in _PINGS:
        await _take(account)
        await device.respond(message)
    return message


async def _take(account: Account) -> None:
    """Wait until the caller may have an operation."""
    while wait_s := account.take(1):  # noqa: ASYNC110 - time has no event
        await asyncio.sleep(wait_s)


async def _first(frame: Awaitable[_Frame]) -> _Frame:
    """Return the first frame.

    Raises
    ------
    RefusedError
        If it does not come in time.
    """
    try:
        async with asyncio.timeout(_FIRST_FRAME_S):
            return await frame
    except TimeoutError:
        limit = f"there within {_FIRST_FRAME_S:g} s"
        raise RefusedError(Reason.INVALID_FIELD, "frame", "absent", limit) from None


async def _refuse(socket: web.WebSocketResponse, error: RefusedError) -> None:
    """Send the reason of a refusal as the last message, and close."""
    with contextlib.suppress(ConnectionError, RuntimeError):  # the client has closed
        await socket.send_bytes(frames.go_away_frame(error))
        await socket.close(code=WSCloseCode.POLICY_VIOLATION)
