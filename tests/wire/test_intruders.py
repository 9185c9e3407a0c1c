"""Intruders, from real channels: each rule of `server/rules.py`, and what goes beyond anybody's share."""

from __future__ import annotations

import asyncio
import contextlib
from types import SimpleNamespace

import grpc
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status

from nearcast.v1 import (
    control_service_pb2,
    control_service_pb2_grpc,
    device_service_pb2,
    device_service_pb2_grpc,
    errors_pb2,
    publisher_service_pb2,
    publisher_service_pb2_grpc,
)
from server.identity import setup
from tests.support.identity import bearer, keys_in, token
from tests.support.servers import serving
from tests.wire.conftest import settings
from tests.wire.test_bad_input import HERE, a_spec, an_object, check_details, hello, state, subscribe

Request = device_service_pb2.AttachRequest
FleetRequest = device_service_pb2.AttachFleetRequest
ROLES = ("device", "gateway", "publisher", "operator")
MAY = {
    "/nearcast.v1.DeviceService/Attach": {"device", "gateway"},
    "/nearcast.v1.DeviceService/AttachFleet": {"device", "gateway"},
    "/nearcast.v1.DeviceService/Search": set(ROLES),
    "/nearcast.v1.PublisherService/Publish": {"publisher"},
    "/nearcast.v1.PublisherService/Retract": {"publisher", "operator"},
    "/nearcast.v1.ControlService/Sync": {"operator"},
    "/nearcast.v1.ControlService/AdvanceClock": {"operator"},
    "/nearcast.v1.ControlService/SetIdf": {"operator"},
    "/nearcast.v1.ControlService/Status": {"operator"},
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": set(ROLES),
    "/grpc.health.v1.Health/Watch": set(ROLES),
}
OF_ALL = {"Sync", "AdvanceClock", "SetIdf"}
GO_AWAY = ("nearcast-go-away", "1")


@contextlib.asynccontextmanager
async def a_city(folder, **flags):
    """A server that knows tokens of our key, of two tenants besides the default one, and its stubs."""
    flags = {"jwks": str(keys_in(folder)), "tenants": ["acme", "other"], **flags}
    async with (
        serving(settings(**flags)) as server,
        grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel,
    ):
        yield SimpleNamespace(
            server=server,
            channel=channel,
            devices=device_service_pb2_grpc.DeviceServiceStub(channel),
            publishers=publisher_service_pb2_grpc.PublisherServiceStub(channel),
            control=control_service_pb2_grpc.ControlServiceStub(channel),
        )


@pytest.fixture
async def city(tmp_path):
    async with a_city(tmp_path) as city:
        yield city


async def refused(call, reason, field):
    async with asyncio.timeout(20):
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await call
    check_details(failed.value, reason, field)
    return failed.value


async def publish(city, who, *objects):
    """Publish as somebody; return the response."""
    call = city.publishers.Publish(metadata=bearer(who))
    await call.write(publisher_service_pb2.PublishRequest(objects=objects or [an_object()]))
    response = await call.read()
    await call.done_writing()
    await call.read()
    return response


async def attach(city, who, device_id="device", *more):
    """Say hello as somebody; return the stream and the answer."""
    call = city.devices.Attach(metadata=(*bearer(who), *more))
    await call.write(hello(device_id=device_id))
    return call, await call.read()


def reason_of(error):
    return errors_pb2.ErrorReason.Name(error.reason).removeprefix("ERROR_REASON_")


# -- roles ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("tenant", ["", "acme"])
async def test_every_role_may_do_what_is_its_own_and_nothing_else(city, role, tenant):
    metadata = bearer(token("name", role, tenant=tenant))
    for method, roles in MAY.items():
        call = city.channel.stream_stream(method)(metadata=metadata)
        if role not in roles:
            await refused(call.read(), "PERMISSION_DENIED", "token.roles")
        elif tenant and method.rpartition("/")[2] in OF_ALL:
            await refused(call.read(), "PERMISSION_DENIED", "token.tenant")
        else:
            await call.done_writing()  # without a message: it ends, whichever way, but it is let in
            with contextlib.suppress(grpc.aio.AioRpcError):
                await call.read()
            assert await call.code() is not grpc.StatusCode.PERMISSION_DENIED
            call.cancel()


