"""A real server, a real gateway in front of it, and devices that speak WebSocket."""

from __future__ import annotations

import asyncio
import contextlib
from types import SimpleNamespace

import aiohttp

from gateway.main import Gateway
from gateway.settings import GatewaySettings
from nearcast.v1 import device_service_pb2, errors_pb2
from tests.support.identity import keys_in, token
from tests.wire.city import a_city
from tests.wire.test_bad_input import a_spec, hello, subscribe

Request = device_service_pb2.AttachRequest
Response = device_service_pb2.AttachResponse

PATIENCE_S = 120.0
"""Nothing takes that long: who waits longer waits for ever."""


class Client:
    """A WebSocket that carries one device.

    Parameters
    ----------
    socket
        The connection.
    """

    def __init__(self, socket):
        self.socket = socket

    async def send(self, request):
        data = request if isinstance(request, bytes) else request.SerializeToString()
        await self.socket.send_bytes(data)

    async def receive(self):
        """Return the next response."""
        async with asyncio.timeout(PATIENCE_S):
            message = await self.socket.receive()
        assert message.type is aiohttp.WSMsgType.BINARY, (message, self.socket.close_code)
        return Response.FromString(message.data)

    async def closed(self):
        """Return the code with which the gateway closes."""
        async with asyncio.timeout(PATIENCE_S):
            while (await self.socket.receive()).type is aiohttp.WSMsgType.BINARY:
                pass
        return self.socket.close_code

    async def attach(self, device_id="device", **fields):
        """Say hello; return the welcome."""
        await self.send(hello(device_id=device_id, **fields))
        response = await self.receive()
        assert response.HasField("welcome"), response
        return response.welcome

    async def subscribe(self, number=1, **fields):
        """Subscribe; return the first delta."""
        await self.send(Request(subscribe=subscribe(number, a_spec(**fields))))
        response = await self.receive()
        assert response.HasField("delta"), response
        return response.delta

    async def ping(self, number=1):
        """Return when everything that was sent before has its responses, which are returned."""
        await self.send(Request(ping=device_service_pb2.Ping(number=number)))
        found = []
        while not (response := await self.receive()).HasField("pong"):
            found.append(response)
        return found


async def until(condition):
    """Wait for something that happens by itself."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event to offer
            await asyncio.sleep(0.01)


def reason_of(error):
    return errors_pb2.ErrorReason.Name(error.reason).removeprefix("ERROR_REASON_")


@contextlib.asynccontextmanager
async def running(settings):
    gateway = Gateway(settings)
    await gateway.start()
    try:
        yield gateway
    finally:
        if not gateway.readiness.is_draining:
            await gateway.stop()


def gateway_settings(folder, server, **flags):
    """The settings of a gateway that knows the tests' keys and has tokens of two tenants."""
    files = []
    for tenant in ("", "acme"):
        path = folder / f"gateway-{tenant}.token"
        path.write_text(token("gateway", "gateway", tenant=tenant), encoding="utf-8")
        files.append(path)
    return GatewaySettings(
        **{
            "port": 0,
            "server": f"127.0.0.1:{server.port}",
            "server_token_file": files,
            "jwks": keys_in(folder),
            "tenants": ("acme",),
            **flags,
        }
    )


class Town(SimpleNamespace):
    """A server and a gateway."""

    def address(self, path="/v1/attach", scheme="http"):
        return f"{scheme}://127.0.0.1:{self.gateway.port}{path}"

    def with_http(self, http):
        """The same town, for clients with other connections."""
        return Town(**{**vars(self), "http": http})

    @contextlib.asynccontextmanager
    async def client(self, *roles, name="device", **claims):
        """A connection with a token of the device's own, unless roles are given."""
        who = token(name, *(roles or ("device",)), **claims)
        async with self.connect(f"bearer.{who}") as client:
            yield client

    @contextlib.asynccontextmanager
    async def connect(self, *protocols, path="/v1/attach", **options):
        offered = ("nearcast.v1", *protocols)
        async with self.http.ws_connect(self.address(path), protocols=offered, **options) as socket:
            yield Client(socket)


@contextlib.asynccontextmanager
async def a_town(folder, server_flags=None, **flags):
    """A server and a gateway that know the tests' keys."""
    async with (
        a_city(folder, **(server_flags or {})) as city,
        running(gateway_settings(folder, city.server, **flags)) as gateway,
        aiohttp.ClientSession() as http,
    ):
        yield Town(**vars(city), gateway=gateway, http=http, folder=folder)
