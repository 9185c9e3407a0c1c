"""The WebSocket of one device: frames that wait to be written, and reading that the gateway can end.

Writing never waits: what the network does not take stays in the transport. So a slow device costs others
nothing.
"""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import WSCloseCode, WSMessage, web
from aiohttp.abc import AbstractStreamWriter

from gateway.counters import Counters
from gateway.first_frames import respond_to_ping

EVENTS_MAX = 256
BYTES_MAX = 1024 * 1024
"""Frames that wait for a slow device, and their bytes; beyond, it is detached. As the server's."""

_HIGH_WATER = 2 * BYTES_MAX
"""Bytes after which the transport would make a close wait for a device that does not read."""

_DRAIN_S = 60.0
"""How long a slow device may take to read what waits; then its connection is closed."""


class DeviceSocket:
    """One WebSocket.

    Parameters
    ----------
    socket
        The WebSocket, which never waits when it sends (`writer_limit`).
    writer
        Its writer, which waits until it has drained.
    transport
        Its transport.
    counters
        The counters of the gateway.
    handler
        The task that reads and closes the WebSocket. (A WebSocket that another task closes does not wait
        for the close frame of its client.)
    """

    __slots__ = (
        "_code",
        "_counters",
        "_handler",
        "_is_reading",
        "_socket",
        "_transport",
        "_waiting_count",
        "_writer",
    )

    def __init__(
        self,
        socket: web.WebSocketResponse,
        writer: AbstractStreamWriter,
        transport: asyncio.Transport,
        counters: Counters,
        handler: asyncio.Task[Any],
    ) -> None:
        transport.set_write_buffer_limits(high=_HIGH_WATER)
        self._socket = socket
        self._writer = writer
        self._transport = transport
        self._counters = counters
        self._handler = handler
        self._waiting_count = 0
        self._code: int | None = None
        self._is_reading = False

    async def send(self, frame: bytes) -> bool:
        """Write a frame without waiting; return whether more waits than a device may leave unread."""
        counters = self._counters
        counters.frames_sent += 1
        counters.bytes_sent += len(frame)
        if not self._transport.get_write_buffer_size():
            self._waiting_count = 0
        self._waiting_count += 1
        try:
            await self._socket.send_bytes(frame)
        except (ConnectionError, RuntimeError):  # it is closing
            return False
        return self._waiting_count > EVENTS_MAX or self._transport.get_write_buffer_size() > BYTES_MAX

    async def drain(self) -> bool:
        """Wait until all is read that waits; return False if that takes too long, or it has closed."""
        transport = self._transport
        transport.set_write_buffer_limits(high=0)
        try:
            async with asyncio.timeout(_DRAIN_S):
                await self._writer.drain()
        except (TimeoutError, ConnectionError):
            transport.abort()
            return False
        transport.set_write_buffer_limits(high=_HIGH_WATER)
        self._waiting_count = 0
        return True

    async def respond(self, ping: WSMessage) -> None:
        """Respond to a ping."""
        await respond_to_ping(self._socket, self._transport, ping)

    async def read(self) -> WSMessage | None:
        """Return the next frame, which may be a ping; None if the WebSocket is to be closed."""
        if self._code is not None:
            return None
        self._is_reading = True
        try:
            return await self._socket.receive()
        except asyncio.CancelledError:
            if self._code is None or self._handler.uncancel():
                raise
            return None
        finally:
            self._is_reading = False

    def end(self, code: int) -> None:
        """Let the handler of the connection close the WebSocket: `read` returns None from now on."""
        if self._code is None:
            self._code = code
            if self._is_reading:
                self._handler.cancel()

    async def close(self) -> None:
        """Close the WebSocket, if its client has not."""
        await self._socket.close(code=self._code or WSCloseCode.OK, drain=False)
        if self._transport.get_write_buffer_size():
            self._transport.abort()  # nobody reads it
