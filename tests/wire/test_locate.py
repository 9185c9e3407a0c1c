"""The mode ELLIPSE on the wire: the server asks where a device is before it decides."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from nearcast.v1 import (
    control_service_pb2,
    device_service_pb2,
    errors_pb2,
    publisher_service_pb2,
    subscriptions_pb2,
)
from server.limits import Limits
from tests.wire.conftest import served
from tests.wire.test_bad_input import HERE, a_spec, an_object, attached, exchange, subscribe

ELLIPSE = subscriptions_pb2.REGION_MODE_ELLIPSE


def lamps_spec(**changes):
    spec = a_spec(**changes)
    spec.region = ELLIPSE
    return spec


async def publish(stubs, *objects):
    call = stubs.publishers.Publish()
    await call.write(publisher_service_pb2.PublishRequest(objects=objects))
    ids = list((await call.read()).ids)
    await call.done_writing()
    return ids


def report(sequence):
    return device_service_pb2.Report(sequence=sequence, position=HERE, subscription_ids=[1])


async def test_a_device_gets_a_location_request_and_its_response_decides(stubs):
    device = await attached(stubs)
    first = await exchange(device, subscribe=subscribe(1, lamps_spec(k=1)))
    assert first.WhichOneof("event") == "delta"
    (object_id,) = await publish(stubs, an_object())
    location_request = await device.read()
    assert list(location_request.locate.subscription_ids) == [1]
    response = await exchange(device, report=report(1))
    assert [entry.object.id for entry in response.delta.add] == [object_id]
    assert response.delta.cause == subscriptions_pb2.CAUSE_PUBLISHED
    assert response.delta.report_sequence == 1
    device.cancel()


async def test_one_location_request_serves_all_pending_objects(stubs):
    device = await attached(stubs)
    await exchange(device, subscribe=subscribe(1, lamps_spec(k=5)))
    ids = [(await publish(stubs, an_object()))[0] for _ in range(3)]
    assert list((await device.read()).locate.subscription_ids) == [1]
    response = await exchange(device, report=report(1))
    assert sorted(entry.object.id for entry in response.delta.add) == ids
    device.cancel()


async def test_sync_waits_for_the_response(stubs):
    device = await attached(stubs)
    await exchange(device, subscribe=subscribe(1, lamps_spec()))
    await publish(stubs, an_object())
    await device.read()
    sync = asyncio.ensure_future(stubs.control.Sync(control_service_pb2.SyncRequest()))
    done, _ = await asyncio.wait({sync}, timeout=0.3)
    assert not done, "the delta is not decided, let alone sent"
    await exchange(device, report=report(1))
    await sync
    device.cancel()


async def test_a_disconnected_device_responds_with_its_hello(stubs, server):
    device = await attached(stubs)
    await exchange(device, subscribe=subscribe(1, lamps_spec()))
    await device.done_writing()
    await device.read()
    (object_id,) = await publish(stubs, an_object())
    await stubs.control.Sync(control_service_pb2.SyncRequest())
    handles = np.array(list(server.coordinator.sessions["device"].handles.values()))
    assert server.coordinator.matching.engine.are_pending(handles).all()
    again = await attached(stubs, version=1, epoch=device.epoch)
    response = await again.read()
    assert [entry.object.id for entry in response.delta.add] == [object_id]
    assert not server.coordinator.matching.engine.are_pending(handles).any()
    again.cancel()


@pytest.fixture
async def impatient():
    """A server whose devices must answer within a fifth of a second."""
    async with served(Limits(answer_ms_max=200)) as stubs:
        yield stubs


async def test_a_device_that_does_not_respond_is_detached_and_parked(impatient):
    device = await attached(impatient)
    await exchange(device, subscribe=subscribe(1, lamps_spec()))
    (object_id,) = await publish(impatient, an_object())
    assert (await device.read()).HasField("locate")
    last = await device.read()
    assert last.detached.error.reason == errors_pb2.ERROR_REASON_SILENT
    assert "must be at most 200 ms" in last.detached.error.message
    await impatient.control.Sync(control_service_pb2.SyncRequest())
    session = impatient.server.coordinator.sessions["device"]
    assert not impatient.server.coordinator.matching.engine.are_awake(np.array([session.handles[1]]))[0]
    again = await attached(impatient, version=1)
    response = await again.read()
    assert response.delta.snapshot
    assert [entry.object.id for entry in response.delta.add] == [object_id]
    again.cancel()


async def test_an_unknown_region_mode(stubs):
    device = await attached(stubs)
    spec = a_spec()
    spec.region = 7
    response = await exchange(device, subscribe=subscribe(1, spec))
    error = response.rejection.error
    assert (error.field, error.value) == ("spec.region", "7")
    assert error.limit == "one of 1 (ANCHORED), 2 (ELLIPSE), 4 (STATIONARY)"
    device.cancel()
