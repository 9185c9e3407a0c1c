"""A device of the SDK's session that speaks WebSocket to one of several gateways."""

from __future__ import annotations

import asyncio
import contextlib
import secrets

import aiohttp

from nearcast.errors import Reason
from nearcast.protocol.clock import Clock
from nearcast.protocol.device_session import DeviceSession, Response
from nearcast.protocol.location import Location
from nearcast.wire.errors import refusal_from

_PAUSE_S = 0.05


class WebDevice:
    """A device. It connects to the next gateway when its connection ends.

    Parameters
    ----------
    http
        Opens connections.
    addresses
        Of the gateways; the device starts with the first.
    name, lon, lat
        The device, and where it is.
    """

    def __init__(self, http, addresses, name, lon, lat):
        self._http = http
        self._addresses = addresses
        self._queue = asyncio.Queue()
        self._changed = asyncio.Event()
        location = Location(lon, lat, 0.0, 0.0, None)
        self.session = DeviceSession(name, secrets.token_bytes(8), Clock(), self._send, location)
        self.session.on_event = self._changed.set
        self.connection_count = 0
        self._task = asyncio.create_task(self._run())

    async def until(self, check):
        """Wait until something holds after an event."""
        while not check():
            if self._task.done():
                self._task.result()
            self._changed.clear()
            if not check():
                await self._changed.wait()

    async def close(self):
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def caught_up(self):
        """Wait until all that the server had written before has arrived."""
        number = self.connection_count
        arrived = asyncio.Event()
        await self.until(lambda: self.session.is_caught_up)
        self.session.ping(arrived.set)
        await arrived.wait()
        if self.connection_count != number or not self.session.is_online:
            await self.caught_up()

    def _send(self, request):
        self._queue.put_nowait(request)

    async def _run(self):
        while self.session.error is None:
            address = self._addresses[self.connection_count % len(self._addresses)]
            self.connection_count += 1
            with contextlib.suppress(aiohttp.ClientError, OSError):
                async with self._http.ws_connect(address, protocols=("nearcast.v1",)) as socket:
                    await self._converse(socket)
            self.session.disconnect()
            await asyncio.sleep(_PAUSE_S)

    async def _converse(self, socket):
        self._queue = asyncio.Queue()
        self.session.connect()
        writing = asyncio.create_task(self._write(socket))
        try:
            async for message in socket:
                response = Response.FromString(message.data)
                if response.HasField("go_away"):
                    return
                if response.HasField("rejection") and _is_for_later(response.rejection.error):
                    return
                self.session.receive(response)
        finally:
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)

    async def _write(self, socket):
        while True:
            request = await self._queue.get()
            await socket.send_bytes(request.SerializeToString())


def _is_for_later(error):
    return refusal_from(error).reason is Reason.RECOVERING
