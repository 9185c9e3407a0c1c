"""The handler of `/v1/attach`: a WebSocket becomes the conversation of one device."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection

from aiohttp import WSCloseCode, WSMessage, WSMsgType, web
from aiohttp.abc import AbstractStreamWriter

from gateway import frames
from gateway.conversation import Conversation
from gateway.counters import Counters
from gateway.device_socket import DeviceSocket
from gateway.first_frames import PINGS, caller_of, first
from gateway.fleets import Fleets
from gateway.frames import FRAME_BYTES_MAX
from gateway.handshake import accepted
from identity.authenticator import Authenticator
from identity.expiry import ending
from identity.quotas import Account
from identity.rules import Action
from nearcast.errors import RefusedError

_NEVER_FULL = 2**62
"""Bytes after which a WebSocket would wait when it sends: `DeviceSocket` bounds what waits."""


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
        self.conversations: set[Conversation] = set()
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
        socket = accepted(
            request,
            self._origins,
            self._counters,
            self._heartbeat_s,
            FRAME_BYTES_MAX,
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
        caller, _ = await caller_of(request, socket, transport, self._authenticator, Action.ATTACH)
        fleet = self._fleets.fleet(caller.tenant)
        caller.account.begin_stream()
        try:
            own = DeviceSocket(socket, writer, transport, self._counters, request.task)
            device = Conversation(own, caller, fleet, self._counters)
            self.conversations.add(device)
            self._idle.clear()
            try:
                with ending(caller, device.expire, device.end_expired):
                    await self._read(device, caller.account)
            except RefusedError as error:
                await device.send_away(error)
            finally:
                self.conversations.discard(device)
                if not self.conversations:
                    self._idle.set()
                await device.finish()
        finally:
            caller.account.end_stream()

    async def _read(self, device: Conversation, account: Account) -> None:
        """Read frames at the rate of the caller, until the WebSocket ends."""
        message = await first(_frame(device, account))
        if message is not None and message.type is WSMsgType.TEXT and self._authenticator.is_open:
            message = await first(_frame(device, account))  # that was a token, which is not needed
        while message is not None and message.type is WSMsgType.BINARY:
            await account.acquire(1)
            await device.receive(message.data)
            message = await _frame(device, account)
        if message is not None and message.type is WSMsgType.TEXT:
            device.end(WSCloseCode.UNSUPPORTED_DATA)


async def _frame(device: Conversation, account: Account) -> WSMessage | None:
    """Return the next frame; a ping before it is an operation of the caller."""
    while (message := await device.socket.read()) is not None and message.type in PINGS:
        await account.acquire(1)
        await device.socket.respond(message)
    return message


async def _refuse(socket: web.WebSocketResponse, error: RefusedError) -> None:
    """Send the reason of a refusal as the last message, and close."""
    with contextlib.suppress(ConnectionError, RuntimeError):  # the client has closed
        await socket.send_bytes(frames.go_away_frame(error))
        await socket.close(code=WSCloseCode.POLICY_VIOLATION)