# -- devices -------------------------------------------------------------------------------------


async def test_a_device_speaks_for_itself_alone(city):
    victim, welcome = await attach(city, token("victim", "device"), "victim")
    assert welcome.HasField("welcome")
    await victim.write(Request(subscribe=subscribe(1, a_spec())))
    await victim.read()
    before = state(city.server)
    who = token("thief", "device")
    for nonce in (b"another", b"8f1e"):
        call = city.devices.Attach(metadata=bearer(who))
        await call.write(hello(device_id="victim", nonce=nonce))
        rejection = (await call.read()).rejection
        assert (reason_of(rejection.error), rejection.error.field) == (
            "PERMISSION_DENIED",
            "hello.device_id",
        )
    assert state(city.server) == before
    await victim.write(Request(ping=device_service_pb2.Ping(number=1)))
    assert (await victim.read()).HasField("pong")


async def test_a_device_touches_nobodys_subscriptions_on_a_fleet_stream(city):
    victim, _ = await attach(city, token("victim", "device"), "victim")
    await victim.write(Request(subscribe=subscribe(1, a_spec())))
    await victim.read()
    before = state(city.server)
    fleet = city.devices.AttachFleet(metadata=bearer(token("thief", "device")))

    async def tell(device_id, request):
        await fleet.write(
            FleetRequest(entries=[FleetRequest.Entry(device_id=device_id, request=request)])
        )
        (entry,) = (await fleet.read()).entries
        return entry.response.rejection.error

    assert not (await tell("thief", hello(device_id="thief"))).reason
    assert reason_of(await tell("victim", hello(device_id="victim"))) == "PERMISSION_DENIED"
    unsubscribe = device_service_pb2.Unsubscribe(subscription_id=1)
    report = device_service_pb2.Report(sequence=1, position=HERE, subscription_ids=[1])
    for request in (
        Request(unsubscribe=unsubscribe),
        Request(report=report),
        Request(subscribe=subscribe(1, a_spec(k=9))),
    ):
        assert reason_of(await tell("victim", request)) == "OUT_OF_ORDER"
    assert state(city.server)[1]["victim"] == before[1]["victim"]
    assert state(city.server)[3] == before[3]


async def test_a_gateway_speaks_for_any_device_of_its_tenant(city):
    for tenant in ("", "acme"):
        call, welcome = await attach(city, token("gate", "gateway", tenant=tenant), "device")
        assert welcome.HasField("welcome"), "the other tenant's device is another one"
        await call.write(Request(subscribe=subscribe(1, a_spec())))
        assert (await call.read()).HasField("delta")


@pytest.mark.parametrize("name", ["acme\x1fdevice", "acme\x1f", "\x1fdevice"])
async def test_nobody_names_a_device_of_another_tenant(city, name):
    await attach(city, token("device", "device", tenant="acme"), "device")
    _, answer = await attach(city, token("gate", "gateway"), name)
    assert reason_of(answer.rejection.error) == "INVALID_FIELD"
    assert answer.rejection.error.field == "hello.device_id"


# -- publishers ----------------------------------------------------------------------------------


async def test_a_publisher_takes_back_and_replaces_its_own_alone(city):
    one, two = token("one", "publisher"), token("two", "publisher")
    (mine,) = (await publish(city, one, an_object(key="shop"))).ids
    before = state(city.server)
    retract = publisher_service_pb2.RetractRequest(ids=[mine])
    await refused(city.publishers.Retract(retract, metadata=bearer(two)), "PERMISSION_DENIED", "ids[0]")
    for changes in ({}, {"ttl_ms": 5_000}):  # the same object, and another in its place
        response = await publish(city, two, an_object(), an_object(key="shop", **changes))
        assert (reason_of(response.error), response.error.field) == (
            "PERMISSION_DENIED",
            "objects[1].key",
        )
    assert state(city.server) == before, "all or nothing"
    assert (await publish(city, two, an_object())).ids == [mine + 1], "what is refused takes no number"
    assert (await publish(city, one, an_object(key="shop"))).ids == [mine]
    (again,) = (await publish(city, one, an_object(key="shop", ttl_ms=5_000))).ids
    await city.publishers.Retract(publisher_service_pb2.RetractRequest(ids=[again]), metadata=bearer(one))
    assert list(city.server.coordinator.matching.objects) == [mine + 1]


