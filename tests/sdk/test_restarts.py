"""An app that starts again at another place: `subscribe` returns with the result of the present place."""

from __future__ import annotations

import asyncio
import math

import pytest

from nearcast import Boolean, Circle, ClosedError, GeoObject, SubscriptionState, TopK
from nearcast.protocol.specs import spec_message
from nearcast.v1 import device_service_pb2, geometry_pb2, subscriptions_pb2
from tests.sdk.channel import Channel

PETS = Boolean("(cat OR dog) AND NOT found", Circle(800.0), moving=True)
SUSHI = TopK({"sushi"}, k=2, alpha=0.5)
THERE = {"anchor": geometry_pb2.Point(x_m=20_000.0), "reach": {"length_m": 1.0, "object_id": 9}}
"""A bound that does not cover the device."""
ANYWHERE = {"reach": {"length_m": math.inf}}
MOVED = {"cause": subscriptions_pb2.CAUSE_REPORTED}


async def test_the_first_result_is_that_of_the_present_place(client):
    pets = [GeoObject({"cat"}, 14.5 + 0.001 * i, 35.9, 3600.0) for i in range(3)]
    others = [GeoObject({"dog"}, 14.5, 35.52 + 0.0001 * i, 3600.0) for i in range(500)]
    ids = (await client.publisher().publish([*pets, *others]))[: len(pets)]
    async with await client.attach("d", lon=14.5, lat=35.5) as device:
        near = await device.subscribe(PETS, name="near")
        assert near.results() == []
    device = await client.attach("d", lon=14.5, lat=35.9)
    near = await device.subscribe(PETS, name="near")
    assert near.state is SubscriptionState.EXACT
    assert [match.object.id for match in near.results()] == ids
    changes = near.changes()
    assert [(await anext(changes)).object.id for _ in ids] == ids
    sent = device.counters.bytes_sent
    assert await device.subscribe(PETS, name="near") is near
    assert device.counters.bytes_sent == sent
    await changes.aclose()


async def started():
    """Return the line of a device that has just started, and the task that subscribes."""
    line = Channel()
    line.welcome({1: spec_message(SUSHI)}, name="lunch")
    lunch = line.device.subscribe(SUSHI, "lunch")
    task = asyncio.create_task(lunch.answered())
    await asyncio.sleep(0)
    line.delta(1, 1, snapshot=True, cause=subscriptions_pb2.CAUSE_RESUMED, **THERE)
    return line, task


async def is_done(task):
    for _ in range(5):  # a wake-up takes more than one turn of the loop
        await asyncio.sleep(0)
    return task.done()


async def test_it_waits_for_the_response_to_the_report():
    line, task = await started()
    assert line.kinds() == ["hello", "report"]
    assert not await is_done(task)
    line.delta(1, 2, report_sequence=1, **MOVED, **ANYWHERE)
    assert await is_done(task)
    await task
    assert line.kinds() == []


async def test_it_waits_for_one_response_at_most():
    """A device may move faster than the server responds."""
    line, task = await started()
    line.device.move(14.9, 35.9)
    line.delta(1, 2, report_sequence=1, **MOVED, **THERE)
    assert line.kinds() == ["hello", "report", "report"]
    assert await is_done(task)
    await task


async def test_the_stream_breaks_while_it_waits():
    line, task = await started()
    line.device.disconnect()
    line.device.move(14.9, 35.9)
    assert not await is_done(task)
    line.welcome({1: spec_message(SUSHI)}, resumed=True, name="lunch")
    assert line.kinds()[-1] == "report"
    assert not await is_done(task)
    line.delta(1, 2, report_sequence=2, **MOVED, **ANYWHERE)
    assert await is_done(task)
    await task


async def test_no_report_is_necessary_after_the_reconnect():
    line, task = await started()
    line.device.disconnect()
    line.version = 2  # one delta is missing
    line.welcome({1: spec_message(SUSHI)}, resumed=True, name="lunch")
    assert not await is_done(task)
    line.delta(1, 2, cause=subscriptions_pb2.CAUSE_PUBLISHED, **ANYWHERE)
    assert await is_done(task)
    await task


@pytest.mark.parametrize("end", ["close", "server"])
async def test_it_ends_while_a_call_waits(end):
    line, task = await started()
    if end == "close":
        line.device.fail(ClosedError("closed"))
    else:
        line.receive(unsubscribed=device_service_pb2.Unsubscribed(subscription_id=1))
    with pytest.raises(ClosedError):
        await task


@pytest.mark.parametrize("is_online", [False, True])
async def test_it_does_not_wait_without_a_response_of_the_server(is_online):
    """An app without a server gets the last known result at once."""
    line, task = await started()
    if is_online:
        line.device.set_responsive(is_responsive=False)
    else:
        line.device.disconnect()
    lunch = line.device.subscribe(SUSHI, "lunch")
    await asyncio.wait_for(lunch.answered(), 1.0)
    assert lunch.state is SubscriptionState.OFFLINE_STALE
    task.cancel()
