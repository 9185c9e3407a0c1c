"""Authentication: a call is authenticated when it begins, before any message of it is read."""

from __future__ import annotations

import asyncio
from itertools import islice

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

import nearcast
from cluster.v1 import snapshot_service_pb2
from identity.rules import RULES, Action
from nearcast.errors import Reason
from nearcast.v1 import (
    control_service_pb2,
    device_service_pb2,
    errors_pb2,
    publisher_service_pb2,
)
from server.transport import authentication, device_service, first_message
from tests.support.identity import bearer
from tests.wire.conftest import served
from tests.wire.test_bad_input import HERE, a_spec, check_details, hello, subscribe

Request = device_service_pb2.AttachRequest
FleetRequest = device_service_pb2.AttachFleetRequest
COMMANDS = {
    "subscribe": Request(subscribe=subscribe(1, a_spec())),
    "unsubscribe": Request(unsubscribe=device_service_pb2.Unsubscribe(subscription_id=1)),
    "report": Request(report=device_service_pb2.Report(sequence=1, position=HERE, subscription_ids=[1])),
    "ack": Request(ack=device_service_pb2.Ack(version=1)),
    "ping": Request(ping=device_service_pb2.Ping(number=1)),
    "nothing": Request(),
}
SECRET = bearer("secret")
STRANGERS = {
    "nothing": (),
    "wrong": bearer("wrong"),
    "empty": bearer(""),
    "no scheme": (("authorization", "secret"),),
    "another scheme": (("authorization", "Basic secret"),),
    "twice": (*SECRET, *SECRET),
    "another header": (("token", "secret"), ("x-authorization", "Bearer secret")),
    "a part of it": bearer("secre"),
    "more than it": bearer("secret2"),
}
UNREADABLE = ("empty", "no scheme", "another scheme", "twice")
METHODS = [
    (service.full_name, method.name)
    for module in (device_service_pb2, publisher_service_pb2, control_service_pb2, reflection_pb2)
    for service in module.DESCRIPTOR.services_by_name.values()
    for method in service.methods
] + [("grpc.health.v1.Health", "Watch")]


@pytest.fixture
async def guarded():
    """A server that asks for a token, its stubs, and how many commands it has queued."""
    async with served(tokens=["secret"]) as stubs:
        stubs.queued = lambda: stubs.server.command_loop.accepted_count
        stubs.rejected = stubs.server.coordinator.counters.rejected
        yield stubs


async def end_of(call):
    """Read how a call ends, which is to be with a status."""
    async with asyncio.timeout(20):
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await call.read()
    return failed.value


def test_every_method_has_a_rule():
    found = [*METHODS, ("cluster.v1.SnapshotService", "Copy")]
    assert set(authentication.ACTIONS) == {f"/{service}/{method}" for service, method in found}
    [service] = snapshot_service_pb2.DESCRIPTOR.services_by_name.values()
    assert [(service.full_name, method.name) for method in service.methods] == found[-1:]
    assert set(RULES) == set(Action)


@pytest.mark.parametrize("stranger", STRANGERS)
async def test_a_stranger_is_refused_before_anything_is_read(guarded, stranger):
    for service, method in METHODS:
        # A stream of both directions, whatever the method is: no message has to come for the refusal.
        call = guarded.channel.stream_stream(f"/{service}/{method}")(metadata=STRANGERS[stranger])
        failure = await end_of(call)
        assert failure.code() is grpc.StatusCode.UNAUTHENTICATED, method
        check_details(failure, "UNAUTHENTICATED", "authorization" if stranger in UNREADABLE else "token")
    assert guarded.queued() == 0
    assert guarded.rejected == {Reason.UNAUTHENTICATED: len(METHODS)}
    assert not guarded.server.listener.devices.senders


async def test_a_method_without_a_rule_is_refused(guarded, monkeypatch):
    monkeypatch.delitem(authentication.ACTIONS, "/nearcast.v1.ControlService/Status")
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await guarded.control.Status(control_service_pb2.StatusRequest(), metadata=SECRET)
    assert failed.value.code() is grpc.StatusCode.PERMISSION_DENIED


async def test_every_caller_may_check_health_and_unknown_methods_are_not_found(guarded):
    found = await health_pb2_grpc.HealthStub(guarded.channel).Check(health_pb2.HealthCheckRequest())
    assert found.status == health_pb2.HealthCheckResponse.SERVING
    for method in ("/nearcast.v1.ControlService/Nothing", "/nothing/Nothing"):
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await guarded.channel.unary_unary(method)(b"")
        assert failed.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_a_generic_client_looks_around_with_a_token(guarded):
    stub = reflection_pb2_grpc.ServerReflectionStub(guarded.channel)
    call = stub.ServerReflectionInfo(metadata=SECRET)
    await call.write(reflection_pb2.ServerReflectionRequest(list_services=""))
    names = {one.name for one in (await call.read()).list_services_response.service}
    assert "nearcast.v1.DeviceService" in names
    call.cancel()


