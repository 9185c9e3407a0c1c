"""Inspect: what it says of every subscription and every object, against the oracle."""

from __future__ import annotations

import math
import random
from contextlib import asynccontextmanager

import pytest

import nearcast
from nearcast import Boolean, Bounds, Circle, GeoObject, Last, RefusedError, RegionMode, Similarity, TopK
from nearcast.v1 import control_service_pb2, device_service_pb2, geometry_pb2, subscriptions_pb2
from safe_region import oracle
from safe_region.earth.frame import Area, Frame
from safe_region.oracle import plane as oracle_plane
from server.limits import Limits
from tests.support.servers import serving
from tests.wire.conftest import settings
from tests.wire.test_bad_input import a_spec, an_object, attached, exchange, subscribe
from tests.wire.test_delivery import publish

WORDS = ("tea", "sushi", "books", "bread", "music")
FRAME = Frame.of(Area(14.0, 35.0, 15.0, 36.0))
LON, LAT = 14.5, 35.5


@asynccontextmanager
async def city(limits=None, count=120, **flags):
    """A server in virtual time, a client, a publisher and random objects, as the oracle sees them."""
    chance = random.Random(7)
    async with (
        serving(settings(virtual_time=True, **flags), limits) as server,
        nearcast.connect(f"127.0.0.1:{server.port}") as client,
    ):
        await client.advance_clock(1_000)
        objects = []
        publisher = client.publisher()
        for i in range(count):
            if i == count // 2:
                await client.advance_clock(5_000)
            words = frozenset(chance.sample(WORDS, chance.randint(1, 3)))
            lon, lat = LON + chance.uniform(-0.02, 0.02), LAT + chance.uniform(-0.02, 0.02)
            ttl_s = chance.choice((1.0, 60.0, 600.0))
            (object_id,) = await publisher.publish([GeoObject(words, lon, lat, ttl_s)])
            created_ms = 1_000 if i < count // 2 else 5_000
            point = FRAME.project(lon, lat)
            expiry_ms = created_ms + int(ttl_s * 1000)
            objects.append(oracle.OracleObject(object_id, *point, words, created_ms, expiry_ms))
        await client.advance_clock(6_500)
        yield server, client, objects


def reach_of(found):
    return (found["reach"]["length_m"], found["reach"]["object_id"])


def check_held(found, ranks):
    """What is held is told with the rank and length that the definition gives it."""
    for one in found["held"]:
        rank, match = ranks[one["object_id"]]
        assert (one["rank"], one["length_m"]) == (rank, match.length_m)
    keys = [(one["length_m"], one["object_id"]) for one in found["held"]]
    assert keys == sorted(keys)


async def judged(client, device_id, number, ids):
    for object_id in ids:
        found = await client.inspect(device_id, number, object_id)
        yield found, found["judgement"]


def ranks_of(matches):
    return {one.object_id: (rank, one) for rank, one in enumerate(matches, 1)}


TOP_K = {
    "anchored": (TopK({"tea", "sushi"}, 3, 0.7), {}),
    "a scale": (TopK({"tea", "sushi"}, 3, 0.7, distance_scale_m=2_500.0), {}),
    "dice": (TopK({"tea", "bread"}, 2, 0.9, similarity=Similarity.DICE), {}),
    "last 70": (TopK({"tea", "books"}, 3, 0.7, window=Last(count=70)), {"count": 70}),
    "last 2 s": (TopK({"tea", "books"}, 3, 0.7, window=Last(seconds=2.0)), {"duration_ms": 2_000}),
    "ellipse": (TopK({"tea", "sushi"}, 3, 0.7, region=RegionMode.ELLIPSE), {}),
    "stationary": (TopK({"tea", "music"}, 4, 0.7, region=RegionMode.STATIONARY), {}),
}


@pytest.fixture(scope="module")
def verdicts():
    """Every verdict that some test has seen."""
    return set()


