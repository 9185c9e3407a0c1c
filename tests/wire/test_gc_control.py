"""The cycle collector in charge: nothing is left behind, and what has stayed is not looked at again."""

from __future__ import annotations

import gc
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