@pytest.mark.parametrize("name", COMMANDS)
async def test_a_device_that_does_not_start_with_a_hello(guarded, name):
    call = guarded.devices.Attach(metadata=SECRET)
    await call.write(COMMANDS[name])
    await call.write(hello())
    response = await call.read()
    assert response.rejection.error.reason == errors_pb2.ERROR_REASON_OUT_OF_ORDER
    await call.done_writing()
    check_details(await end_of(call), "OUT_OF_ORDER", "command")
    assert guarded.queued() == 0
    assert guarded.rejected == {Reason.OUT_OF_ORDER: 1}


@pytest.mark.parametrize("name", [*COMMANDS, "detach"])
async def test_a_fleet_that_does_not_start_with_a_hello(guarded, name):
    call = guarded.devices.AttachFleet(metadata=SECRET)
    first = FleetRequest.Entry(device_id="other", request=COMMANDS.get(name))
    second = FleetRequest.Entry(device_id="device", request=hello())
    await call.write(FleetRequest(entries=[first, second]))
    (entry,) = (await call.read()).entries
    assert entry.device_id == "other"
    assert entry.response.rejection.error.reason == errors_pb2.ERROR_REASON_OUT_OF_ORDER
    await call.done_writing()
    check_details(await end_of(call), "OUT_OF_ORDER", "command")
    assert guarded.queued() == 0
    assert guarded.rejected == {Reason.OUT_OF_ORDER: 1}


async def test_a_client_that_does_not_half_close_is_not_waited_for_for_ever(guarded, monkeypatch):
    monkeypatch.setattr(device_service, "_HALF_CLOSE_S", 0.2)
    call = guarded.devices.Attach(metadata=SECRET)
    await call.write(COMMANDS["ping"])
    assert (await call.read()).HasField("rejection")
    check_details(await end_of(call), "OUT_OF_ORDER", "command")


PATIENT = ("Publish", "SetIdf", "ServerReflectionInfo")
"""Of which the first message may take its time: only who shows a token keeps them open."""


@pytest.mark.parametrize("half_closes", [False, True])
async def test_a_client_that_sends_nothing_is_not_waited_for_for_ever(guarded, monkeypatch, half_closes):
    monkeypatch.setattr(first_message, "WAIT_S", 0.1)
    names = [(service, method) for service, method in METHODS if method not in PATIENT]
    for service, method in [*names, ("grpc.health.v1.Health", "Check")]:
        call = guarded.channel.stream_stream(f"/{service}/{method}")(metadata=SECRET)
        if half_closes:
            await call.done_writing()
        if half_closes and method.startswith("Attach"):
            async with asyncio.timeout(20):
                assert await call.read() is grpc.aio.EOF
        elif half_closes:
            check_details(await end_of(call), "INVALID_FIELD", "request")
        else:
            check_details(await end_of(call), "RECOVERING", "request")
    assert not guarded.server.listener.devices.senders


async def test_silent_health_calls_of_strangers_are_displaced_by_others(guarded, monkeypatch):
    monkeypatch.setattr(first_message, "OPEN_MAX", 4)
    monkeypatch.setattr(first_message, "WAIT_S", 60.0)
    silent = [guarded.channel.stream_stream("/grpc.health.v1.Health/Check")() for _ in range(9)]
    ends = [asyncio.create_task(end_of(call)) for call in silent]
    for end in islice(asyncio.as_completed(ends), 5):
        check_details(await end, "RECOVERING", "request")
    found = await health_pb2_grpc.HealthStub(guarded.channel).Check(health_pb2.HealthCheckRequest())
    assert found.status == health_pb2.HealthCheckResponse.SERVING
    for end in ends:
        end.cancel()


async def test_devices_of_a_fleet_get_their_own_refusals_and_it_continues(guarded):
    call = guarded.devices.AttachFleet(metadata=SECRET)

    async def exchange(device_id, request):
        await call.write(FleetRequest(entries=[FleetRequest.Entry(device_id=device_id, request=request)]))
        (entry,) = (await call.read()).entries
        assert entry.device_id == device_id
        return entry.response

    assert (await exchange("device", hello())).HasField("welcome")
    early = (await exchange("third", COMMANDS["ping"])).rejection
    assert early.error.reason == errors_pb2.ERROR_REASON_OUT_OF_ORDER
    assert (await exchange("device", COMMANDS["ping"])).HasField("pong")
    call.cancel()


async def test_every_device_of_a_fleet_learns_that_its_token_is_not_known(guarded):
    target = f"127.0.0.1:{guarded.server.port}"
    async with nearcast.connect(target, token="wrong") as client, client.fleet() as fleet:  # noqa: S106
        names = [f"d{number}" for number in range(600)]  # hellos of several messages
        requests = [fleet.attach(name, lon=14.5, lat=35.5) for name in names]
        found = await asyncio.gather(*requests, return_exceptions=True)
        with pytest.raises(nearcast.RefusedError):  # and one that comes later
            await fleet.attach("late", lon=14.5, lat=35.5)
    assert {type(one) for one in found} == {nearcast.RefusedError}
    assert {one.reason for one in found} == {nearcast.Reason.UNAUTHENTICATED}
    assert guarded.queued() == 0
