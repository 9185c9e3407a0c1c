"""Calls that are not streams: gRPC repeats those that may be repeated, and no others."""

from __future__ import annotations

import asyncio

import pytest

from nearcast import GeoObject, Reason, TopK, UnavailableError
from tests.sdk.conftest import PATIENCE_S
from tests.support.servers import HeldCommits

SPEC = TopK({"sushi"}, k=3, alpha=0.9)
SUSHI = GeoObject({"sushi"}, 14.5, 35.5, 3600.0)


def ids(found):
    return [match.object.id for match in found]


async def test_a_server_that_is_restarted_is_waited_for(place, client):
    published = await client.publisher().publish([SUSHI])
    await place.stop()
    search = asyncio.create_task(client.search(SPEC, lon=14.5, lat=35.5))
    sync = asyncio.create_task(client.sync())
    with pytest.raises(UnavailableError):
        await client.status()
    assert not search.done()
    assert not sync.done()
    await place.start()
    assert ids(await search) == published
    await sync


async def test_a_search_is_repeated_after_a_broken_connection(client, proxy, far):
    published = await client.publisher().publish([SUSHI])
    assert ids(await far.search(SPEC, lon=14.5, lat=35.5)) == published
    proxy.stall()
    search = asyncio.create_task(far.search(SPEC, lon=14.5, lat=35.5))
    await asyncio.sleep(0.05)
    proxy.cut()
    assert ids(await search) == published
    assert proxy.accepted_count == 2


async def test_the_same_time_set_twice(virtual):
    await virtual.advance_clock(5_000)
    await virtual.advance_clock(5_000)
    assert (await virtual.status()).time_ms == 5_000


async def test_a_retraction_is_not_repeated_after_a_broken_connection(place, client, far, proxy):
    """It may have been carried out, as it is here: a second one would be refused."""
    (object_id,) = await client.publisher().publish([SUSHI])
    commits = HeldCommits(place.server.store)
    retracting = asyncio.create_task(far.publisher().retract(object_id))
    await commits.has_begun.wait()
    proxy.cut()
    try:
        with pytest.raises(UnavailableError):
            async with asyncio.timeout(PATIENCE_S):
                await retracting
    finally:
        commits.go_on.set()
    await client.sync()
    assert await client.search(SPEC, lon=14.5, lat=35.5) == []
    assert place.server.coordinator.counters.rejected[Reason.UNKNOWN_OBJECT] == 0
