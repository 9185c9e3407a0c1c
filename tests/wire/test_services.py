"""What a generic client can find, and the barrier."""

from __future__ import annotations

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from nearcast.v1 import control_service_pb2, device_service_pb2, publisher_service_pb2
from server.transport.listener import SERVICES
from tests.wire.test_bad_input import a_spec, an_object, attached, exchange, subscribe


async def test_health(stubs):
    health = health_pb2_grpc.HealthStub(stubs.channel)
    for service in ("", *SERVICES):
        response = await health.Check(health_pb2.HealthCheckRequest(service=service))
        assert response.status == health_pb2.HealthCheckResponse.SERVING


async def test_reflection(stubs):
    reflection = reflection_pb2_grpc.ServerReflectionStub(stubs.channel)
    call = reflection.ServerReflectionInfo()
    await call.write(reflection_pb2.ServerReflectionRequest(list_services=""))
    response = await call.read()
    names = {service.name for service in response.list_services_response.service}
    assert set(SERVICES) <= names
    await call.done_writing()


async def test_after_sync_every_delta_has_been_sent(stubs):
    devices = [await attached(stubs, device_id=f"d{i}") for i in range(20)]
    for device in devices:
        await exchange(device, subscribe=subscribe(1, a_spec()))
    publish = stubs.publishers.Publish()
    await publish.write(publisher_service_pb2.PublishRequest(objects=[an_object()]))
    (object_id,) = (await publish.read()).ids
    await stubs.control.Sync(control_service_pb2.SyncRequest())
    for device in devices:
        # Whatever is asked now comes behind the delta.
        await device.write(device_service_pb2.AttachRequest(ping=device_service_pb2.Ping(number=1)))
        first, second = await device.read(), await device.read()
        assert [entry.object.id for entry in first.delta.add] == [object_id]
        assert second.pong.number == 1
        device.cancel()


async def test_half_closing_detaches_and_the_subscriptions_wait(stubs, server):
    device = await attached(stubs)
    await exchange(device, subscribe=subscribe(1, a_spec()))
    await device.done_writing()
    assert (await device.read()) is not None
    await stubs.control.Sync(control_service_pb2.SyncRequest())
    assert server.coordinator.sessions["device"].outbox is None
    again = await attached(stubs, version=1, epoch=device.epoch)
    response = await exchange(again, ping=device_service_pb2.Ping(number=1))
    assert response.pong.number == 1, "nothing was missed"
    await again.done_writing()
    assert await again.read() is grpc.aio.EOF
    await stubs.control.Sync(control_service_pb2.SyncRequest())
    other = await attached(stubs, nonce=b"another instance", version=1, epoch=again.epoch)
    response = await exchange(other, ping=device_service_pb2.Ping(number=1))
    assert response.delta.snapshot, "its version may be of another life of the server"
    other.cancel()