async def test_an_operator_takes_back_what_anybody_of_its_tenant_has_published(city):
    (here,) = (await publish(city, token("one", "publisher"))).ids
    (there,) = (await publish(city, token("one", "publisher", tenant="acme"))).ids
    operator = bearer(token("ops", "operator"))
    await refused(
        city.publishers.Retract(publisher_service_pb2.RetractRequest(ids=[there]), metadata=operator),
        "UNKNOWN_OBJECT",
        "ids[0]",
    )
    await city.publishers.Retract(publisher_service_pb2.RetractRequest(ids=[here]), metadata=operator)
    assert list(city.server.coordinator.matching.objects) == [there]


async def test_what_was_published_without_a_name_is_an_operators(tmp_path):
    store = tmp_path / "store.db"
    async with (
        serving(settings(store=str(store))) as server,
        grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel,
    ):
        call = publisher_service_pb2_grpc.PublisherServiceStub(channel).Publish()
        await call.write(publisher_service_pb2.PublishRequest(objects=[an_object(key="shop")]))
        (before,) = (await call.read()).ids
    async with a_city(tmp_path, store=str(store)) as city:
        retract = publisher_service_pb2.RetractRequest(ids=[before])
        one = bearer(token("one", "publisher"))
        await refused(city.publishers.Retract(retract, metadata=one), "PERMISSION_DENIED", "ids[0]")
        other = bearer(token("one", "operator", tenant="acme"))
        await refused(city.publishers.Retract(retract, metadata=other), "UNKNOWN_OBJECT", "ids[0]")
        await city.publishers.Retract(retract, metadata=bearer(token("ops", "operator")))


async def test_who_owns_an_object_is_on_disk(tmp_path):
    flags = {"store": str(tmp_path / "store.db")}
    async with a_city(tmp_path, **flags) as city:
        (mine,) = (await publish(city, token("one", "publisher", tenant="acme"), an_object(key="k"))).ids
    async with a_city(tmp_path, **flags) as city:
        two = token("two", "publisher", tenant="acme")
        retract = publisher_service_pb2.RetractRequest(ids=[mine])
        await refused(
            city.publishers.Retract(retract, metadata=bearer(two)), "PERMISSION_DENIED", "ids[0]"
        )
        assert reason_of((await publish(city, two, an_object(key="k"))).error) == "PERMISSION_DENIED"
        assert city.server.coordinator.gauges_of("acme") == {"objects": 1, "subscriptions": 0}
        city.server.coordinator.check()


# -- tenants -------------------------------------------------------------------------------------

BOOLEAN = device_service_pb2.Subscribe(subscription_id=2, position=HERE)
BOOLEAN.spec.boolean.clauses.add(required=["sushi"])
BOOLEAN.spec.boolean.clauses.add(required=["tea"], excluded=["lunch"])
BOOLEAN.spec.boolean.circle.radius_m = 5_000
BOOLEAN.spec.boolean.moving = True


async def test_nothing_crosses_between_tenants(city):
    """The same device, subscriptions, key and object in three tenants: each sees its own."""
    streams, ids = {}, {}
    for tenant in ("", "acme", "other"):
        streams[tenant], _ = await attach(city, token("device", "device", tenant=tenant))
        await streams[tenant].write(Request(subscribe=subscribe(1, a_spec(keywords=["sushi", "tea"]))))
        await streams[tenant].read()
        await streams[tenant].write(Request(subscribe=BOOLEAN))
        await streams[tenant].read()
    for tenant in ("acme", "", "other"):
        who = token("shop", "publisher", tenant=tenant)
        item = an_object(key="key", keywords=["sushi", "lunch"], payload=tenant.encode())
        (ids[tenant],) = (await publish(city, who, item)).ids
        for _ in range(2):
            delta = (await streams[tenant].read()).delta
            (entry,) = delta.add
            assert (entry.object.id, entry.object.key) == (ids[tenant], "key")
            assert entry.object.payload == tenant.encode()
            assert list(entry.object.keywords) == ["lunch", "sushi"]
    search = device_service_pb2.SearchRequest(spec=a_spec(k=9), position=HERE)
    for tenant, stream in streams.items():
        found = await city.devices.Search(search, metadata=bearer(token("s", "device", tenant=tenant)))
        assert [one.object.id for one in found.matches] == [ids[tenant]]
        await stream.write(Request(ping=device_service_pb2.Ping(number=1)))
        assert (await stream.read()).HasField("pong"), "and nothing came in between"
        stream.cancel()
    thief = bearer(token("shop", "publisher", tenant="other"))
    foreign = publisher_service_pb2.RetractRequest(ids=[ids["acme"]])
    await refused(city.publishers.Retract(foreign, metadata=thief), "UNKNOWN_OBJECT", "ids[0]")
    absent = publisher_service_pb2.RetractRequest(ids=[10**9])
    failures = [
        await refused(city.publishers.Retract(one, metadata=thief), "UNKNOWN_OBJECT", "ids[0]")
        for one in (foreign, absent)
    ]
    assert failures[0].details().replace(str(ids["acme"]), str(10**9)) == failures[1].details()


