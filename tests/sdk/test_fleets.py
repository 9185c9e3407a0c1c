"""A fleet: devices of the same name one after another, and calls that are cancelled."""

from __future__ import annotations

import asyncio

import pytest

import nearcast
from nearcast import Reason, SubscriptionState, TopK
from tests.sdk.conftest import PATIENCE_S, refusal_of, until

SPEC = TopK({"sushi"}, k=3)
HERE = {"lon": 14.5, "lat": 35.5}


async def is_served(client, device):
    """Check that the server serves a device."""
    async with asyncio.timeout(PATIENCE_S):
        subscription = await device.subscribe(SPEC)
        await client.sync()
    assert subscription.state is SubscriptionState.EXACT
    return device.is_online


@pytest.mark.parametrize("is_superseded", [False, True])
async def test_a_device_that_detaches_again_does_not_end_the_next_one(place, client, is_superseded):
    async with client.fleet() as fleet:
        async with await fleet.attach("van-1", **HERE) as old:
            if is_superseded:
                async with nearcast.connect(place.target) as elsewhere:
                    await elsewhere.attach("van-1", **HERE, take_over=True)
                    assert (await refusal_of(old)).reason is Reason.SUPERSEDED
            else:
                await old.detach()
            new = await fleet.attach("van-1", **HERE)
        assert await is_served(client, new)
        assert place.server.coordinator.sessions["van-1"].is_attached
        await new.detach()
        await until(lambda: not place.server.coordinator.sessions["van-1"].is_attached)


@pytest.mark.parametrize("is_streaming", [False, True])
async def test_an_attach_that_is_cancelled_leaves_no_device(place, far, proxy, is_streaming):
    """Whether the server gets its hello or not."""
    sessions = place.server.coordinator.sessions
    async with far.fleet() as fleet:
        if is_streaming:
            await fleet.attach("van-0", **HERE)
        else:
            await far.status()  # it connects
        proxy.stall()
        attaching = [asyncio.create_task(fleet.attach(f"van-{i}", **HERE)) for i in (1, 2)]
        await until(lambda: repr(fleet) == f"<nearcast.Fleet, devices: {2 + is_streaming}>")
        for task in attaching:
            task.cancel()
        found = await asyncio.gather(*attaching, return_exceptions=True)
        assert all(isinstance(one, asyncio.CancelledError) for one in found)
        assert repr(fleet) == f"<nearcast.Fleet, devices: {int(is_streaming)}>"
        proxy.resume()
        new = await fleet.attach("van-1", **HERE)
        assert await is_served(far, new)
        assert "van-2" not in sessions or not sessions["van-2"].is_attached
