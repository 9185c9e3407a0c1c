"""Answers that are not read, streams of libraries' services, calls at once: each has a caller."""

from __future__ import annotations

import asyncio
import contextlib

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from identity import setup
from nearcast.v1 import control_service_pb2, device_service_pb2, subscriptions_pb2
from server.transport import answers
from tests.support.identity import SHORT_S, bearer, token
from tests.wire.city import a_city, publish, refused
from tests.wire.conftest import served
from tests.wire.test_bad_input import HERE, a_spec, an_object

SEARCH = "/nearcast.v1.DeviceService/Search"
ANSWER_BYTES = 20 * 16_000


def a_large_search():
    """Return what has an answer that no window takes at once."""
    boolean = subscriptions_pb2.Boolean(
        clauses=[subscriptions_pb2.Clause(required=["sushi"])],
        circle={"radius_m": 1000.0, "center": HERE},
    )
    spec = subscriptions_pb2.SubscriptionSpec(boolean=boolean)
    return device_service_pb2.SearchRequest(spec=spec, position=HERE)


async def requested(city, who):
    """Ask, on a connection with a small window, and read nothing."""
    call = city.narrow.stream_stream(SEARCH)(metadata=bearer(who))
    await call.write(a_large_search().SerializeToString())
    return call


@pytest.fixture
async def full_city(tmp_path, monkeypatch):
    monkeypatch.setattr(answers, "CALLER_BYTES_MAX", 2 * ANSWER_BYTES + 100_000)
    monkeypatch.setattr(answers, "_WAIT_S", 0.3)
    async with a_city(tmp_path) as city:
        await publish(
            city, token("p", "publisher"), *(an_object(payload=bytes(16_000)) for _ in range(20))
        )
        options = [("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", 16_384)]
        async with grpc.aio.insecure_channel(f"127.0.0.1:{city.server.port}", options) as channel:
            city.narrow = channel
            yield city


async def test_a_caller_that_reads_no_responses_gets_no_more_and_others_are_not_affected(full_city):
    who = token("evil", "device")
    first = await requested(full_city, who)
    account = await account_of(full_city, "evil", lambda one: one.unread_bytes > ANSWER_BYTES)
    waiting = [await requested(full_city, who) for _ in range(8)]
    codes = [await one.code() for one in waiting if await is_refused(one)]
    assert codes
    assert set(codes) == {grpc.StatusCode.RESOURCE_EXHAUSTED}
    assert account.unread_bytes <= answers.CALLER_BYTES_MAX
    honest = await requested(full_city, token("honest", "device"))
    assert len(device_service_pb2.SearchResponse.FromString(await honest.read()).matches) == 20
    for call in (first, *waiting):
        call.cancel()
    await account_of(full_city, "evil", lambda one: one.unread_bytes == 0)
    again = await requested(full_city, who)
    assert len(device_service_pb2.SearchResponse.FromString(await again.read()).matches) == 20


async def test_calls_at_once_get_no_more_than_one_after_the_other(full_city, monkeypatch):
    """The caller's last response is small, so nothing is known of the size of the next ones."""
    monkeypatch.setattr(answers, "_WAIT_S", 20.0)
    who = token("evil", "device")
    small = device_service_pb2.SearchRequest(spec=a_spec(k=1), position=HERE)
    await full_city.devices.Search(small, metadata=bearer(who))
    execute, all_wait = full_city.server.command_loop.execute, asyncio.Barrier(8)

    async def execute_together(command):
        await all_wait.wait()
        return await execute(command)

    monkeypatch.setattr(full_city.server.command_loop, "execute", execute_together)
    calls = await asyncio.gather(*(requested(full_city, who) for _ in range(8)))
    account = await account_of(full_city, "evil", lambda one: one.unread_bytes > ANSWER_BYTES)
    for _ in range(50):
        assert account.unread_bytes <= answers.CALLER_BYTES_MAX
        await asyncio.sleep(0.01)
    responses = await asyncio.gather(*(call.read() for call in calls))
    found = [len(device_service_pb2.SearchResponse.FromString(one).matches) for one in responses]
    assert found == [20] * 8
    await account_of(full_city, "evil", lambda one: one.unread_bytes == 0)


async def is_refused(call):
    try:
        async with asyncio.timeout(1.0):
            await call.initial_metadata()
            await call.wait_for_connection()
    except (TimeoutError, grpc.aio.AioRpcError):
        pass
    return call.done()