async def test_a_device_is_told_its_subscriptions_in_its_own_words(city):
    who = token("device", "device", tenant="acme")
    stream, _ = await attach(city, who)
    await stream.write(Request(subscribe=subscribe(1, a_spec(keywords=["sushi", "tea"]))))
    await stream.read()
    await stream.write(Request(subscribe=BOOLEAN))
    await stream.read()
    stream.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await stream.code()
    await city.control.Sync(control_service_pb2.SyncRequest(), metadata=bearer(token("ops", "operator")))
    _, answer = await attach(city, who)
    specs = [one.spec for one in answer.welcome.subscriptions]
    assert list(specs[0].top_k.keywords) == ["sushi", "tea"]
    assert [list(one.required) for one in specs[1].boolean.clauses] == [["sushi"], ["tea"]]
    assert [list(one.excluded) for one in specs[1].boolean.clauses] == [[], ["lunch"]]


async def test_an_operator_sees_its_own_tenant(city):
    await publish(city, token("shop", "publisher", tenant="acme"))
    stream, _ = await attach(city, token("device", "device", tenant="acme"))
    await stream.write(Request(subscribe=subscribe(1, a_spec())))
    await stream.read()
    ask = control_service_pb2.StatusRequest()
    for tenant, count in (("acme", 1), ("other", 0)):
        who = bearer(token("ops", "operator", tenant=tenant))
        found = await city.control.Status(ask, metadata=who)
        assert dict(found.gauges) == {"objects": count, "subscriptions": count}
        assert not found.counters
    found = await city.control.Status(ask, metadata=bearer(token("ops", "operator")))
    assert found.gauges["objects"] == 1
    assert found.counters["hellos"] == 1
    stream.cancel()


async def test_windows_of_so_many_objects_are_refused_where_tenants_share_the_numbers(city):
    call, _ = await attach(city, token("device", "device"))
    wanted = subscribe(1, a_spec())
    wanted.spec.window.count = 5
    await call.write(Request(subscribe=wanted))
    error = (await call.read()).rejection.error
    assert (reason_of(error), error.field) == ("UNIMPLEMENTED", "spec.window.count")
    search = device_service_pb2.SearchRequest(spec=wanted.spec, position=HERE)
    who = bearer(token("device", "device"))
    await refused(city.devices.Search(search, metadata=who), "UNIMPLEMENTED", "spec.window.count")


# -- shares --------------------------------------------------------------------------------------


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


async def test_quotas_hold_for_requests_that_share_a_commit(tmp_path):
    async with a_city(tmp_path, publisher_objects_max=5) as city:
        call = city.publishers.Publish(metadata=bearer(token("one", "publisher")))
        for _ in range(10):
            await call.write(publisher_service_pb2.PublishRequest(objects=[an_object()]))
        answers = [await call.read() for _ in range(10)]
        assert sum(len(one.ids) for one in answers) == 5
        assert len(city.server.coordinator.matching.objects) == 5
        call.cancel()


async def test_who_asks_for_too_much_is_told_when_to_try_again(tmp_path):
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


