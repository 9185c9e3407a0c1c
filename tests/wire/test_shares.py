"""Whoever asks for more than his share is told so, waits, or is read slowly; others are not concerned."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time

import grpc
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status

from identity import setup
from nearcast.v1 import (
    control_service_pb2,
    device_service_pb2,
    errors_pb2,
    publisher_service_pb2,
)
from server.limits import Limits
from tests.support.identity import bearer, token
from tests.wire.city import a_city, attach, publish, reason_of, refused
from tests.wire.conftest import served
from tests.wire.test_bad_input import HERE, a_spec, an_object, hello, subscribe

Request = device_service_pb2.AttachRequest


async def test_quotas_of_publishers_and_tenants(tmp_path):
    flags = {"publisher_objects_max": 3, "tenant_objects_max": 5, "tenant_subscriptions_max": 1}
    async with a_city(tmp_path, **flags) as city:

        async def tried(name, count, tenant=""):
            objects = [an_object() for _ in range(count)]
            response = await publish(city, token(name, "publisher", tenant=tenant), *objects)
            return response.error.value or len(response.ids)

        assert await tried("one", 4) == "4 of the publisher"
        assert await tried("one", 3) == 3
        assert await tried("one", 1) == "4 of the publisher"
        assert await tried("two", 3) == "6 of the tenant"
        assert await tried("two", 2) == 2
        assert await tried("one", 3, "acme") == 3, "another tenant's is another's"
        mine = list(city.server.coordinator.matching.objects)[:2]
        retract = publisher_service_pb2.RetractRequest(ids=mine)
        await city.publishers.Retract(retract, metadata=bearer(token("one", "publisher")))
        assert await tried("one", 2) == 2
        stream, _ = await attach(city, token("device", "device"))
        for number, event in ((1, "delta"), (1, "delta"), (2, "rejection")):
            await stream.write(Request(subscribe=subscribe(number, a_spec())))
            assert (await stream.read()).WhichOneof("event") == event
        await stream.write(Request(unsubscribe=device_service_pb2.Unsubscribe(subscription_id=1)))
        await stream.read()
        await stream.write(Request(subscribe=subscribe(2, a_spec())))
        assert (await stream.read()).HasField("delta")
        stream.cancel()
        city.server.coordinator.check()


async def test_quotas_of_bytes(tmp_path):
    flags = {"publisher_bytes_max": 1_000, "tenant_bytes_max": 1_500}
    async with a_city(tmp_path, **flags) as city:

        async def tried(name, *sizes, key=""):
            objects = [an_object(payload=bytes(size), key=key) for size in sizes]
            response = await publish(city, token(name, "publisher"), *objects)
            return response.error.value or len(response.ids)

        assert await tried("one", 600, 500) == "1100 of the publisher"
        assert await tried("one", 600, 400) == 2
        assert await tried("one", 0) == 1
        assert await tried("two", 501) == "1501 of the tenant"
        assert await tried("two", 300, key="k") == 1
        assert await tried("two", 500, key="k") == 1, "it takes the place of the other"
        assert await tried("two", 100, key="k") == 1
        assert await tried("two", 400) == 1


async def test_one_tenant_does_not_have_all_windows(tmp_path):
    async with a_city(tmp_path) as city:
        most = city.server.coordinator.limits.tenant_windows_max
        assert most == Limits().windows_max // 3

        def last(ms):
            spec = a_spec()
            spec.window.duration_ms = ms
            return spec

        requests = iter(range(1, 100))
        refusals = []
        for i in range(most // 8 + 1):
            name = f"d{i}"
            stream, _ = await attach(city, token(name, "device", tenant="acme"), name)
            for number in range(1, 9):
                await stream.write(Request(subscribe=subscribe(number, last(1000 * next(requests)))))
                event = await stream.read()
                refusals += [event.rejection.error.limit] if event.HasField("rejection") else []
        assert refusals == [f"at most {most} of a tenant"] * (8 * (most // 8 + 1) - most)
        stream, _ = await attach(city, token("d", "device", tenant="other"), "d")
        await stream.write(Request(subscribe=subscribe(1, last(777))))
        assert (await stream.read()).HasField("delta")
        city.server.coordinator.check()


async def test_quotas_hold_for_requests_that_share_a_commit(tmp_path):
    async with a_city(tmp_path, publisher_objects_max=5) as city:
        call = city.publishers.Publish(metadata=bearer(token("one", "publisher")))
        for _ in range(10):
            await call.write(publisher_service_pb2.PublishRequest(objects=[an_object()]))
        responses = [await call.read() for _ in range(10)]
        assert sum(len(one.ids) for one in responses) == 5
        assert len(city.server.coordinator.matching.objects) == 5
        call.cancel()


async def test_a_caller_over_its_share_gets_a_time_to_retry(tmp_path):
    async with a_city(tmp_path, publisher_rate=0.5, operator_rate=0.2) as city:
        who = token("one", "publisher")
        assert (await publish(city, who, *[an_object()] * 9)).ids  # more than its burst, once
        failure = await refused(
            city.publishers.Publish(metadata=bearer(who)).read(), "RATE_LIMITED", "operations"
        )
        metadata = dict(failure.trailing_metadata())
        error = errors_pb2.Error.FromString(metadata["nearcast-error-bin"])
        assert 1_000 < error.retry_after_ms < 60_000
        retry = RetryInfo()
        assert Status.FromString(metadata["grpc-status-details-bin"]).details[1].Unpack(retry)
        assert retry.retry_delay.ToMilliseconds() == error.retry_after_ms
        assert failure.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert (await publish(city, token("two", "publisher"))).ids, "others are not concerned"
        operator = bearer(token("ops", "operator"))
        ask = control_service_pb2.StatusRequest()
        for _ in range(2):
            await city.control.Status(ask, metadata=operator)
        again = bearer(token("ops", "operator", ttl_s=77))  # another token changes nothing
        await refused(city.control.Status(ask, metadata=again), "RATE_LIMITED", "operations")


async def test_a_publish_request_is_refused_whole_and_the_stream_continues(tmp_path):
    async with a_city(tmp_path, publisher_rate=20.0) as city:
        call = city.publishers.Publish(metadata=bearer(token("one", "publisher")))
        for _ in range(2):
            await call.write(publisher_service_pb2.PublishRequest(objects=[an_object()] * 250))
        first, second = [await call.read() for _ in range(2)]
        assert len(first.ids) == 250
        assert reason_of(second.error) == "RATE_LIMITED"
        assert second.error.retry_after_ms > 0
        assert len(city.server.coordinator.matching.objects) == 250
        call.cancel()


async def test_a_device_that_floods_is_read_slowly_and_is_not_refused(tmp_path):
    async with a_city(tmp_path, device_rate=10.0) as city:
        call, _ = await attach(city, token("device", "device"))
        for number in range(130):
            await call.write(Request(ping=device_service_pb2.Ping(number=number)))
        other, welcome = await attach(city, token("other", "device"), "other")
        assert welcome.HasField("welcome")
        await other.write(Request(ping=device_service_pb2.Ping(number=1)))
        assert (await other.read()).HasField("pong")
        queued = city.server.command_loop.accepted_count
        assert queued < 125, "what is beyond its share waits at its side"
        responses = [await call.read() for _ in range(130)]
        assert [one.pong.number for one in responses] == list(range(130))
        call.cancel()


async def test_streams_of_one_caller_are_bounded(city):
    who = token("device", "device")
    calls = [city.devices.Attach(metadata=bearer(who)) for _ in range(setup.DEVICE_STREAMS_MAX)]
    for call in calls:
        await call.initial_metadata()
    await refused(city.devices.Attach(metadata=bearer(who)).read(), "RATE_LIMITED", "streams")
    _other, welcome = await attach(city, token("other", "device"), "other")
    assert welcome.HasField("welcome")
    for call in calls:
        call.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await call.code()
    async with asyncio.timeout(20):
        while len(city.server.listener.devices.senders) > 1:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)
    _, welcome = await attach(city, who)
    assert welcome.HasField("welcome"), "what ended counts no more"


async def test_streams_of_all_together_are_bounded_and_there_is_room_again():
    async with served(Limits(streams_max=4)) as stubs:
        server, attach_one = stubs.server, stubs.devices.Attach
        calls = [attach_one() for _ in range(4)]
        for call in calls:
            await call.initial_metadata()
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await attach_one().read()
        assert failed.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        calls.pop().cancel()
        async with asyncio.timeout(20):
            while len(server.listener.devices.senders) > 3:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.01)
        again = attach_one()
        await again.write(hello())
        assert (await again.read()).HasField("welcome")
        for call in (*calls, again):
            call.cancel()


async def test_thousands_of_half_open_streams_of_a_stranger_leave_nothing(city):
    method = city.channel.stream_stream("/nearcast.v1.DeviceService/Attach")
    honest, _ = await attach(city, token("device", "device"))
    for _ in range(4):
        calls = [method() for _ in range(500)]
        codes = await asyncio.gather(*(call.code() for call in calls))
        assert set(codes) == {grpc.StatusCode.UNAUTHENTICATED}
    assert len(city.server.listener.devices.senders) == 1
    await honest.write(Request(ping=device_service_pb2.Ping(number=1)))
    assert (await honest.read()).HasField("pong")


async def test_a_tenant_ahead_of_its_pace_waits_and_nothing_is_refused(tmp_path):
    """Neither its publishing, nor its calls, nor its devices; another tenant does not wait."""
    async with a_city(tmp_path) as city:
        search = device_service_pb2.SearchRequest(spec=a_spec(), position=HERE)

        async def all_of(tenant):
            (_,) = (await publish(city, token("shop", "publisher", tenant=tenant))).ids
            device = token("device", "device", tenant=tenant)
            stream, _ = await attach(city, device)
            await stream.write(Request(subscribe=subscribe(1, a_spec())))
            assert (await stream.read()).HasField("delta")
            stream.cancel()
            found = await city.devices.Search(search, metadata=bearer(device))
            assert found.matches

        await all_of("acme")
        loop = city.server.command_loop
        account = next(one for one in loop.tenants.values() if one.name == "acme")
        account.set_pace(0.01)
        account.charge(1e9, time.monotonic())
        waiting = asyncio.create_task(all_of("acme"))
        await all_of("other")
        assert not waiting.done()
        account.charge(-1e9, time.monotonic())
        account.set_pace(math.inf)
        async with asyncio.timeout(60):
            await waiting
        assert not any(loop.coordinator.counters.rejected.values())
