"""WebSockets as lines of the load generator: bytes out, bytes in."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import aiohttp

from bench.errors import BenchError
from bench.server.lines import Line, in_chunks

_PROTOCOL = "nearcast.v1"


class SocketLine(Line):
    """One WebSocket.

    Parameters
    ----------
    number
        Number of the line.
    http
        Opens the connection.
    address
        Address of the gateway.
    """

    def __init__(self, number: int, http: aiohttp.ClientSession, address: str) -> None:
        super().__init__(number)
        self._http = http
        self._address = f"http://{address}/v1/attach"
        self._socket: aiohttp.ClientWebSocketResponse | None = None
        self._reading: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Connect, then start to read."""
        self._socket = await self._http.ws_connect(
            self._address, protocols=(_PROTOCOL,), compress=0, max_msg_size=0
        )
        self._reading = asyncio.create_task(self._read(self._socket))

    async def write(self, message: bytes) -> None:
        """Write a message."""
        if self._socket is None or self._socket.closed:
            raise BenchError(f"WebSocket {self.number} has ended")
        await self._socket.send_bytes(message)

    async def _read(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        async for message in socket:
            await self.received(message.data)

    async def end(self) -> None:
        """Close the WebSocket."""
        if self._reading is not None and self._socket is not None:
            self._reading.cancel()
            await self._socket.close()


@asynccontextmanager
async def sockets(numbers: Iterable[int], address: str) -> AsyncIterator[list[SocketLine]]:
    """Return lines of devices to a gateway, which `start` connects; close them when the block ends."""
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as http:
        lines = [SocketLine(number, http, address) for number in numbers]
        try:
            yield lines
        finally:
            await in_chunks(lines, SocketLine.end)
            lines.clear()
            gc.collect()
