"""Leases on the wire: devices of a stream that say nothing are given up one by one."""

from __future__ import annotations

import grpc
import numpy as np
import pytest

from nearcast.v1 import (
    control_service_pb2,
    device_service_pb2,
    errors_pb2,
)
from server.counters import ParkReason
from server.session import State
from tests.support.servers import serving
from tests.wire.conftest import served, settings
from tests.wire.test_bad_input import a_spec, an_object, attached, exchange, hello, subscribe
from tests.wire.test_locate import publish

Ping = device_service_pb2.Ping
LEASE_MS = 900


@pytest.fixture
async def leased():
    async with served(virtual_time=True, lease_ms=LEASE_MS) as stubs:
        yield stubs


async def advance(leased, time_ms):
    await leased.control.AdvanceClock(control_service_pb2.AdvanceClockRequest(time_ms=time_ms))


async def test_a_silent_device_is_detached_parked_and_comes_back_exact(leased):
    call = leased.devices.Attach()
    await call.write(hello())
    assert (await call.read()).welcome.lease_ms == LEASE_MS
    await exchange(call, subscribe=subscribe(1, a_spec()))
    await advance(leased, 899)
    assert (await exchange(call, ping=Ping(number=1))).pong.number == 1
    await advance(leased, 1_798)
    assert (await exchange(call, ping=Ping(number=2))).pong.number == 2
    await advance(leased, 2_698)
    error = (await call.read()).detached.error
    assert error.reason == errors_pb2.ERROR_REASON_LEASE_EXPIRED
    assert error.message == "silence is 900 ms, must be less than 900 ms"
    assert await call.read() is grpc.aio.EOF
    coordinator = leased.server.coordinator
    session = coordinator.sessions["device"]
    assert session.state is State.PARKED
    assert not coordinator.matching.engine.are_awake(np.array([session.handles[1]]))[0]
    assert coordinator.counters.parked[ParkReason.LEASE_EXPIRED] == 1
    (object_id,) = await publish(leased, an_object())
    again = await attached(leased, nonce=b"another instance", version=1)
    response = await again.read()
    assert response.delta.snapshot
    assert [entry.object.id for entry in response.delta.add] == [object_id]
    coordinator.check()
    again.cancel()


async def test_a_refused_message_is_a_sign_of_life_too(leased):
    call = await attached(leased)
    await advance(leased, 800)
    assert (await exchange(call, subscribe=subscribe(1, a_spec(k=0)))).HasField("rejection")
    await advance(leased, 1_600)
    assert (await exchange(call, ping=Ping(number=1))).HasField("pong")
    call.cancel()


async def test_a_device_without_subscriptions_leaves_nothing_behind(leased):
    call = await attached(leased)
    await advance(leased, LEASE_MS)
    assert (await call.read()).HasField("detached")
    assert "device" not in leased.server.coordinator.sessions


async def test_the_devices_of_a_fleet_expire_one_by_one(leased):
    call = leased.devices.AttachFleet()

    async def enqueue(device_id, request):
        entry = device_service_pb2.AttachFleetRequest.Entry(device_id=device_id, request=request)
        await call.write(device_service_pb2.AttachFleetRequest(entries=[entry]))
        (response,) = (await call.read()).entries
        assert response.device_id == device_id
        return response.response

    for name in ("a", "b", "c"):
        assert (await enqueue(name, hello(device_id=name))).HasField("welcome")
    await advance(leased, 600)
    for name in ("a", "c"):
        assert (await enqueue(name, device_service_pb2.AttachRequest(ping=Ping(number=1)))).HasField(
            "pong"
        )
    await advance(leased, 900)
    (gone,) = (await call.read()).entries
    assert gone.device_id == "b"
    assert gone.response.detached.error.reason == errors_pb2.ERROR_REASON_LEASE_EXPIRED
    await enqueue("c", device_service_pb2.AttachRequest(ping=Ping(number=2)))
    await advance(leased, 1_500)
    (gone,) = (await call.read()).entries
    assert gone.device_id == "a"
    # The stream goes on, and who was given up may come back on it.
    assert (await enqueue("b", hello(device_id="b"))).HasField("welcome")
    pinged = await enqueue("c", device_service_pb2.AttachRequest(ping=Ping(number=3)))
    assert pinged.pong.number == 3
    call.cancel()


@pytest.mark.parametrize(("flags", "lease_ms"), [({}, 600_000), ({"virtual_time": True}, 0)])
async def test_the_lease_by_default(flags, lease_ms):
    async with serving(settings(**flags)) as server:
        assert server.coordinator.leases.lease_ms == lease_ms


async def test_without_a_lease_no_device_expires():
    async with served(virtual_time=True) as stubs:
        call = await attached(stubs)
        await advance(stubs, 2**45)
        assert (await exchange(call, ping=Ping(number=1))).HasField("pong")
        call.cancel()