async def test_top_k_of_every_mode(verdicts):
    async with city() as (_, client, objects), client.fleet() as fleet:
        device = await fleet.attach("d", lon=LON, lat=LAT)
        numbers = {}
        for name, (spec, _) in TOP_K.items():
            numbers[name] = (await device.subscribe(spec)).id
        await client.sync()
        for name, (spec, window) in TOP_K.items():
            await check_top_k(client, numbers[name], spec, window, objects, verdicts)
    assert verdicts >= {"HELD", "GONE", "NO_COMMON_KEYWORD", "OUT_OF_WINDOW", "BEYOND_REACH", "DOMINATED"}
    assert "NOT_AMONG_K" in verdicts


async def check_top_k(client, number, spec, window, objects, verdicts):
    latest_id = objects[-1].object_id
    wanted = oracle.OracleSubscription(
        frozenset(spec.keywords),
        spec.k,
        spec.alpha,
        spec.similarity.name.lower(),
        window=oracle.OracleWindow(**window, latest_id=latest_id),
        distance_scale_m=spec.distance_scale_m,
    )
    first = await client.inspect("d", number)
    assert first["spec"]["top_k"]["distance_scale_m"] == (spec.distance_scale_m or 0.0)
    anchor = (first["anchor"]["x_m"], first["anchor"]["y_m"])
    ranks = ranks_of(oracle.ranked(wanted, *anchor, FRAME.maxdist_m, objects, first["time_ms"]))
    check_held(first, ranks)
    held = {one["object_id"] for one in first["held"]}
    best = {object_id for object_id, (rank, _) in ranks.items() if rank <= spec.k}
    assert best <= held
    if spec.region is RegionMode.STATIONARY:
        assert held == best
    by_id = {one.object_id: one for one in objects}
    async for found, message in judged(client, "d", number, by_id):
        assert found["held"] == first["held"]
        item, object_id = by_id[message["object_id"]], message["object_id"]
        rank, match = ranks.get(object_id, (0, None))
        assert message["rank"] == rank
        if match is not None:
            assert message["length_m"] == match.length_m
        if not oracle.is_alive(item, first["time_ms"]):
            expected = "GONE"
        elif wanted.keywords.isdisjoint(item.keywords):
            expected = "NO_COMMON_KEYWORD"
        elif not oracle.does_count(wanted.window, item, first["time_ms"]):
            expected = "OUT_OF_WINDOW"
        elif object_id in held:
            expected = "HELD"
        elif spec.region is RegionMode.STATIONARY:
            expected = "NOT_AMONG_K"
        elif (match.length_m, object_id) < reach_of(found):
            expected = "DOMINATED"
        else:
            expected = "BEYOND_REACH"
        assert message["verdict"] == f"VERDICT_{expected}"
        verdicts.add(expected)


EXPRESSION = (oracle.OracleClause(frozenset({"tea"}), frozenset({"bread"})),)
BOOLEAN = {
    "moving": Boolean("tea AND NOT bread", Circle(900.0), moving=True),
    "nearest": Boolean("tea AND NOT bread", Circle(900.0), moving=True, region=RegionMode.NEAREST),
    "circle": Boolean("tea AND NOT bread", Circle(900.0, center=(LON, LAT))),
    "bounds": Boolean("tea AND NOT bread", Bounds(LON - 0.01, LAT - 0.01, LON + 0.01, LAT + 0.01)),
}


def grown(name, found):
    """The range that a device holds, as the oracle takes it."""
    anchor = (found["anchor"]["x_m"], found["anchor"]["y_m"])
    if name == "bounds":
        low, high = FRAME.project(LON - 0.01, LAT - 0.01), FRAME.project(LON + 0.01, LAT + 0.01)
        return oracle_plane.OracleRectangle(*low, *high)
    slack_m = found["slack"]["slack_m"]
    return oracle_plane.OracleCircle(900.0 + (0.0 if math.isinf(slack_m) else slack_m), anchor)


