"""Every message that is read costs its caller something, whatever is in it."""

from __future__ import annotations

import asyncio

import grpc

from nearcast.errors import Reason
from nearcast.v1 import device_service_pb2, device_service_pb2_grpc, publisher_service_pb2
from server.limits import Limits
from tests.support.identity import bearer, token
from tests.wire.city import a_city, attach, reason_of
from tests.wire.conftest import served
from tests.wire.test_bad_input import an_object, hello

Request = device_service_pb2.AttachRequest
RATE, COUNT = 0.5, 60
"""Operations per second, of which a caller may use five at once, and the messages that it sends."""
FLOOD = 4_000
"""Messages whose rejections, some 150 bytes each, are far more than a client's windows take."""


def too_long():
    """Return a report that breaks a bound on its bytes, and shows its number."""
    return Request(report=device_service_pb2.Report(sequence=1, subscription_ids=[1] * 600))


async def test_a_device_is_read_slowly_if_its_messages_are_refused_for_their_structure(tmp_path):
    async with a_city(tmp_path, device_rate=RATE) as city:
        call, _ = await attach(city, token("device", "device"))
        for _ in range(COUNT):
            await call.write(too_long())
        other, _ = await attach(city, token("other", "device"), "other")
        await other.write(Request(ping=device_service_pb2.Ping(number=1)))
        assert (await other.read()).HasField("pong")
        assert (await call.read()).rejection.command == device_service_pb2.Rejection.COMMAND_REPORT
        assert city.server.coordinator.counters.rejected[Reason.INVALID_FIELD] < COUNT // 2
        account = next(one for one in city.server.readings.accounts() if one.name == "device")
        assert account.used_us > 50.0
        call.cancel()


async def test_a_device_that_reads_no_rejections_is_not_read():
    async with served(Limits(answers_max=10)) as stubs:
        options = [("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", 16_384)]
        async with grpc.aio.insecure_channel(f"127.0.0.1:{stubs.server.port}", options) as channel:
            call = device_service_pb2_grpc.DeviceServiceStub(channel).Attach()
            await call.write(hello())
            assert (await call.read()).HasField("welcome")
            writing = asyncio.create_task(_write(call, FLOOD))
            rejected, before = stubs.server.coordinator.counters.rejected, -1
            while rejected[Reason.INVALID_FIELD] != before:
                before = rejected[Reason.INVALID_FIELD]
                await asyncio.sleep(0.5)
            assert 0 < before < FLOOD // 2
            for _ in range(FLOOD):
                assert (await call.read()).HasField("rejection")
            await writing


async def _write(call, count):
    for _ in range(count):
        await call.write(too_long())


async def test_a_publisher_pays_for_requests_that_are_refused_for_their_structure(tmp_path):
    async with a_city(tmp_path, publisher_rate=0.5) as city:
        call = city.publishers.Publish(metadata=bearer(token("one", "publisher")))
        objects = [an_object(keywords=["k"] * 600)]
        for sequence in range(1, 11):
            await call.write(publisher_service_pb2.PublishRequest(sequence=sequence, objects=objects))
        reasons = [reason_of((await call.read()).error) for _ in range(10)]
        assert reasons[:4] == ["INVALID_FIELD"] * 4, "the stream is an operation, too"
        assert set(reasons[5:]) == {"RATE_LIMITED"}
        call.cancel()


async def test_empty_messages_of_a_gateway_are_operations(tmp_path):
    async with a_city(tmp_path, gateway_rate=RATE) as city:
        call = city.devices.AttachFleet(metadata=bearer(token("gate", "gateway")))
        for _ in range(COUNT):
            await call.write(device_service_pb2.AttachFleetRequest())
        entry = {"device_id": "one", "request": hello(device_id="one")}
        await call.write(device_service_pb2.AttachFleetRequest(entries=[entry]))
        other, welcome = await attach(city, token("other", "device"), "other")
        assert welcome.HasField("welcome")
        assert city.server.command_loop.accepted_count == 1, "the hello behind them is not read yet"
        account = next(one for one in city.server.readings.accounts() if one.name == "gate")
        assert account.used_us >= 50.0
        other.cancel()
        call.cancel()


async def test_publish_requests_without_objects_are_operations(tmp_path):
    async with a_city(tmp_path, publisher_rate=0.5) as city:
        call = city.publishers.Publish(metadata=bearer(token("one", "publisher")))
        for sequence in range(1, 11):
            await call.write(publisher_service_pb2.PublishRequest(sequence=sequence))
        reasons = [reason_of((await call.read()).error) for _ in range(10)]
        assert reasons[:4] == ["INVALID_FIELD"] * 4, "the stream is an operation, too"
        assert set(reasons[5:]) == {"RATE_LIMITED"}
        call.cancel()
