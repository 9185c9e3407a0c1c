"""The handler of `/v1/watch`: a WebSocket becomes a stream of `Watch`, with the token of its client.

A frame is read from the server when the previous one has been written, so a client that reads slowly gets
fewer frames, and nothing waits here but one. The server decides about requests; this gateway verifies
tokens and roles, and reads at the rate of the caller.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection, Coroutine
from typing import Any

import grpc
from aiohttp import WSCloseCode, WSMessage, WSMsgType, web

from gateway.counters import Counters
from gateway.first_frames import PINGS, caller_of, first, respond_to_ping
from gateway.frames import parsed
from gateway.handshake import accepted
from identity.authenticator import Authenticator
from identity.quotas import Account
from identity.rules import Action
from nearcast.errors import Reason, RefusedError
from nearcast.transport.calls import wire_error
from nearcast.transport.servers import Servers
from nearcast.v1 import control_service_pb2
from nearcast.wire.errors import error_message, refusal_from

FRAME_BYTES_MAX = 4 * 1024
"""Size of a request, as the server bounds it."""

_METHOD = "/nearcast.v1.ControlService/Watch"
_UNREAD_S = 60.0
"""How long a client may take to read a frame; then its connection is closed."""

_COMING_BACK = (Reason.DRAINING, Reason.RECOVERING)

Request = control_service_pb2.WatchRequest
Frame = control_service_pb2.WatchFrame


class Watching:
    """Serves the WebSockets of watchers.

    Parameters
    ----------
    servers
        The servers, for calls with the tokens of their callers.
    authenticator
        Authenticates operators.
    counters
        The counters of the gateway.
    origins
        Origins of pages that may connect.
    heartbeat_s
        Interval between pings on a connection that is silent.
    """

    def __init__(
        self,
        servers: Servers,
        authenticator: Authenticator,
        counters: Counters,
        origins: Collection[str],
        heartbeat_s: float,
    ) -> None:
        self._servers = servers
        self._authenticator = authenticator
        self._counters = counters
        self._origins = origins
        self._heartbeat_s = heartbeat_s
        self._stopping = asyncio.Event()

    def drain(self) -> None:
        """End all connections."""
        self._stopping.set()

    async def handle(self, request: web.Request) -> web.WebSocketResponse:
        """Serve one WebSocket until it ends."""
        socket = accepted(request, self._origins, self._counters, self._heartbeat_s, FRAME_BYTES_MAX)
        counters = self._counters
        counters.sockets += 1
        try:
            await socket.prepare(request)
            if request.transport is not None:
                await self._serve(request.transport, socket, request)
        except RefusedError as error:
            counters.refused[error.reason.name] += 1
            await _refuse(socket, error)
        finally:
            counters.sockets -= 1
        return socket

    async def _serve(
        self, transport: asyncio.Transport, socket: web.WebSocketResponse, request: web.Request
    ) -> None:
        caller, token = await caller_of(request, socket, transport, self._authenticator, Action.WATCH)
        caller.account.begin_stream()
        self._counters.watchers += 1
        try:
            reading = _Reading(socket, transport, caller.account)
            message = await first(reading.frame())
            if message.type is WSMsgType.TEXT and self._authenticator.is_open:
                message = await first(reading.frame())  # that was a token, which is not needed
            metadata = [] if token is None else [("authorization", f"Bearer {token}")]
            channel = await self._servers.connected()
            call = channel.byte_stream(_METHOD)(metadata=metadata)
            try:
                await self._converse(reading, message, call, transport)
            except RefusedError as error:
                self._servers.failed(channel, error)
                raise
            finally:
                call.cancel()
        finally:
            self._counters.watchers -= 1
            caller.account.end_stream()

    async def _converse(
        self,
        reading: _Reading,
        message: WSMessage,
        call: Any,  # noqa: ANN401
        transport: asyncio.Transport,
    ) -> None:
        """Forward requests and frames until either side ends."""
        counters, socket = self._counters, reading.socket
        tasks = [
            asyncio.create_task(self._forward(call, socket, transport)),
            asyncio.create_task(self._stopped()),
        ]
        try:
            while message.type is WSMsgType.BINARY:
                await reading.account.acquire(1)
                counters.frames_received += 1
                counters.bytes_received += len(message.data)
                data = parsed(Request, message.data).SerializeToString()
                with contextlib.suppress(asyncio.InvalidStateError, grpc.aio.AioRpcError):
                    await call.write(data)  # if not, the task has the reason
                message = await _unless(reading.frame(), tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if message.type is WSMsgType.TEXT:
            await socket.close(code=WSCloseCode.UNSUPPORTED_DATA)

    async def _forward(
        self,
        call: Any,  # noqa: ANN401
        socket: web.WebSocketResponse,
        transport: asyncio.Transport,
    ) -> None:
        """Write the frames of the server, one at a time.

        Raises
        ------
        RefusedError
            When the server has ended the stream.
        """
        counters = self._counters
        try:
            while (frame := await call.read()) is not grpc.aio.EOF:
                counters.frames_sent += 1
                counters.bytes_sent += len(frame)
                async with asyncio.timeout(_UNREAD_S):
                    await socket.send_bytes(frame)
        except grpc.aio.AioRpcError as error:
            refused = wire_error(error)
            if refused is not None:
                raise refusal_from(refused) from None
        except TimeoutError:
            counters.slow += 1
            transport.abort()
        except (ConnectionError, RuntimeError):  # it is closing
            return
        raise RefusedError(Reason.RECOVERING, "server", "not reachable", "there; connect again")

    async def _stopped(self) -> None:
        """Raise RefusedError when this gateway is stopping."""
        await self._stopping.wait()
        raise RefusedError(Reason.DRAINING, "gateway", "stopping", "running; connect again")


class _Reading:
    """The frames of one client.

    Parameters
    ----------
    socket
        The WebSocket.
    transport
        Its transport.
    account
        The account of the caller.
    """

    def __init__(
        self, socket: web.WebSocketResponse, transport: asyncio.Transport, account: Account
    ) -> None:
        self.socket = socket
        self.account = account
        self._transport = transport

    async def frame(self) -> WSMessage:
        """Return the next frame; a ping before it is an operation of the caller."""
        while (message := await self.socket.receive()).type in PINGS:
            await self.account.acquire(1)
            await respond_to_ping(self.socket, self._transport, message)
        return message


async def _unless(frame: Coroutine[None, None, WSMessage], tasks: list[asyncio.Task[None]]) -> WSMessage:
    """Return a frame, unless one of the tasks ends first, whose error is then raised."""
    reading = asyncio.create_task(frame)
    try:
        await asyncio.wait({reading, *tasks}, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            if task.done():
                task.result()
        return await reading
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


async def _refuse(socket: web.WebSocketResponse, error: RefusedError) -> None:
    """Send the reason for the end as the last message, and close."""
    frame = Frame(go_away={"error": error_message(error)})
    is_coming_back = error.reason in _COMING_BACK
    code = WSCloseCode.SERVICE_RESTART if is_coming_back else WSCloseCode.POLICY_VIOLATION
    with contextlib.suppress(ConnectionError, RuntimeError):  # the client has closed
        await socket.send_bytes(frame.SerializeToString())
        await socket.close(code=code)
