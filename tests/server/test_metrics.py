"""The metrics port: complete, true, bounded, and nobody's burden."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

import nearcast
from identity import metrics_port
from nearcast import Bounds, GeoObject, RegionMode, TopK
from server.counters import Counters
from server.errors import StoreError
from server.main import Server
from server.monitoring import scrapes
from server.monitoring.catalogue import COUNTERS, GAUGES, MEASURES
from tests.cli.test_serve import AREA, refused
from tests.support.servers import serving
from tests.wire.conftest import settings

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "metrics.md"


def fetched(server):
    with urlopen(f"http://127.0.0.1:{server.metrics_port}/metrics", timeout=10) as response:
        return response.read().decode()


async def scrape(server):
    """Samples by name and labels."""
    families = text_string_to_metric_families(await asyncio.to_thread(fetched, server))
    return {
        (one.name, *sorted(one.labels.items())): one.value
        for family in families
        for one in family.samples
    }


@pytest.fixture
async def server():
    async with serving(settings(metrics_port=0)) as server:
        yield server


@pytest.fixture
async def client(server):
    async with nearcast.connect(f"127.0.0.1:{server.port}") as client:
        yield client


async def busy(client, count=3):
    """Devices, objects, reports: some of everything."""
    publisher = client.publisher()
    await publisher.publish([GeoObject({"tea"}, 14.5, 35.5, 600.0, key=f"k{i}") for i in range(5)])
    async with client.fleet() as fleet:
        for i in range(count):
            device = await fleet.attach(f"device-{i}", lon=14.5, lat=35.5)
            await device.subscribe(TopK({"tea"}, k=2))
            await device.subscribe(TopK({"tea"}, k=2, region=RegionMode.STATIONARY))
            await device.subscribe(nearcast.Boolean("tea", Bounds(14.4, 35.4, 14.6, 35.6)))
            await device.move(lon=14.5, lat=35.5 + 0.1 * (i % 3))
        await client.sync()
        yield


def test_the_catalogue_has_every_counter_and_measure():
    counters = Counters()
    assert {name.partition(".")[0] for name in counters.named()} == set(COUNTERS)
    assert set(counters.measures.named()) == set(MEASURES)


async def test_prometheus_gets_the_values_of_status(server, client):
    async for _ in busy(client):
        status = await client.status()
        found = await scrape(server)
    assert {name.partition(".")[0] for name in status.gauges} == set(GAUGES)
    for name, value in status.counters.items():
        stem, _, label = name.partition(".")
        key = (f"nearcast_{stem}_total", *([(COUNTERS[stem].label, label)] if label else []))
        assert found[key] == value, name
    assert found["nearcast_subscriptions_by_kind", ("kind", "STATIONARY")] == 3
    assert found["nearcast_devices", ("state", "IN_SYNC")] == 3
    assert found["nearcast_objects",] == status.gauges["objects"] == 5
    assert found["nearcast_state", ("state", "SERVING")] == 1
    assert found["process_resident_memory_bytes",] > 1e6
    for name, one in status.distributions.items():
        if name == "silence_ms":
            continue
        stem, unit = name.rsplit("_", 1)
        metric = f"nearcast_{stem}_seconds" if unit in {"us", "ms"} else f"nearcast_{name}"
        assert found[f"{metric}_count",] >= sum(one.counts), name
    assert found["nearcast_silence_seconds_bucket", ("le", "+Inf")] == 3
    assert 0 <= found["nearcast_event_loop_delay_seconds",] < scrapes.ANSWER_S


async def test_measurements_match_the_events(client):
    async for _ in busy(client):
        before = (await client.status()).distributions
        publisher = client.publisher()
        await publisher.publish([GeoObject({"tea"}, 14.5, 35.5, 600.0)])
        await client.sync()
        after = (await client.status()).distributions
    new = {name: one.since(before[name]) for name, one in after.items() if name != "silence_ms"}
    assert sum(new["publication_us"].counts) == 1
    assert sum(new["commit_us"].counts) == sum(new["commit_rows"].counts) >= 1
    assert new["commit_rows"].total >= 1
    assert new["publication_us"].total >= new["commit_us"].total / sum(new["commit_us"].counts)
    assert sum(new["delta_delay_ms"].counts) == 6, (
        "stationary subscriptions have two older objects, as near"
    )
    assert sum(before["report_latency_us"].counts) >= 1, "one report at a time on each stream"
    assert before["evaluation_subscriptions"].total >= 9


async def test_the_number_of_series_does_not_depend_on_the_number_of_devices(server, client):
    await scrape(server)  # memory is noted from the first one on
    before = set(await scrape(server))
    async for _ in busy(client, 100):
        during = set(await scrape(server))
    assert during == before
    assert len(before) < 400


async def test_a_stalled_loop_is_reported_and_nothing_else(server, monkeypatch):
    monkeypatch.setattr(scrapes, "ANSWER_S", 0.05)
    with ThreadPoolExecutor(1) as threads:
        requests = threads.submit(fetched, server)
        while not requests.done():
            time.sleep(0.01)  # noqa: ASYNC251 - it is to stall
    assert "nearcast_event_loop_delay_seconds 0.05" in requests.result()
    assert "process_cpu_seconds_total" in requests.result()
    assert "nearcast_objects" not in requests.result()
    assert "nearcast_objects" in await asyncio.to_thread(fetched, server)


async def test_an_idle_connection_is_closed(server, monkeypatch):
    assert 0 < metrics_port.CALLER_S <= 10
    monkeypatch.setattr(metrics_port, "CALLER_S", 0.1)
    with socket.create_connection(("127.0.0.1", server.metrics_port)) as silent:
        silent.sendall(b"GET /metr")
        assert "nearcast_objects" in await asyncio.to_thread(fetched, server)
        silent.settimeout(10)
        assert silent.recv(1) == b""


async def test_a_slow_connection_keeps_no_other_out_and_is_closed(server, monkeypatch):
    """However slowly: what is bounded is the time that a request takes in all."""
    monkeypatch.setattr(metrics_port, "CALLER_S", 1.0)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.metrics_port)

    async def drip():
        writer.write(b"GET / HTTP/1.1\r\nX: ")
        while True:
            writer.write(b"a")
            await asyncio.sleep(0.01)

    dripping = asyncio.create_task(drip())
    async with asyncio.timeout(30.0):
        while True:  # a busy machine may itself take longer than that
            with contextlib.suppress(OSError):
                assert "nearcast_objects" in await asyncio.to_thread(fetched, server)
                break
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
    dripping.cancel()
    writer.close()


@pytest.mark.parametrize("come", ["one by one", "at once"])
async def test_of_too_many_the_oldest_goes(server, monkeypatch, come):
    monkeypatch.setattr(metrics_port, "CALLER_S", 600.0)
    monkeypatch.setattr(metrics_port, "CONNECTIONS_MAX", 3)
    port = server.metrics_port
    async with asyncio.timeout(30.0):
        if come == "at once":  # the oldest is let go of before it has been looked at
            metrics = server.monitoring._metrics  # noqa: SLF001 - nothing else holds its thread up
            metrics._loop.call_soon_threadsafe(time.sleep, 0.5)  # noqa: SLF001
        pairs = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        assert "nearcast_objects" in await asyncio.to_thread(fetched, server)
        assert await pairs[0][0].read() == b""
    for _, writer in pairs:
        writer.close()


REQUESTS = [
    (b"GET /metrics HTTP/1.1\r\nHost: localhost:9464\r\n\r\n", b"200"),
    (b"GET / HTTP/1.0\r\n\r\n", b"200"),
    (b"HEAD / HTTP/1.1\r\nHost: [::1]:1\r\n\r\n", b"200"),
    (b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"200"),
    (b"GET / HTTP/1.1\r\nHost: evil.example:9464\r\n\r\n", b"421"),
    (b"GET / HTTP/1.1\r\nHost: localhost.evil.example\r\n\r\n", b"421"),
    (b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", b"400"),
    (b"POST / HTTP/1.1\r\n\r\n", b"405"),
    (b"GET /\r\n\r\n", b"400"),
    (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n", b"431"),
]


async def test_a_request_gets_a_response_or_a_refusal(server):
    for request_head, status in REQUESTS:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.metrics_port)
        writer.write(request_head)
        async with asyncio.timeout(30.0):
            head = await reader.readuntil(b"\r\n")
        writer.close()
        assert head.startswith(b"HTTP/1.1 " + status)


async def test_metrics_end_with_the_server():
    async with serving(settings(metrics_port=0)) as server:
        port = server.metrics_port
    with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
        pass
    async with serving(settings()) as server:
        assert not server.metrics_port, "off by default"


@pytest.mark.processes
def test_a_port_in_use_is_an_error_that_names_it_and_leaves_nothing(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        store = tmp_path / "s.db"
        error = refused("serve", AREA, "--port=0", f"--metrics-port={port}", f"--store={store}")
    assert error.startswith(f"Error: --metrics-port is {port}, must be free on metrics_host 127.0.0.1")
    assert not store.exists()


async def test_a_server_that_does_not_start_gives_the_port_back(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (tmp_path / "s.db").write_text("this is no store")
    server = Server(settings(metrics_port=port, store=tmp_path / "s.db"))
    with pytest.raises(StoreError, match=r"s\.db"):
        await server.start()
    socket.create_server(("127.0.0.1", port)).close()


def test_the_documentation_has_every_metric():
    documented = set(re.findall(r"`(nearcast_[a-z_]+)`", REFERENCE.read_text()))
    for name in COUNTERS:
        assert f"nearcast_{name}_total" in documented
    for name in (*GAUGES, *MEASURES):
        stem, unit = name.rsplit("_", 1) if "_" in name else (name, "")
        assert (f"nearcast_{stem}_seconds" if unit in {"us", "ms"} else f"nearcast_{name}") in documented
