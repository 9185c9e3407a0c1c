"""Intruders, from real channels: a test for each rule of `identity/rules.py`."""

from __future__ import annotations

import contextlib

import grpc
import pytest

from nearcast.v1 import (
    device_service_pb2,
    publisher_service_pb2,
)
from server.limits import Limits
from server.transport.message_bounds import SMALL
from tests.support.identity import bearer, token
from tests.wire.city import a_city, attach, publish, reason_of, refused
from tests.wire.conftest import served
from tests.wire.test_bad_input import HERE, a_spec, an_object, hello, state, subscribe

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


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("tenant", ["", "acme"])
async def test_every_role_may_use_its_own_operations_and_no_others(city, role, tenant):
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


@pytest.mark.parametrize(
    ("method", "roles", "bytes_max"),
    [
        ("nearcast.v1.DeviceService/Search", ("device",), Limits().request_bytes_max),
        ("nearcast.v1.DeviceService/Attach", ("device",), Limits().request_bytes_max),
        ("nearcast.v1.DeviceService/AttachFleet", ("gateway",), Limits().fleet_bytes_max),
        ("nearcast.v1.PublisherService/Retract", ("publisher",), Limits().fleet_bytes_max),
        ("nearcast.v1.ControlService/Status", ("operator",), SMALL.bytes_max),
        ("grpc.health.v1.Health/Check", (), SMALL.bytes_max),
    ],
)
async def test_no_message_is_parsed_beyond_the_bound_of_its_method(city, method, roles, bytes_max):
    metadata = bearer(token("device", *roles)) if roles else ()
    call = city.channel.stream_stream(f"/{method}")(metadata=metadata)
    await call.write(b"\xff" * (bytes_max + 1))
    await refused(call.read(), "INVALID_FIELD", "request")
    assert f"request is {bytes_max + 1} bytes, must be at most" in await call.details()


async def test_a_device_touches_nobodys_subscriptions_on_a_fleet_stream(city):
    victim, _ = await attach(city, token("victim", "device"), "victim")
    await victim.write(Request(subscribe=subscribe(1, a_spec())))
    await victim.read()
    before = state(city.server)
    fleet = city.devices.AttachFleet(metadata=bearer(token("thief", "device")))

    async def exchange(device_id, request):
        await fleet.write(
            FleetRequest(entries=[FleetRequest.Entry(device_id=device_id, request=request)])
        )
        (entry,) = (await fleet.read()).entries
        return entry.response.rejection.error

    assert not (await exchange("thief", hello(device_id="thief"))).reason
    assert reason_of(await exchange("victim", hello(device_id="victim"))) == "PERMISSION_DENIED"
    unsubscribe = device_service_pb2.Unsubscribe(subscription_id=1)
    report = device_service_pb2.Report(sequence=1, position=HERE, subscription_ids=[1])
    for request in (
        Request(unsubscribe=unsubscribe),
        Request(report=report),
        Request(subscribe=subscribe(1, a_spec(k=9))),
    ):
        assert reason_of(await exchange("victim", request)) == "OUT_OF_ORDER"
    assert state(city.server)[1]["victim"] == before[1]["victim"]
    assert state(city.server)[3] == before[3]


async def test_a_gateway_speaks_for_any_device_of_its_tenant(city):
    for tenant in ("", "acme"):
        call, welcome = await attach(city, token("gate", "gateway", tenant=tenant), "device")
        assert welcome.HasField("welcome"), "the other tenant's device is another one"
        await call.write(Request(subscribe=subscribe(1, a_spec())))
        assert (await call.read()).HasField("delta")


@pytest.mark.parametrize("name", ["acme\x1fdevice", "acme\x1f", "\x1fdevice"])
async def test_no_caller_names_a_device_of_another_tenant(city, name):
    await attach(city, token("device", "device", tenant="acme"), "device")
    _, response = await attach(city, token("gate", "gateway"), name)
    assert reason_of(response.rejection.error) == "INVALID_FIELD"
    assert response.rejection.error.field == "hello.device_id"


# -- publishers ----------------------------------------------------------------------------------


async def test_a_publisher_takes_back_and_replaces_its_own_alone(city):
    one, two = token("one", "publisher"), token("two", "publisher")
    (mine,) = (await publish(city, one, an_object(key="shop"))).ids
    before = state(city.server)
    retract = publisher_service_pb2.RetractRequest(ids=[mine])
    await refused(city.publishers.Retract(retract, metadata=bearer(two)), "PERMISSION_DENIED", "ids[0]")
    retract = publisher_service_pb2.RetractRequest(keys=["shop"])
    await refused(city.publishers.Retract(retract, metadata=bearer(two)), "UNKNOWN_OBJECT", "keys[0]")
    assert state(city.server) == before
    (theirs,) = (await publish(city, two, an_object(key="shop", ttl_ms=5_000))).ids
    assert theirs == mine + 1, "what is refused takes no number, and a key of another is no hindrance"
    assert (await publish(city, one, an_object(key="shop"))).ids == [mine]
    (again,) = (await publish(city, one, an_object(key="shop", ttl_ms=5_000))).ids
    await city.publishers.Retract(publisher_service_pb2.RetractRequest(ids=[again]), metadata=bearer(one))
    assert list(city.server.coordinator.matching.objects) == [theirs]


async def test_an_operator_retracts_objects_of_all_callers_of_its_tenant(city):
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


async def test_objects_published_without_a_name_belong_to_operators(tmp_path):
    store = tmp_path / "store.db"
    async with served(store=str(store)) as stubs:
        call = stubs.publishers.Publish()
        await call.write(publisher_service_pb2.PublishRequest(objects=[an_object(key="shop")]))
        (before,) = (await call.read()).ids
    async with a_city(tmp_path, store=str(store)) as city:
        retract = publisher_service_pb2.RetractRequest(ids=[before])
        one = bearer(token("one", "publisher"))
        await refused(city.publishers.Retract(retract, metadata=one), "PERMISSION_DENIED", "ids[0]")
        other = bearer(token("one", "operator", tenant="acme"))
        await refused(city.publishers.Retract(retract, metadata=other), "UNKNOWN_OBJECT", "ids[0]")
        await city.publishers.Retract(retract, metadata=bearer(token("ops", "operator")))


async def test_the_owner_of_an_object_is_on_disk(tmp_path):
    flags = {"store": str(tmp_path / "store.db")}
    async with a_city(tmp_path, **flags) as city:
        (mine,) = (await publish(city, token("one", "publisher", tenant="acme"), an_object(key="k"))).ids
    async with a_city(tmp_path, **flags) as city:
        two = token("two", "publisher", tenant="acme")
        retract = publisher_service_pb2.RetractRequest(ids=[mine])
        await refused(
            city.publishers.Retract(retract, metadata=bearer(two)), "PERMISSION_DENIED", "ids[0]"
        )
        assert (await publish(city, two, an_object(key="k"))).ids != [mine]
        assert city.server.coordinator.gauges_of("acme") == {"objects": 2, "subscriptions": 0}
        city.server.coordinator.check()
