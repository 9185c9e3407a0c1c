"""Several gateways as processes: one is killed, and its devices are exact through another."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest

import nearcast
from nearcast import GeoObject, SubscriptionState, TopK
from tests.cli.test_serve import AREA
from tests.cli.test_serve import Process as ServerProcess
from tests.gateway.town import PATIENCE_S
from tests.gateway.web_device import WebDevice

pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parents[2]
SPEC = TopK({"sushi"}, k=5, alpha=0.9)
DEVICES = 20


class Process:
    """A gateway process."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "cli", "gateway", "--port=0", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=os.environ,
        )
        line = self.process.stdout.readline()
        assert line.startswith("gateway on "), self.process.stderr.read()
        self.address = f"http://{line.removeprefix('gateway on ').strip()}/v1/attach"

    def signal(self, number):
        self.process.send_signal(number)
        self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode


async def require_exact(client, subscriptions):
    """Compare the result of each device with that of a search at its place."""
    for device, subscription in subscriptions:
        await device.caught_up()
        await device.until(lambda one=subscription: one.state is SubscriptionState.EXACT)
        found = await client.search(SPEC, lon=device.session.location.lon, lat=35.5)
        assert [one.object.id for one in subscription.results()] == [one.object.id for one in found]


async def test_a_gateway_is_killed_and_its_devices_are_exact_through_another(tmp_path):
    server = ServerProcess(AREA, "--port=0", f"--store={tmp_path / 's.db'}", "--create")
    first, second = (Process(f"--server={server.target}") for _ in range(2))
    try:
        async with (
            asyncio.timeout(5 * PATIENCE_S),
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http,
            nearcast.connect(server.target) as client,
        ):
            addresses = (first.address, second.address)
            devices = [WebDevice(http, addresses, f"d{i}", 14.1 + 0.04 * i, 35.5) for i in range(DEVICES)]
            try:
                for device in devices:
                    await device.until(lambda one=device: one.session.is_online)
                held = [(device, device.session.subscribe(SPEC)) for device in devices]
                publisher = client.publisher()
                await publisher.publish(
                    [GeoObject({"sushi"}, 14.1 + 0.01 * i, 35.5, 3600.0) for i in range(80)]
                )
                await client.sync()
                await require_exact(client, held)
                assert {device.connection_count for device in devices} == {1}
                killing = asyncio.to_thread(first.signal, signal.SIGKILL)
                publishing = publisher.publish(
                    [GeoObject({"sushi"}, 14.105 + 0.01 * i, 35.5, 3600.0) for i in range(80)]
                )
                await asyncio.gather(killing, publishing)
                for device in devices:
                    await device.until(
                        lambda one=device: one.connection_count > 1 and one.session.is_online
                    )
                await client.sync()
                await require_exact(client, held)
            finally:
                for device in devices:
                    await device.close()
        assert await asyncio.to_thread(second.signal, signal.SIGTERM) == 0
    finally:
        for process in (first, second):
            if process.process.poll() is None:
                process.signal(signal.SIGKILL)
        server.signal(signal.SIGTERM)
