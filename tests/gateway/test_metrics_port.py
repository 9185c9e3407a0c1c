"""The metrics port of a gateway, which is the server's: bounded, and closed to pages of others."""

from __future__ import annotations

import asyncio

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gateway.main import PortError
from identity import metrics_port
from tests.gateway.town import a_town, gateway_settings, running
from tests.server.test_metrics import REFERENCE, REQUESTS


@pytest.fixture
async def watched(tmp_path):
    async with a_town(tmp_path, metrics_port=0) as town:
        yield town


async def connected(town):
    return await asyncio.open_connection("127.0.0.1", town.gateway.metrics_port)


async def test_a_request_gets_a_response_or_a_refusal(watched):
    for request_head, status in REQUESTS:
        reader, writer = await connected(watched)
        writer.write(request_head)
        async with asyncio.timeout(30.0):
            head = await reader.readuntil(b"\r\n")
        writer.close()
        assert head.startswith(b"HTTP/1.1 " + status)


async def test_of_too_many_the_oldest_goes(watched, monkeypatch):
    monkeypatch.setattr(metrics_port, "CALLER_S", 600.0)
    monkeypatch.setattr(metrics_port, "CONNECTIONS_MAX", 3)
    async with asyncio.timeout(30.0):
        pairs = [await connected(watched) for _ in range(3)]
        address = f"http://127.0.0.1:{watched.gateway.metrics_port}/metrics"
        async with watched.http.get(address) as response:
            assert "nearcast_gateway_connections" in await response.text()
        assert await pairs[0][0].read() == b""
    for _, writer in pairs:
        writer.close()


async def test_an_idle_connection_is_closed(watched, monkeypatch):
    monkeypatch.setattr(metrics_port, "CALLER_S", 0.1)
    reader, writer = await connected(watched)
    writer.write(b"GET /metr")
    async with asyncio.timeout(30.0):
        assert await reader.read() == b""
    writer.close()


async def test_a_port_in_use_is_an_error_that_names_it(watched):
    port = watched.gateway.metrics_port
    settings = gateway_settings(watched.folder, watched.server, metrics_port=port)
    with pytest.raises(PortError, match=f"metrics_port is {port}, must be free"):
        async with running(settings):
            pass


async def test_the_documentation_has_every_metric(watched):
    async with watched.http.get(watched.address("/v1/status")) as response:
        assert response.status == 401
    async with watched.http.get(f"http://127.0.0.1:{watched.gateway.metrics_port}/metrics") as response:
        families = list(text_string_to_metric_families(await response.text()))
    own = {one.name for family in families for one in family.samples if one.name.startswith("nearcast_")}
    assert "nearcast_gateway_refused_total" in own
    documented = REFERENCE.read_text()
    assert [name for name in own if f"| `{name}` |" not in documented] == []