async def test_a_publish_request_is_refused_whole_and_the_stream_goes_on(tmp_path):
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
    async with a_city(tmp_path, device_rate=30.0) as city:
        call, _ = await attach(city, token("device", "device"))
        for number in range(330):
            await call.write(Request(ping=device_service_pb2.Ping(number=number)))
        other, welcome = await attach(city, token("other", "device"), "other")
        assert welcome.HasField("welcome")
        await other.write(Request(ping=device_service_pb2.Ping(number=1)))
        assert (await other.read()).HasField("pong")
        queued = city.server._command_loop._queue._number
        assert queued < 320, "what is beyond its share waits at its side"
        answers = [await call.read() for _ in range(330)]
        assert [one.pong.number for one in answers] == list(range(330))
        call.cancel()


async def test_streams_of_one_caller_are_bounded(city):
    who = token("device", "device")
    calls = [city.devices.Attach(metadata=bearer(who)) for _ in range(setup._DEVICE_STREAMS_MAX)]
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
        while len(city.server._listener._devices.senders) > 1:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)
    _, welcome = await attach(city, who)
    assert welcome.HasField("welcome"), "what ended counts no more"


async def test_thousands_of_half_open_streams_of_a_stranger_leave_nothing(city):
    method = city.channel.stream_stream("/nearcast.v1.DeviceService/Attach")
    honest, _ = await attach(city, token("device", "device"))
    for _ in range(4):
        calls = [method() for _ in range(500)]
        codes = await asyncio.gather(*(call.code() for call in calls))
        assert set(codes) == {grpc.StatusCode.UNAUTHENTICATED}
    assert len(city.server._listener._devices.senders) == 1
    await honest.write(Request(ping=device_service_pb2.Ping(number=1)))
    assert (await honest.read()).HasField("pong")


# -- the end of a token --------------------------------------------------------------------------


async def test_a_stream_of_a_device_ends_with_its_token(tmp_path):
    async with a_city(tmp_path, token_skew_s=0.0) as city:
        who = token("device", "device", ttl_s=1)
        polite, _ = await attach(city, who, "device", GO_AWAY)
        away = (await polite.read()).go_away
        assert reason_of(away.error) == "TOKEN_EXPIRED"
        await polite.done_writing()
        assert await polite.read() is grpc.aio.EOF
        await refused(city.devices.Attach(metadata=bearer(who)).read(), "TOKEN_EXPIRED", "token.exp")
        assert "device" not in city.server.coordinator.sessions


async def test_a_client_of_before_is_detached_when_its_token_ends(tmp_path):
    async with a_city(tmp_path, token_skew_s=0.0) as city:
        call, _ = await attach(city, token("device", "device", ttl_s=1))
        assert reason_of((await call.read()).detached.error) == "TOKEN_EXPIRED"
        assert await call.read() is grpc.aio.EOF


@pytest.mark.parametrize("method", ["Attach", "Publish"])
async def test_who_does_not_go_when_its_token_ends_is_not_waited_for(tmp_path, monkeypatch, method):
    from server.transport import expiry  # noqa: PLC0415

    monkeypatch.setattr(expiry, "_HALF_CLOSE_S", 0.2)
    async with a_city(tmp_path, token_skew_s=0.0) as city:
        who = token("device", "device", "publisher", ttl_s=1)
        stub = city.devices if method == "Attach" else city.publishers
        call = getattr(stub, method)(metadata=(*bearer(who), GO_AWAY))
        await call.write(hello() if method == "Attach" else publisher_service_pb2.PublishRequest())
        await call.read()
        assert reason_of((await call.read()).go_away.error) == "TOKEN_EXPIRED"
        async with asyncio.timeout(20):
            await call.code()  # it has ended, though nobody has half-closed


async def test_a_publish_stream_ends_with_its_token_and_says_what_it_has_admitted(tmp_path):
    async with a_city(tmp_path, token_skew_s=0.0) as city:
        who = token("one", "publisher", ttl_s=1)
        call = city.publishers.Publish(metadata=(*bearer(who), GO_AWAY))
        await call.write(publisher_service_pb2.PublishRequest(objects=[an_object()]))
        assert (await call.read()).ids
        away = (await call.read()).go_away
        assert (reason_of(away.error), away.admitted_count) == ("TOKEN_EXPIRED", 1)
        await call.write(publisher_service_pb2.PublishRequest(objects=[an_object()]))
        await call.done_writing()
        await refused(call.read(), "TOKEN_EXPIRED", "token.exp")
        assert len(city.server.coordinator.matching.objects) == 1
