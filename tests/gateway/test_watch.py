"""Operators watch through a gateway: the stream of `Watch` over a WebSocket."""

from __future__ import annotations

import asyncio
import contextlib

import aiohttp

from nearcast.v1 import control_service_pb2
from tests.gateway.town import PATIENCE_S, until
from tests.support.identity import token
from tests.wire.city import publish
from tests.wire.test_bad_input import an_object

PUBLISHER = token("publisher", "publisher")
VIEW = {"lon_min": 14.0, "lat_min": 35.0, "lon_max": 15.0, "lat_max": 36.0}


def watch(**fields):
    return control_service_pb2.WatchRequest(**{"view": VIEW, "interval_ms": 100, **fields})


class Viewer:
    """A WebSocket that carries frames."""

    def __init__(self, socket):
        self.socket = socket

    async def send(self, request):
        await self.socket.send_bytes(request.SerializeToString())

    async def frame(self):
        """Return the next frame."""
        async with asyncio.timeout(PATIENCE_S):
            message = await self.socket.receive()
        assert message.type is aiohttp.WSMsgType.BINARY, (message, self.socket.close_code)
        return control_service_pb2.WatchFrame.FromString(message.data)

    async def refused(self):
        """Return the error of the last message, after the connection has closed."""
        async with asyncio.timeout(PATIENCE_S):
            frames = [message.data async for message in self.socket]
        return control_service_pb2.WatchFrame.FromString(frames[-1]).go_away.error


@contextlib.asynccontextmanager
async def viewer(town, *roles, **claims):
    """A connection with a token in the handshake."""
    who = token("operator", *(roles or ("operator",)), **claims)
    async with connection(town, f"bearer.{who}") as found:
        yield found


@contextlib.asynccontextmanager
async def connection(town, *protocols):
    offered = ("nearcast.v1", *protocols)
    async with town.http.ws_connect(town.address("/v1/watch"), protocols=offered) as socket:
        yield Viewer(socket)


async def test_frames_have_devices_and_objects(town):
    async with town.client() as client, viewer(town) as one:
        await client.attach()
        (number,) = (await publish(town, PUBLISHER, an_object())).ids
        await one.send(watch())
        frame = await one.frame()
        assert frame.reset
        assert frame.sequence == frame.request_number == 1
        assert list(frame.devices.ids) == ["device"]
        assert list(frame.objects.ids) == [number]
        assert not (await one.frame()).reset
        assert town.gateway.counters.watchers == 1
    await until(lambda: town.gateway.counters.watchers == 0)
