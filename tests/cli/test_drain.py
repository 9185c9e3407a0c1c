"""SIGTERM under load, and a start on the same store: nothing is lost and nobody has to do anything."""

from __future__ import annotations

import asyncio
import signal

import pytest

import nearcast
from nearcast import GeoObject, SubscriptionState, TopK
from tests.cli.test_serve import AREA, Process
from tests.sdk.conftest import until
from tests.support.ports import free_port

pytestmark = pytest.mark.processes

SPEC = TopK({"sushi"}, k=100, alpha=0.9)


async def test_a_restart_under_load(tmp_path):
    arguments = (AREA, f"--port={free_port()}", f"--store={tmp_path / 's.db'}")
    process = Process(*arguments)
    published: list[int] = []
    enough = asyncio.Event()
    try:
        async with nearcast.connect(process.target) as client, client.fleet() as fleet:
            single = await (await client.attach("single", lon=14.5, lat=35.5)).subscribe(SPEC)
            others = [
                await (await fleet.attach(f"f{i}", lon=14.5, lat=35.5)).subscribe(SPEC) for i in range(20)
            ]

            async def load() -> None:
                """Publish without keys: requests are answered, or refused as not done and sent again."""
                publisher = client.publisher()
                while not enough.is_set():
                    lon = 14.0 + 0.0001 * len(published)
                    published.extend(await publisher.publish([GeoObject({"sushi"}, lon, 35.5, 3600.0)]))
                    await asyncio.sleep(0)

            loading = asyncio.create_task(load())
            await until(lambda: len(published) >= 20 or loading.done())
            code = await asyncio.to_thread(process.signal, signal.SIGTERM)
            assert code == 0
            count = len(published)
            process = await asyncio.to_thread(Process, *arguments)
            await until(lambda: len(published) >= count + 20 or loading.done())
            enough.set()
            await loading
            assert published == sorted(set(published))
            states = [one.state for one in (single, *others)]
            await until(lambda: all(one.state is SubscriptionState.EXACT for one in (single, *others)))
            await client.sync()
            found = await client.search(SPEC, lon=14.5, lat=35.5)
            expected = [match.object.id for match in found]
            assert set(expected) <= set(published), "nothing is published twice"
            assert len(expected) == min(100, len(published)), states
            for subscription in (single, *others):
                assert [match.object.id for match in subscription.results()] == expected
    finally:
        process.signal(signal.SIGTERM)