@pytest.mark.parametrize("matches_max", [1_000, 5])
async def test_boolean_of_every_mode(matches_max, verdicts):
    async with city(Limits(matches_max=matches_max)) as (_, client, objects), client.fleet() as fleet:
        device = await fleet.attach("d", lon=LON, lat=LAT)
        numbers = {}
        for name, spec in BOOLEAN.items():
            numbers[name] = (await device.subscribe(spec)).id
        await client.sync()
        seen = set()
        for name in BOOLEAN:
            seen |= await check_boolean(client, name, numbers[name], objects)
    verdicts |= seen
    many = {"TOO_MANY"} if matches_max == 5 else set()
    assert seen == {"HELD", "GONE", "NO_CLAUSE", "OUT_OF_RANGE"} | many


async def check_boolean(client, name, number, objects):
    first = await client.inspect("d", number)
    now_ms = first["time_ms"]
    wanted = oracle.OracleRange(EXPRESSION, grown(name, first))
    ranks = ranks_of(oracle.matching(wanted, 0.0, 0.0, objects, now_ms))
    check_held(first, ranks)
    held = {one["object_id"] for one in first["held"]}
    if first["slack"]["too_many"]:
        assert held == {one for one, (rank, _) in ranks.items() if rank <= 5}
    else:
        assert held == set(ranks)
    by_id, seen = {one.object_id: one for one in objects}, set()
    async for found, message in judged(client, "d", number, by_id):
        item, object_id = by_id[message["object_id"]], message["object_id"]
        assert message["rank"] == ranks.get(object_id, (0, None))[0]
        if not oracle.is_alive(item, now_ms):
            expected = "GONE"
        elif not oracle.has_clause(EXPRESSION, item.keywords):
            expected = "NO_CLAUSE"
        elif object_id in held:
            expected = "HELD"
        elif object_id in ranks:
            expected = "TOO_MANY"
            assert found["slack"]["too_many"]
        else:
            expected = "OUT_OF_RANGE"
        assert message["verdict"] == f"VERDICT_{expected}"
        seen.add(expected)
    return seen


async def test_holders_of_an_object():
    async with city() as (_, client, objects), client.fleet() as fleet:
        for i in range(3):
            device = await fleet.attach(f"d{i}", lon=LON + 0.01 * i, lat=LAT)
            for spec in (*(one for one, _ in TOP_K.values()), *BOOLEAN.values()):
                await device.subscribe(spec)
        await client.sync()
        held = {}
        for i in range(3):
            for one in (await client.inspect(f"d{i}"))["subscriptions"]:
                whole = await client.inspect(f"d{i}", one["subscription_id"])
                for item in whole["held"]:
                    held.setdefault(item["object_id"], set()).add((f"d{i}", one["subscription_id"]))
        now_ms = whole["time_ms"]
        for one in objects:
            if not oracle.is_alive(one, now_ms):
                continue
            found = await client.inspect(object_id=one.object_id)
            reported = {(holder["device_id"], holder["subscription_id"]) for holder in found["holders"]}
            assert reported == held.get(one.object_id, set())
            assert found["holder_count"] == len(reported)
            assert set(found["object"]["keywords"]) == one.keywords


async def test_a_device_and_its_waiting_deltas(stubs):
    device = await attached(stubs)
    await exchange(device, subscribe=subscribe(1, a_spec()))
    request = control_service_pb2.InspectRequest(device_id="device")
    found = (await stubs.control.Inspect(request)).device
    assert found.state == control_service_pb2.DEVICE_STATE_IN_SYNC
    assert (found.version, found.kept_count, found.waiting_count) == (1, 1, 0)
    assert found.lease_ms == 600_000
    (one,) = found.subscriptions
    assert one.awake
    assert not one.held, "a device's subscriptions come without what they hold"
    await device.write(device_service_pb2.AttachRequest(ack=device_service_pb2.Ack(version=1)))
    found = (await stubs.control.Inspect(request)).device
    assert found.kept_count == 0
    device.cancel()


