"""The cycle collector in charge: nothing is left behind, and what has stayed is not looked at again."""

from __future__ import annotations

import asyncio
import gc
import itertools
import weakref

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from nearcast.v1 import (
    control_service_pb2,
    control_service_pb2_grpc,
    device_service_pb2_grpc,
    publisher_service_pb2_grpc,
)
from nearcast.v1.device_service_pb2 import AttachRequest
from nearcast.v1.publisher_service_pb2 import PublishRequest
from server.runtime import gc_control as module
from server.runtime.gc_control import GcControl
from tests.support.servers import serving
from tests.wire.conftest import settings

CALLS = 100


class Ring:
    """Refers to itself."""

    def __init__(self):
        self.ring = self


def dropped_ring():
    return weakref.ref(Ring())


@pytest.fixture
def restored():
    yield
    gc.unfreeze()
    gc.enable()


@pytest.fixture
def gc_control(restored):  # noqa: ARG001
    gc_control = GcControl()
    gc_control.take_over()
    return gc_control


def test_nothing_happens_before_it_takes_over():
    gc_control = GcControl()
    gc_control.suspect()
    gc.collect()
    frozen = gc.get_freeze_count()
    ring = dropped_ring()
    gc_control.rest()
    assert gc.isenabled()
    assert ring() is not None
    assert gc.get_freeze_count() == frozen


def test_when_there_may_be_cycles_it_looks_once(gc_control):
    ring = dropped_ring()
    gc_control.suspect()
    gc_control.rest()
    assert ring() is None
    other = dropped_ring()
    gc_control.rest()
    assert other() is not None
    gc_control.suspect()
    gc_control.rest()  # it was set aside
    assert other() is not None


@pytest.mark.parametrize("weight", [1, 100])
def test_objects_set_aside_are_collected_when_their_weight_is_reached(gc_control, monkeypatch, weight):
    monkeypatch.setattr(module, "_WEIGHT_MAX", 3 * 100)
    ring = dropped_ring()
    gc_control.rest()
    for _ in range(3 * 100 // weight - 1):
        gc_control.suspect(weight)
    gc_control.rest()
    assert ring() is not None
    gc_control.suspect(weight)
    gc_control.rest()
    assert ring() is None


def test_all_objects_are_collected_in_a_hundredth_of_the_time_at_most(restored, monkeypatch):  # noqa: ARG001
    monkeypatch.setattr(module, "_WEIGHT_MAX", 10)
    clock = Clock()
    gc_control = GcControl(clock)
    gc_control.take_over()
    collections = []
    for _ in range(250):
        ring = dropped_ring()
        gc_control.rest()  # which sets it aside
        gc_control.suspect(10)
        gc_control.rest()
        collections += [clock.now_s] * (ring() is None)
        clock.now_s += 1.0
    times = [later - earlier for earlier, later in itertools.pairwise(collections)]
    assert len(times) >= 3
    assert min(times) >= 100 * Clock.STEP_S


class Clock:
    """A clock that goes on whenever it is read, so that everything takes time."""

    STEP_S = 1.0

    def __init__(self):
        self.now_s = 1_000.0

    def __call__(self):
        self.now_s += self.STEP_S
        return self.now_s


async def test_a_cancelled_call_without_a_response_has_no_weight(monkeypatch):
    weights = []
    monkeypatch.setattr(GcControl, "suspect", lambda _, weight=1: weights.append(weight))
    async with (
        serving(settings()) as server,
        grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel,
    ):
        control = control_service_pb2_grpc.ControlServiceStub(channel)
        entered, stays = asyncio.Event(), asyncio.Event()

        async def execute(_command):
            entered.set()
            await stays.wait()

        monkeypatch.setattr(server.command_loop, "execute", execute)
        call = control.Sync(control_service_pb2.SyncRequest())
        call.add_done_callback(lambda _: None)
        await entered.wait()
        before = len(weights)
        call.cancel()
        async with asyncio.timeout(20.0):
            while len(weights) == before:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.01)
        assert max(weights) == 1


@pytest.mark.usefixtures("restored")
async def test_calls_of_all_kinds_leave_nothing():
    async with (
        serving(settings()) as server,
        grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel,
    ):
        server.spare_the_collector()
        control = control_service_pb2_grpc.ControlServiceStub(channel)
        devices = device_service_pb2_grpc.DeviceServiceStub(channel)
        publishing = publisher_service_pb2_grpc.PublisherServiceStub(channel).Publish()
        health = health_pb2_grpc.HealthStub(channel)
        for number in range(CALLS):
            await health.Check(health_pb2.HealthCheckRequest())
            await control.Status(control_service_pb2.StatusRequest())
            with pytest.raises(grpc.aio.AioRpcError):
                await control.Inspect(control_service_pb2.InspectRequest(object_id=77))  # refused
            await publishing.write(PublishRequest())  # refused, and the stream goes on
            assert (await publishing.read()).HasField("error")
            call = devices.Attach()
            hello = {
                "device_id": f"d{number}",
                "instance_nonce": b"n",
                "position": {"lon": 14.5, "lat": 35.5},
            }
            await call.write(AttachRequest(hello=hello))
            await call.read()
            await call.write(AttachRequest())  # refused, and the stream goes on
            await call.read()
            await call.done_writing()
            assert await call.read() is grpc.aio.EOF
        gc.unfreeze()
        assert gc.collect() < CALLS