async def account_of(city, name, condition):
    """Return a caller's account as soon as it is so."""
    accounts = city.server.readings.accounts
    async with asyncio.timeout(20.0):
        while True:
            for one in accounts():
                if one.name == name and condition(one):
                    return one
            await asyncio.sleep(0.01)


async def test_a_device_has_so_many_calls_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(setup, "DEVICE_CALLS_MAX", 2)
    async with a_city(tmp_path) as city:
        who = bearer(token("device", "device"))
        open_calls = [city.channel.stream_stream(SEARCH)(metadata=who) for _ in range(2)]
        account = await account_of(city, "device", lambda one: one.call_count == 2)
        await refused(city.channel.stream_stream(SEARCH)(metadata=who).read(), "RATE_LIMITED", "calls")
        for call in open_calls:
            call.cancel()
        await account_of(city, "device", lambda one: one.call_count == 0)
        assert account.call_count == 0
        search = device_service_pb2.SearchRequest(spec=a_spec(), position=HERE)
        await city.devices.Search(search, metadata=who)


async def watched(channel, metadata):
    call = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest(), metadata=metadata)
    assert (await call.read()).status == health_pb2.HealthCheckResponse.SERVING
    return call


async def reflected(channel, metadata):
    call = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo(metadata=metadata)
    await call.write(reflection_pb2.ServerReflectionRequest(list_services=""))
    assert (await call.read()).list_services_response.service
    return call


@pytest.mark.parametrize("begin", [watched, reflected])
async def test_a_stream_of_a_library_ends_with_its_token(tmp_path, monkeypatch, begin):
    monkeypatch.setattr("identity.expiry._HALF_CLOSE_S", 0.05)
    async with a_city(tmp_path, token_skew_s=0.0) as city:
        call = await begin(city.channel, bearer(token("d", "device", ttl_s=SHORT_S)))
        await refused(call.read(), "TOKEN_EXPIRED", "token.exp")


@pytest.mark.parametrize("begin", [watched, reflected])
async def test_a_stream_of_a_library_is_one_of_its_caller(tmp_path, monkeypatch, begin):
    monkeypatch.setattr(setup, "DEVICE_STREAMS_MAX", 2)
    async with a_city(tmp_path) as city:
        who = bearer(token("d", "device"))
        calls = [await begin(city.channel, who) for _ in range(2)]
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await begin(city.channel, who)
        assert failed.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        calls[0].cancel()
        await account_of(city, "d", lambda one: one.stream_count == 1)
        await begin(city.channel, who)


async def answered_within(call, seconds):
    """Count the answers that come meanwhile."""
    count = 0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while True:
                await call.read()
                count += 1
    return count


async def test_requests_to_reflection_count_as_operations(tmp_path):
    async with a_city(tmp_path, device_rate=0.5) as city:
        call = await reflected(city.channel, bearer(token("d", "device")))
        for _ in range(20):
            await call.write(reflection_pb2.ServerReflectionRequest(list_services=""))
        answers = await answered_within(call, 1.0)
        assert answers < 6, "five operations are what half an operation a second has saved up"


async def test_there_is_no_reflection_by_default():
    async with served(reflection=False) as stubs:
        call = reflection_pb2_grpc.ServerReflectionStub(stubs.channel).ServerReflectionInfo()
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await call.read()
        assert failed.value.code() is grpc.StatusCode.UNIMPLEMENTED
        await stubs.control.Status(control_service_pb2.StatusRequest())


async def test_operators_see_the_callers_that_use_the_server(tmp_path):
    async with a_city(tmp_path) as city:
        objects = [an_object(key=str(i)) for i in range(500)]
        for tenant, name in (("", "shop"), ("acme", "store")):
            await publish(city, token(name, "publisher", tenant=tenant), *objects)
        await account_of(city, "shop", lambda one: one.used_us > 0)
        status = control_service_pb2.StatusRequest()
        found = await city.control.Status(status, metadata=bearer(token("ops", "operator")))
        assert {(one.tenant, one.id) for one in found.callers} >= {("", "shop"), ("acme", "store")}
        assert all(one.time_share > 0.0 and one.time_us > 0 for one in found.callers)
        metadata = bearer(token("ops", "operator", tenant="acme"))
        found = await city.control.Status(status, metadata=metadata)
        assert [(one.tenant, one.id) for one in found.callers] == [("acme", "store")]
