"""Who has shown no token is refused before anything that he says is queued."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import grpc
import pytest

import nearcast
from nearcast.v1 import (
    control_service_pb2,
    control_service_pb2_grpc,
    device_service_pb2,
    device_service_pb2_grpc,
    errors_pb2,
    publisher_service_pb2,
    publisher_service_pb2_grpc,
)
from server.errors import Reason
from server.transport import device_service
from tests.support.servers import serving
from tests.wire.conftest import settings
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
CODES = {
    "OUT_OF_ORDER": grpc.StatusCode.FAILED_PRECONDITION,
    "UNAUTHENTICATED": grpc.StatusCode.UNAUTHENTICATED,
}


@pytest.fixture
async def guarded():
    """A server that asks for a token, its stubs, and how many commands it has queued."""
    async with (
        serving(settings(tokens=["secret"])) as server,
        grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel,
    ):
        yield SimpleNamespace(
            server=server,
            channel=channel,
            queued=lambda: server._command_loop._queue._number,
            rejected=server.coordinator.counters.rejected,
            devices=device_service_pb2_grpc.DeviceServiceStub(channel),
            publishers=publisher_service_pb2_grpc.PublisherServiceStub(channel),
            control=control_service_pb2_grpc.ControlServiceStub(channel),
        )


def with_token(token):
    request = hello()
    request.hello.token = token
    return request


async def ended(call, reason, field):
    """Read one answer, half-close, and read the end, which is to be a status; return the answer."""
    async with asyncio.timeout(20):
        answer = await call.read()
        await call.done_writing()
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await call.read()
    assert failed.value.code() is CODES[reason]
    check_details(failed.value, reason, field)
    return answer


@pytest.mark.parametrize("name", COMMANDS)
async def test_a_device_that_does_not_begin_with_a_hello(guarded, name):
    call = guarded.devices.Attach()
    await call.write(COMMANDS[name])
    await call.write(with_token("secret"))
    answer = await ended(call, "OUT_OF_ORDER", "command")
    assert answer.rejection.error.reason == errors_pb2.ERROR_REASON_OUT_OF_ORDER
    assert guarded.queued() == 0
    assert guarded.rejected == {Reason.OUT_OF_ORDER: 1}


@pytest.mark.parametrize("name", [*COMMANDS, "detach"])
async def test_a_fleet_that_does_not_begin_with_a_hello(guarded, name):
    call = guarded.devices.AttachFleet()
    first = FleetRequest.Entry(device_id="other", request=COMMANDS.get(name))
    second = FleetRequest.Entry(device_id="device", request=with_token("secret"))
    await call.write(FleetRequest(entries=[first, second]))
    answer = await ended(call, "OUT_OF_ORDER", "command")
    (entry,) = answer.entries
    assert entry.device_id == "other"
    assert entry.response.rejection.error.reason == errors_pb2.ERROR_REASON_OUT_OF_ORDER
    assert guarded.queued() == 0
    assert guarded.rejected == {Reason.OUT_OF_ORDER: 1}


@pytest.mark.parametrize("token", ["", "wrong"])
async def test_a_hello_without_the_token(guarded, token):
    call = guarded.devices.Attach()
    await call.write(with_token(token))
    await call.write(COMMANDS["ping"])
    answer = await ended(call, "UNAUTHENTICATED", "token")
    assert answer.rejection.command == device_service_pb2.Rejection.COMMAND_HELLO
    fleet = guarded.devices.AttachFleet()
    entries = [
        FleetRequest.Entry(device_id="device", request=with_token(token)),
        FleetRequest.Entry(device_id="device", request=COMMANDS["ping"]),
    ]
    await fleet.write(FleetRequest(entries=entries))
    answer = await ended(fleet, "UNAUTHENTICATED", "token")
    assert answer.entries[0].response.rejection.command == device_service_pb2.Rejection.COMMAND_HELLO
    assert guarded.queued() == 0
    assert guarded.rejected == {Reason.UNAUTHENTICATED: 2}


async def test_who_does_not_half_close_is_not_waited_for_for_ever(guarded, monkeypatch):
    monkeypatch.setattr(device_service, "_HALF_CLOSE_S", 0.2)
    call = guarded.devices.Attach()
    await call.write(with_token("wrong"))
    async with asyncio.timeout(20):
        assert (await call.read()).HasField("rejection")
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await call.read()
    check_details(failed.value, "UNAUTHENTICATED", "token")


async def test_calls_and_publish_streams_without_the_token(guarded):
    calls = [
        guarded.publishers.Publish().read(),
        guarded.publishers.Retract(publisher_service_pb2.RetractRequest(ids=[1])),
        guarded.devices.Search(device_service_pb2.SearchRequest(spec=a_spec(), position=HERE)),
        guarded.control.Sync(control_service_pb2.SyncRequest()),
        guarded.control.AdvanceClock(control_service_pb2.AdvanceClockRequest(time_ms=1)),
        guarded.control.Status(control_service_pb2.StatusRequest()),
    ]
    for call in calls:
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await call
        check_details(failed.value, "UNAUTHENTICATED", "token")
    assert guarded.queued() == 0


async def test_who_has_shown_a_token_is_told_of_other_devices_mistakes_and_goes_on(guarded):
    call = guarded.devices.AttachFleet()

    async def tell(device_id, request):
        await call.write(FleetRequest(entries=[FleetRequest.Entry(device_id=device_id, request=request)]))
        (entry,) = (await call.read()).entries
        assert entry.device_id == device_id
        return entry.response

    assert (await tell("device", with_token("secret"))).HasField("welcome")
    wrong = with_token("wrong")
    wrong.hello.device_id = "other"
    queued = guarded.queued()
    assert (await tell("other", wrong)).rejection.error.reason == errors_pb2.ERROR_REASON_UNAUTHENTICATED
    assert guarded.queued() == queued
    early = (await tell("third", COMMANDS["ping"])).rejection
    assert early.error.reason == errors_pb2.ERROR_REASON_OUT_OF_ORDER
    assert (await tell("device", COMMANDS["ping"])).HasField("pong")
    call.cancel()


async def test_every_device_of_a_fleet_learns_that_its_token_is_not_known(guarded):
    target = f"127.0.0.1:{guarded.server.port}"
    async with nearcast.connect(target, token="wrong") as client, client.fleet() as fleet:  # noqa: S106
        names = [f"d{number}" for number in range(600)]  # hellos of several messages
        asked = [fleet.attach(name, lon=14.5, lat=35.5) for name in names]
        found = await asyncio.gather(*asked, return_exceptions=True)
        with pytest.raises(nearcast.RefusedError):  # and one that comes later
            await fleet.attach("late", lon=14.5, lat=35.5)
    assert {type(one) for one in found} == {nearcast.RefusedError}
    assert {one.reason for one in found} == {nearcast.Reason.UNAUTHENTICATED}
    assert guarded.queued() == 0