def an_exact_spec(kind):
    """One for which the server asks where the device is."""
    if kind == "top-k":
        spec = a_spec(k=1)
        spec.region = subscriptions_pb2.REGION_MODE_ELLIPSE
        return spec
    clauses = [subscriptions_pb2.Clause(required=["sushi"])]
    circle = geometry_pb2.Circle(radius_m=500.0)
    boolean = subscriptions_pb2.Boolean(clauses=clauses, circle=circle, moving=True)
    mode = subscriptions_pb2.REGION_MODE_NEAREST
    return subscriptions_pb2.SubscriptionSpec(boolean=boolean, region=mode)


@pytest.mark.parametrize("kind", ["top-k", "boolean"])
async def test_an_object_that_waits_for_a_position(stubs, kind):
    device = await attached(stubs)
    await exchange(device, subscribe=subscribe(1, an_exact_spec(kind)))
    (object_id,) = await publish(stubs, an_object())
    subject = control_service_pb2.SubscriptionSubject(
        device_id="device", subscription_id=1, object_id=object_id
    )
    found = await stubs.control.Inspect(control_service_pb2.InspectRequest(subscription=subject))
    assert found.subscription.pending
    assert found.subscription.judgement.verdict == control_service_pb2.VERDICT_PENDING
    found = await stubs.control.Inspect(control_service_pb2.InspectRequest(object_id=object_id))
    assert found.object.holder_count == 0
    device.cancel()


async def test_a_device_of_the_store_stays_a_row(tmp_path):
    flags = {"store": tmp_path / "s.db", "virtual_time": True}
    async with (
        serving(settings(**flags)) as server,
        nearcast.connect(f"127.0.0.1:{server.port}") as client,
        client.fleet() as fleet,
    ):
        await client.publisher().publish([GeoObject({"tea"}, LON, LAT, 600.0, payload=b"secret")])
        subscription = await (await fleet.attach("d", lon=LON, lat=LAT)).subscribe(TopK({"tea"}))
    async with serving(settings(**flags)) as server:
        async with nearcast.connect(f"127.0.0.1:{server.port}") as client:
            device = await client.inspect("d")
            assert device["state"] == "DEVICE_STATE_PARKED"
            assert not device["subscriptions"][0]["awake"]
            assert "anchor" not in device["subscriptions"][0]
            found = await client.inspect("d", subscription.id, 1)
            assert found["judgement"]["verdict"] == "VERDICT_PARKED"
            found = await client.inspect("d", subscription.id, 2)
            assert found["judgement"]["verdict"] == "VERDICT_UNKNOWN_OBJECT"
            item = await client.inspect(object_id=1)
            assert item["holder_count"] == 0
            assert (item["object"]["payload"], item["payload_bytes"]) == ("", 6)
        assert not server.coordinator.sessions.made()


async def test_objects_are_shown_by_key_and_in_degrees():
    async with city(count=30) as (_, client, objects), client.fleet() as fleet:
        item = GeoObject({"tea", "cake"}, LON + 0.001, LAT + 0.002, 60.0, b"secret", "bakery-1")
        (object_id,) = await client.publisher().publish([item])
        device = await fleet.attach("d", lon=LON, lat=LAT)
        await device.subscribe(TopK({"tea"}, 5, 0.9))
        await device.subscribe(Boolean({"tea"}, Circle(900.0, (LON - 0.001, LAT + 0.001))))
        await client.sync()
        by_id = {one.object_id: one for one in objects}
        for number, anchor in ((1, (LON, LAT)), (2, (LON - 0.001, LAT + 0.001))):
            found = await client.inspect("d", number, object_key="bakery-1")
            assert found == await client.inspect("d", number, object_id)
            assert found["judgement"]["object_id"] == object_id
            place = found["anchor_position"]
            if number == 2:  # that of a subscription that moves is where it saves most reports
                assert (place["lon"], place["lat"]) == pytest.approx(anchor, abs=1e-9)
            x_m, y_m = FRAME.project(place["lon"], place["lat"])
            assert (x_m, y_m) == pytest.approx(tuple(found["anchor"].values()), abs=1e-6)
            (mine,) = [one for one in found["held"] if one["key"] == "bakery-1"]
            assert (mine["object_id"], set(mine["keywords"])) == (object_id, {"tea", "cake"})
            assert mine["position"] == {"lon": LON + 0.001, "lat": LAT + 0.002}
            for one in found["held"]:
                if one["object_id"] in by_id:
                    held = by_id[one["object_id"]]
                    assert (set(one["keywords"]), one["key"]) == (set(held.keywords), "")
                    at = FRAME.project(one["position"]["lon"], one["position"]["lat"])
                    assert at == (held.x_m, held.y_m)
        shown = await client.inspect(object_key="bakery-1")
        assert shown == await client.inspect(object_id=object_id)
        assert (shown["object"]["id"], shown["object"]["payload"]) == (object_id, "")
        await client.publisher().retract(key="bakery-1")
        with pytest.raises(RefusedError):
            await client.inspect(object_key="bakery-1")


