"""Operators watch through a gateway: the stream of `Watch` over a WebSocket."""

from __future__ import annotations

import asyncio
import contextlib

import aiohttp
import pytest

from nearcast.v1 import control_service_pb2
from tests.gateway.town import PATIENCE_S, a_town, reason_of, until
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


async def test_another_request_replaces_the_view(town):
    async with viewer(town) as one:
        await publish(town, PUBLISHER, an_object())
        await one.send(watch())
        assert (await one.frame()).objects.ids
        await one.send(watch(keyword="juice"))
        while (frame := await one.frame()).request_number == 1:
            pass
        assert frame.reset
        assert not frame.objects.ids


async def test_the_token_may_be_in_the_first_frame(town):
    async with connection(town) as one:
        await one.socket.send_str(token("operator", "operator"))
        await one.send(watch())
        assert (await one.frame()).reset


async def test_a_gateway_without_tokens_lets_everybody_watch(tmp_path):
    flags = {"jwks": None, "tenants": (), "server_token_file": ()}
    async with a_town(tmp_path, {"jwks": None, "tenants": []}, **flags) as town, connection(town) as one:
        await one.socket.send_str("any")
        await one.send(watch())
        assert (await one.frame()).reset


@pytest.mark.parametrize("role", ["device", "gateway", "publisher"])
async def test_operators_only(town, role):
    async with viewer(town, role) as one:
        await one.send(watch())
        assert reason_of(await one.refused()) == "PERMISSION_DENIED"
        assert one.socket.close_code == 1008


async def test_without_a_token_nobody_watches(town):
    async with connection(town) as one:
        await one.socket.send_str("nonsense")
        assert reason_of(await one.refused()) == "UNAUTHENTICATED"


async def test_an_operator_of_a_tenant_sees_the_tenant(town):
    async with viewer(town, tenant="acme") as one:
        await publish(town, PUBLISHER, an_object())
        shop = token("shop", "publisher", tenant="acme")
        (number,) = (await publish(town, shop, an_object())).ids
        await one.send(watch())
        frame = await one.frame()
        assert list(frame.objects.ids) == [number]
        assert frame.objects.count == 1


@pytest.mark.parametrize(
    ("request_fields", "field"),
    [({"interval_ms": 1}, "interval_ms"), ({"view": None}, "view"), ({"grid_rows": 3}, "grid_columns")],
)
async def test_the_servers_refusal_is_the_last_message(town, request_fields, field):
    async with viewer(town) as one:
        await one.send(watch())
        await one.frame()
        await one.send(watch(**request_fields))
        error = await one.refused()
        assert (reason_of(error), error.field) == ("INVALID_FIELD", field)
        assert error.limit
        assert one.socket.close_code == 1008


async def test_a_frame_that_is_no_request_is_refused(town):
    async with viewer(town) as one:
        await one.socket.send_bytes(b"\xff\xff")
        error = await one.refused()
        assert (reason_of(error), error.field) == ("INVALID_FIELD", "frame")


async def test_a_long_frame_closes(town):
    async with viewer(town) as one:
        await one.socket.send_bytes(bytes(5_000))
        assert (await one.socket.receive()).type is aiohttp.WSMsgType.CLOSE
        assert one.socket.close_code == 1009


async def test_a_text_frame_closes(town):
    async with viewer(town) as one:
        await one.send(watch())
        await one.frame()
        await one.socket.send_str("text")
        async with asyncio.timeout(PATIENCE_S):
            async for _ in one.socket:
                pass
        assert one.socket.close_code == 1003


async def test_a_page_of_another_origin_is_refused(town):
    options = {"protocols": ("nearcast.v1",), "headers": {"Origin": "https://elsewhere.example"}}
    with pytest.raises(aiohttp.WSServerHandshakeError) as failed:
        await town.http.ws_connect(town.address("/v1/watch"), **options)
    assert failed.value.status == 403


async def test_a_client_that_reads_slowly_gets_fewer_frames(town):
    """Nothing adds up here: beyond what sockets take, the stream from the server waits."""
    for _ in range(5):
        await publish(town, PUBLISHER, *(an_object() for _ in range(800)))
    async with viewer(town) as one:
        counters, sent = town.gateway.counters, -1
        while counters.frames_sent != sent:  # until a whole second brings no frame
            sent = counters.frames_sent
            for _ in range(10):
                await one.send(watch())  # the next frame has all rows again
                await asyncio.sleep(0.1)
        frames = [await one.frame() for _ in range(sent)]
        numbers = [frame.sequence for frame in frames]
        assert numbers == list(range(1, sent + 1))
        await until(lambda: counters.frames_sent > sent)


async def test_a_gateway_that_stops_ends_the_streams(town):
    async with viewer(town) as one:
        await one.send(watch())
        await one.frame()
        stopping = asyncio.create_task(town.gateway.stop())
        assert reason_of(await one.refused()) == "DRAINING"
        assert one.socket.close_code == 1012
        await stopping


async def test_a_server_that_is_gone_ends_the_streams(town):
    async with viewer(town) as one:
        await one.send(watch())
        await one.frame()
        await town.server.listener.stop(0.0)
        assert reason_of(await one.refused()) == "RECOVERING"
        assert one.socket.close_code == 1012
