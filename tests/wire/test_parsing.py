"""Requests that cannot be parsed are refused and counted; the log has nothing of them."""

from __future__ import annotations

import logging

import grpc
import pytest

from nearcast.v1 import control_service_pb2, device_service_pb2, publisher_service_pb2
from tests.wire.conftest import served
from tests.wire.test_bad_input import an_object, attached, check_details, hello, state

GARBAGE = b"\xff\xff\xff"
UNARY = [
    "nearcast.v1.DeviceService/Search",
    "nearcast.v1.PublisherService/Retract",
    "nearcast.v1.ControlService/Sync",
    "nearcast.v1.ControlService/AdvanceClock",
    "nearcast.v1.ControlService/Status",
    "grpc.health.v1.Health/Check",
]
STREAMS = [
    "nearcast.v1.DeviceService/Attach",
    "nearcast.v1.DeviceService/AttachFleet",
    "nearcast.v1.PublisherService/Publish",
    "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
]


@pytest.fixture(autouse=True)
def _silent(caplog):
    yield
    found = [one for one in caplog.get_records("call") if one.levelno >= logging.WARNING]
    assert [one for one in found if one.name != "server.store.sqlite_version"] == []


async def refused(response):
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await response
    assert failed.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    check_details(failed.value, "INVALID_FIELD", "request")


async def counted(stubs):
    status = await stubs.control.Status(control_service_pb2.StatusRequest())
    assert status.counters["rejected.INVALID_FIELD"] == status.counters["requests_unparsable"]
    return status.counters["requests_unparsable"]


@pytest.mark.parametrize("method", UNARY)
async def test_a_call(stubs, method):
    call = stubs.channel.unary_unary(f"/{method}")
    for number in (1, 2):
        await refused(call(GARBAGE))
        assert await counted(stubs) == number


async def test_a_call_with_a_stream_of_responses(stubs):
    await refused(stubs.channel.unary_stream("/grpc.health.v1.Health/Watch")(GARBAGE).read())
    assert await counted(stubs) == 1


@pytest.mark.parametrize("method", STREAMS)
async def test_a_stream(stubs, method):
    call = stubs.channel.stream_stream(f"/{method}")()
    await call.write(GARBAGE)
    await refused(call.read())
    assert await counted(stubs) == 1


async def test_a_device_that_turns_to_garbage_is_detached(stubs, server):
    call = stubs.channel.stream_stream("/nearcast.v1.DeviceService/Attach")()
    await call.write(hello().SerializeToString())
    assert device_service_pb2.AttachResponse.FromString(await call.read()).HasField("welcome")
    await call.write(GARBAGE)
    await refused(call.read())
    await stubs.control.Sync(control_service_pb2.SyncRequest())
    assert "device" not in server.coordinator.sessions
    again = await attached(stubs, nonce=b"another instance")
    again.cancel()
    assert await counted(stubs) == 1


async def test_a_publisher_gets_responses_to_earlier_requests(stubs, server):
    call = stubs.channel.stream_stream("/nearcast.v1.PublisherService/Publish")()
    request = publisher_service_pb2.PublishRequest(sequence=7, objects=[an_object()])
    await call.write(request.SerializeToString())
    await call.write(GARBAGE)
    response = publisher_service_pb2.PublishResponse.FromString(await call.read())
    assert (response.sequence, len(response.ids)) == (7, 1)
    after = state(server)
    await refused(call.read())
    assert state(server) == after
    assert await counted(stubs) == 1


async def test_requests_without_a_token_are_not_parsed():
    async with served(tokens=["secret"]) as stubs:
        for method in UNARY[:-1]:  # health is for everybody
            with pytest.raises(grpc.aio.AioRpcError) as failed:
                await stubs.channel.unary_unary(f"/{method}")(GARBAGE)
            assert failed.value.code() is grpc.StatusCode.UNAUTHENTICATED
        unparsable = stubs.server.coordinator.counters.requests_unparsable
        assert unparsable == 0, "nothing of it was read"


async def test_a_call_of_many_requests_with_one_response(stubs):
    method = "/nearcast.v1.ControlService/SetIdf"
    for number, requests in enumerate(([GARBAGE], [b"", GARBAGE]), 1):
        await refused(stubs.channel.stream_unary(method)(iter(requests)))
        assert await counted(stubs) == number