async def test_when_a_device_was_last_seen(tmp_path):
    """Of those attached since the start the server knows it, of others the store, to the hour."""
    flags = {"store": tmp_path / "s.db", "virtual_time": True, "lease_ms": 600_000}
    hour_ms = 3_600_000

    async def seen(client):
        found = await client.inspect("d")
        return found["state"].removeprefix("DEVICE_STATE_"), found["silent_ms"], found["lease_ms"]

    async with serving(settings(**flags)) as server:
        target = f"127.0.0.1:{server.port}"
        async with nearcast.connect(target) as client, client.fleet() as fleet:
            await client.advance_clock(hour_ms)
            await (await fleet.attach("d", lon=LON, lat=LAT)).subscribe(TopK({"tea"}))
            await client.advance_clock(hour_ms + 1_000)
            await client.sync()
            assert await seen(client) == ("IN_SYNC", 0, 600_000)
        async with nearcast.connect(target) as client:
            await client.advance_clock(hour_ms + 61_000)
            assert await seen(client) == ("DETACHED", 60_000, 600_000)
    async with (
        serving(settings(**flags)) as server,
        nearcast.connect(f"127.0.0.1:{server.port}") as client,
    ):
        await client.advance_clock(2 * hour_ms)
        assert await seen(client) == ("PARKED", hour_ms, 600_000)


NOT_THERE = [
    (("nobody",), "device_id", "UNKNOWN_SUBSCRIPTION"),
    (("nobody", 1), "device_id", "UNKNOWN_SUBSCRIPTION"),
    (("d", 7), "subscription_id", "UNKNOWN_SUBSCRIPTION"),
    (("", None, 99), "object_id", "UNKNOWN_OBJECT"),
    (("", None, -1), "object_id", "INVALID_FIELD"),
    (("d", 1, -1), "subscription.object_id", "INVALID_FIELD"),
    (("", 1), "subscription.device_id", "INVALID_FIELD"),
    (("", None, 0, "nothing"), "object_key", "UNKNOWN_OBJECT"),
    (("d", 1, 0, "nothing"), "subscription.object_key", "UNKNOWN_OBJECT"),
    (("d", 1, 5, "nothing"), "subscription.object_key", "INVALID_FIELD"),
]


async def test_unknown_items_are_named(server):
    async with nearcast.connect(f"127.0.0.1:{server.port}") as client, client.fleet() as fleet:
        await (await fleet.attach("d", lon=LON, lat=LAT)).subscribe(TopK({"tea"}))
        for arguments, field, reason in NOT_THERE:
            names, keys = arguments[:3], arguments[3:]
            with pytest.raises(RefusedError) as error:
                await client.inspect(*names, **dict(zip(("object_key",), keys, strict=False)))
            assert (error.value.field, error.value.reason.name) == (field, reason)


async def test_a_subject_is_needed(stubs):
    with pytest.raises(Exception, match="subject is absent"):
        await stubs.control.Inspect(control_service_pb2.InspectRequest())
