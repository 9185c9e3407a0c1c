"""Tenants on the wire: nothing crosses, and each is told in its own words."""

from __future__ import annotations

import asyncio
import contextlib
from unittest.mock import Mock

import pytest

from nearcast.v1 import (
    control_service_pb2,
    device_service_pb2,
    publisher_service_pb2,
)
from server.monitoring.readings import Readings
from tests.support.identity import bearer, token
from tests.wire.city import attach, publish, reason_of, refused
from tests.wire.test_bad_input import HERE, a_spec, an_object, subscribe
from tests.wire.test_unread import SEARCH, account_of

Request = device_service_pb2.AttachRequest

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


async def test_a_device_gets_its_subscriptions_with_its_own_keywords(city):
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
    _, response = await attach(city, who)
    specs = [one.spec for one in response.welcome.subscriptions]
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


async def test_the_status_of_another_tenant_reads_no_streams(city, monkeypatch):
    ask = control_service_pb2.StatusRequest()
    monkeypatch.setattr(Readings, "_gauges", Mock(side_effect=AssertionError("everything is read")))
    found = await city.control.Status(ask, metadata=bearer(token("ops", "operator", tenant="acme")))
    assert set(found.gauges) == {"objects", "subscriptions"}


@pytest.mark.parametrize("tenant", ["acme", ""])
async def test_the_status_costs_its_operator(city, tenant):
    who = bearer(token("ops", "operator", tenant=tenant))
    open_call = city.channel.stream_stream(SEARCH)(metadata=who)
    account = await account_of(city, "ops", lambda one: one.call_count == 1)
    assert account.used_us == 0.0
    await city.control.Status(control_service_pb2.StatusRequest(), metadata=who)
    assert account.used_us > 0.0
    open_call.cancel()


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


async def test_an_operator_inspects_its_own_tenant(city):
    (object_id,) = (await publish(city, token("shop", "publisher", tenant="acme"))).ids
    stream, _ = await attach(city, token("device", "device", tenant="acme"))
    await stream.write(Request(subscribe=subscribe(1, a_spec())))
    await stream.read()
    inspect, about = city.control.Inspect, control_service_pb2.InspectRequest
    ours = bearer(token("ops", "operator", tenant="acme"))
    subject = control_service_pb2.SubscriptionSubject(
        device_id="device", subscription_id=1, object_id=object_id
    )
    found = (await inspect(about(subscription=subject), metadata=ours)).subscription
    assert (found.device_id, list(found.spec.top_k.keywords)) == ("device", ["sushi"])
    assert found.judgement.verdict == control_service_pb2.VERDICT_HELD
    item = (await inspect(about(object_id=object_id), metadata=ours)).object
    assert [one.device_id for one in item.holders] == ["device"]
    assert set(item.object.keywords) == {"sushi"}
    for tenant in ("", "other"):
        theirs = bearer(token("ops", "operator", tenant=tenant))
        call = inspect(about(device_id="device"), metadata=theirs)
        await refused(call, "UNKNOWN_SUBSCRIPTION", "device_id")
        await refused(inspect(about(object_id=object_id), metadata=theirs), "UNKNOWN_OBJECT", "object_id")
    device = bearer(token("device", "device", tenant="acme"))
    await refused(inspect(about(device_id="device"), metadata=device), "PERMISSION_DENIED", "token.roles")
    stream.cancel()


async def test_a_key_is_the_callers_tenants(city):
    """Three tenants have an object of one key: each retracts and inspects its own by it."""
    ids, retract = {}, publisher_service_pb2.RetractRequest(keys=["key"])
    for tenant in ("", "acme", "other"):
        who = token("shop", "publisher", tenant=tenant)
        (ids[tenant],) = (await publish(city, who, an_object(key="key", payload=tenant.encode()))).ids
    about = control_service_pb2.InspectRequest(object_key="key")
    for tenant, object_id in ids.items():
        ops = bearer(token("ops", "operator", tenant=tenant))
        item = (await city.control.Inspect(about, metadata=ops)).object.object
        assert (item.id, item.key) == (object_id, "key")
        foreign = control_service_pb2.InspectRequest(object_key=f"{tenant or 'acme'}\x1fkey")
        if tenant:
            await refused(city.control.Inspect(foreign, metadata=ops), "UNKNOWN_OBJECT", "object_key")
    thief = bearer(token("thief", "publisher", tenant="acme"))
    await refused(city.publishers.Retract(retract, metadata=thief), "UNKNOWN_OBJECT", "keys[0]")
    alive = city.server.coordinator.matching.objects
    for tenant, object_id in ids.items():
        shop = bearer(token("shop", "publisher", tenant=tenant))
        await city.publishers.Retract(retract, metadata=shop)
        assert object_id not in alive
        failure = await refused(
            city.publishers.Retract(retract, metadata=shop), "UNKNOWN_OBJECT", "keys[0]"
        )
        assert "keys[0] is 'key', must be the key of a live object" in failure.details()
        ops = bearer(token("ops", "operator", tenant=tenant))
        await refused(city.control.Inspect(about, metadata=ops), "UNKNOWN_OBJECT", "object_key")
    assert not alive
