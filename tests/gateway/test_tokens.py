"""Tokens of devices: the gateway verifies them by the keys and rules of the server."""

from __future__ import annotations

import time

import aiohttp
import pytest

from identity import expiry, quotas
from identity.issuer import Issuer
from tests.gateway.town import Request, a_town, reason_of
from tests.support.identity import SHORT_S, token
from tests.wire.city import publish
from tests.wire.test_bad_input import an_object, hello

OWN = token("device", "device")


async def refused(client, reason):
    away = (await client.receive()).go_away
    assert reason_of(away.error) == reason
    assert await client.closed() == 1008
    return away.error


@pytest.mark.parametrize("role", ["publisher", "operator"])
async def test_a_role_that_may_not_attach(town, role):
    async with town.client(role) as client:
        assert (await refused(client, "PERMISSION_DENIED")).field == "token.roles"


@pytest.mark.parametrize(("role", "may"), [("device", False), ("gateway", True)])
async def test_a_device_of_another_id(town, role, may):
    async with town.client(role, name="somebody") as client:
        await client.send(hello(device_id="device"))
        response = await client.receive()
        if may:
            assert response.HasField("welcome")
        else:
            assert reason_of(response.rejection.error) == "PERMISSION_DENIED"
            assert response.rejection.error.field == "hello.device_id"
            assert await client.closed() == 1008


FOREIGN = {
    "of another key": (token("device", "device", by=Issuer()), "UNAUTHENTICATED"),
    "of another audience": (token("device", "device", audience="other"), "UNAUTHENTICATED"),
    "of another tenant": (token("device", "device", tenant="nowhere"), "UNAUTHENTICATED"),
    "expired": (token("device", "device", ttl_s=-60), "TOKEN_EXPIRED"),
    "garbage": ("garbage", "UNAUTHENTICATED"),
}


@pytest.mark.parametrize("name", FOREIGN)
async def test_a_foreign_token(town, name):
    who, reason = FOREIGN[name]
    async with town.connect(f"bearer.{who}") as client:
        error = await refused(client, reason)
    assert who not in error.message


async def test_without_a_token_nothing_is_read(town):
    async with town.connect() as client:
        await client.send(hello())
        await refused(client, "UNAUTHENTICATED")
    assert town.gateway.counters.streams == 0


async def test_a_token_in_the_first_frame(town):
    async with town.connect() as client:
        await client.socket.send_str(OWN)
        await client.attach()
    async with town.connect() as client:
        await client.socket.send_str("garbage")
        await refused(client, "UNAUTHENTICATED")


async def test_a_token_in_the_header(town):
    headers = {"Authorization": f"Bearer {OWN}"}
    async with town.connect(headers=headers) as client:
        await client.attach()
    async with town.connect(f"bearer.{OWN}", headers=headers) as client:
        await refused(client, "UNAUTHENTICATED")


@pytest.mark.parametrize("name", ["token", "access_token", "x"])
async def test_a_token_in_the_address_is_refused(town, name):
    with pytest.raises(aiohttp.WSServerHandshakeError) as failed:
        async with town.connect(path=f"/v1/attach?{name}={OWN}"):
            pass
    assert failed.value.status == 400
    async with town.http.get(town.address(f"/v1/status?{name}={OWN}")) as response:
        assert response.status == 400
        assert OWN not in await response.text()


async def test_tenants_are_apart(town):
    async with town.client() as one, town.client(tenant="acme") as other:
        await one.attach()
        await other.attach()  # the same id, and another device
        await one.subscribe()
        await other.subscribe()
        await publish(town, token("publisher", "publisher", tenant="acme"), an_object())
        assert (await other.receive()).delta.add
        assert not await one.ping()


async def test_a_tenant_that_the_gateway_does_not_serve(tmp_path):
    async with a_town(tmp_path, tenants=("acme", "other")) as town:
        async with town.client(tenant="other") as client:
            error = await refused(client, "PERMISSION_DENIED")
        assert error.field == "token.tenant"


@pytest.mark.parametrize("is_polite", [True, False])
async def test_a_connection_ends_with_its_token(tmp_path, monkeypatch, is_polite):
    monkeypatch.setattr(expiry, "_HALF_CLOSE_S", 3600.0 if is_polite else 0.1)
    async with a_town(tmp_path, token_skew_s=0.0) as town, town.client(ttl_s=SHORT_S) as client:
        await client.attach()
        away = (await client.receive()).go_away
        assert reason_of(away.error) == "TOKEN_EXPIRED"
        await client.send(Request())  # discarded
        if is_polite:
            await client.socket.close()
        else:
            assert await client.closed() == 1008
        async with town.client() as again:
            await again.attach()
            assert not await again.ping()


async def test_a_device_is_read_at_its_rate(tmp_path, monkeypatch):
    monkeypatch.setattr(quotas, "BURST_S", 0.01)
    async with a_town(tmp_path, device_rate=20.0) as town, town.client() as client:
        began_s = time.monotonic()
        await client.attach()  # its burst of one operation
        for _ in range(10):
            await client.ping()
        assert 10 / (time.monotonic() - began_s) <= 20.0


async def test_streams_of_one_caller_are_limited(tmp_path, monkeypatch):
    monkeypatch.setattr("identity.setup.DEVICE_STREAMS_MAX", 1)
    async with a_town(tmp_path) as town, town.client() as first:
        await first.attach()
        async with town.client() as second:
            assert (await refused(second, "RATE_LIMITED")).retry_after_ms > 0
