"""Subscriptions with names: made again by an app that starts again, changed, kept by the server."""

from __future__ import annotations

import asyncio

import pytest

from nearcast import (
    Boolean,
    ChangeKind,
    Circle,
    Clause,
    ClosedError,
    GeoObject,
    Last,
    Polygon,
    RefusedError,
    RegionMode,
    SubscriptionState,
    TopK,
)
from tests.sdk.conftest import until

LUNCH = TopK({"sushi"}, k=2, alpha=0.9)
TEA = TopK({"tea"}, k=3, alpha=0.9)
CAFE = Boolean("coffee AND (wifi OR garden)", Circle(5_000.0), moving=True)


def a(keyword, lon=14.5, ttl_s=3600.0):
    return GeoObject({keyword} if isinstance(keyword, str) else keyword, lon, 35.5, ttl_s)


def ids_of(subscription):
    return [match.object.id for match in subscription.results()]


async def attached(client, name="d"):
    return await client.attach(name, lon=14.5, lat=35.5)


@pytest.fixture
async def offers(client):
    """Two of sushi, two of tea, and one of coffee."""
    return await client.publisher().publish(
        [a("sushi"), a("sushi", 14.6), a("tea"), a("tea", 14.6), a({"coffee", "wifi"}, 14.501)]
    )


@pytest.fixture
async def device(client, offers):
    assert len(offers) == 5
    return await attached(client)


async def test_the_same_again_is_the_very_subscription_and_nothing_is_sent(device):
    lunch = await device.subscribe(LUNCH, name="lunch")
    assert (lunch.name, lunch.spec) == ("lunch", LUNCH)
    sent = device.counters.bytes_sent
    for spec in (LUNCH, TopK([" Sushi ", "SUSHI"], 2, 0.9)):
        assert await device.subscribe(spec, name="lunch") is lunch
    assert device.counters.bytes_sent == sent
    assert device.subscriptions == [lunch]
    assert await device.subscribe(LUNCH) is not lunch, "without a name each is another"


async def test_a_restarted_app_finds_its_subscriptions(client, place, device, offers):
    await device.subscribe(LUNCH, name="lunch")
    await device.subscribe(CAFE, name="café 茶")
    await device.subscribe(TEA)
    for restart in (False, True, True):
        await device.detach()
        if restart:
            await place.stop()
            await place.start()
        device = await attached(client)
        held = list(device.subscriptions)
        lunch = await device.subscribe(LUNCH, name="lunch")
        cafe = await device.subscribe(CAFE, name="café 茶")
        await client.sync()
        assert device.subscriptions == held
        assert [one.name for one in held] == ["lunch", "café 茶", ""]
        assert [lunch, cafe] == held[:2]
        assert ids_of(lunch) == offers[:2]
        assert ids_of(cafe) == offers[4:]
        assert {one.state for one in held[:2]} == {SubscriptionState.EXACT}
    found = await client.inspect("d")
    assert [one["name"] for one in found["subscriptions"]] == ["lunch", "café 茶", ""]
    with pytest.raises(RefusedError, match="device_id is '', must be the id of a device, or empty"):
        await client.inspect()
    with pytest.raises(RefusedError, match="subscription_id is None, must be one of the device's"):
        await client.inspect("d", object_key="shop")


async def test_another_spec_changes_it_in_place(client, device, offers):
    lunch = await device.subscribe(LUNCH, name="lunch")
    number = lunch.id
    for spec, found in ((TEA, offers[2:4]), (CAFE, offers[4:]), (LUNCH, offers[:2])):
        assert await device.subscribe(spec, name="lunch") is lunch
        assert (lunch.id, lunch.spec, lunch.state) == (number, spec, SubscriptionState.EXACT)
        assert ids_of(lunch) == found
        assert [match.score for match in lunch.results()] == [
            match.score for match in await client.search(spec, lon=14.5, lat=35.5)
        ]
    assert device.subscriptions == [lunch]
    (new,) = await client.publisher().publish([a("sushi", 14.55)])
    await client.sync()
    assert ids_of(lunch) == [offers[0], new]
    again = await attached(client, "e")
    assert again.subscriptions == []


async def test_a_listener_receives_changes_of_the_result(device, offers):
    lunch = await device.subscribe(LUNCH, name="lunch")
    seen = []

    async def listen():
        async for change in lunch.changes():
            seen.append((change.kind, change.object.id))  # noqa: PERF401 - it never ends

    task = asyncio.create_task(listen())
    await until(lambda: len(seen) == 2)
    await device.subscribe(TEA, name="lunch")
    await until(lambda: len(seen) == 6)
    left, entered = seen[2:4], seen[4:]
    assert left == [(ChangeKind.LEFT, one) for one in offers[:2]]
    assert entered == [(ChangeKind.ENTERED, one) for one in offers[2:4]]
    task.cancel()


async def test_a_change_that_is_refused_changes_nothing(client, device, offers):
    lunch = await device.subscribe(LUNCH, name="lunch")
    for wrong in (TopK({"sushi"}, k=1_000), TopK({"sushi"}, alpha=2.0), TopK(set())):
        with pytest.raises(RefusedError, match=r"spec\.top_k"):
            await device.subscribe(wrong, name="lunch")
        assert lunch.spec == LUNCH
        assert lunch.state is SubscriptionState.EXACT
        assert ids_of(lunch) == offers[:2]
    (near,) = await client.publisher().publish([a("sushi", 14.5001)])
    await client.sync()
    assert ids_of(lunch) == [offers[0], near], "it continues"
    with pytest.raises(RefusedError, match=r"spec\.top_k\.k"):
        await device.subscribe(TopK({"sushi"}, k=1_000), name="dinner")
    assert device.subscriptions == [lunch]


async def test_many_at_once_and_the_last_counts(client, device, offers):
    specs = [LUNCH, TEA, CAFE, LUNCH, TopK({"sushi"}, k=1_000), TEA, LUNCH, TEA]
    found = await asyncio.gather(
        *(device.subscribe(spec, name="lunch") for spec in specs), return_exceptions=True
    )
    (lunch,) = device.subscriptions
    assert all(one is lunch or isinstance(one, RefusedError) for one in found)
    assert lunch.spec == TEA
    await client.sync()
    assert ids_of(lunch) == offers[2:4]
    assert (await client.inspect("d", lunch.id))["spec"]["top_k"]["keywords"] == ["tea"]


async def test_a_bad_first_spec_does_not_spoil_the_good_one_behind_it(device, offers):
    bad, good = await asyncio.gather(
        device.subscribe(TopK({"sushi"}, k=1_000), name="lunch"),
        device.subscribe(TEA, name="lunch"),
        return_exceptions=True,
    )
    assert isinstance(bad, RefusedError)
    assert ids_of(good) == offers[2:4]
    assert device.subscriptions == [good]


async def test_one_that_ends_while_it_changes(client, device):
    lunch = await device.subscribe(LUNCH, name="lunch")
    change = asyncio.create_task(device.subscribe(TEA, name="lunch"))
    await asyncio.sleep(0)
    await lunch.unsubscribe()
    with pytest.raises(ClosedError):
        await change
    await client.sync()
    assert device.subscriptions == []
    again = await device.subscribe(TEA, name="lunch")
    assert again is not lunch
    assert len(ids_of(again)) == 2


async def test_a_name_that_is_none(device):
    for name in ["a\nb", "\ud800", "x" * 129, 7, None, b"lunch"]:
        with pytest.raises(RefusedError) as refused:
            await device.subscribe(LUNCH, name=name)
        assert refused.value.field == "name"
        assert "0 to 128 printable characters" in refused.value.limit
        assert device.subscriptions == []


async def test_made_while_there_is_no_stream_and_the_server_has_one_of_that_name(
    client, far, proxy, offers
):
    """Another instance of the app made it meanwhile, under another number: the app's spec wins."""
    device = await attached(far)
    proxy.is_open = False
    proxy.cut()
    await until(lambda: not device.is_online)
    async with await attached(client) as other:
        await other.subscribe(CAFE)
        await other.subscribe(CAFE, name="breakfast")
        lunch_there = await other.subscribe(TEA, name="lunch")
    mine = asyncio.create_task(device.subscribe(LUNCH, name="lunch"))
    dinner = asyncio.create_task(device.subscribe(CAFE, name="breakfast"))
    alone = asyncio.create_task(device.subscribe(TEA))
    await asyncio.sleep(0)
    proxy.is_open = True
    lunch, breakfast, tea = await asyncio.gather(mine, dinner, alone)
    await far.sync()
    assert lunch.id == lunch_there.id
    assert (lunch.spec, ids_of(lunch)) == (LUNCH, offers[:2])
    assert (breakfast.spec, ids_of(breakfast)) == (CAFE, offers[4:])
    assert ids_of(tea) == offers[2:4]
    assert sorted(one.name for one in device.subscriptions) == ["", "", "breakfast", "lunch"]
    found = await client.inspect("d")
    assert {one["subscription_id"]: one["name"] for one in found["subscriptions"]} == {
        one.id: one.name for one in device.subscriptions
    }


async def test_changed_while_there_is_no_stream(far, proxy, offers):
    device = await attached(far)
    lunch = await device.subscribe(LUNCH, name="lunch")
    proxy.is_open = False
    proxy.cut()
    await until(lambda: not device.is_online)
    changing = asyncio.create_task(device.subscribe(TEA, name="lunch"))
    await asyncio.sleep(0)
    assert lunch.state is SubscriptionState.OFFLINE
    assert ids_of(lunch) == offers[:2], "it shows what it showed"
    proxy.is_open = True
    assert await changing is lunch
    assert (lunch.spec, ids_of(lunch)) == (TEA, offers[2:4])
    assert device.subscriptions == [lunch]


async def test_subscriptions_that_a_restored_server_lacks_or_has_otherwise(
    client, place, tmp_path, offers
):
    """The app lives on; its specs win, and its objects stay the same."""
    from server.store import backup, restore  # noqa: PLC0415

    device = await attached(client)
    lunch = await device.subscribe(LUNCH, name="lunch")
    backup(tmp_path / "store.db", tmp_path / "backup.db", lambda *_: None)
    await device.subscribe(TEA, name="lunch")
    cafe = await device.subscribe(CAFE, name="café")
    await place.stop()
    for suffix in ("", "-wal", "-shm", "-mark", ".lock"):
        (tmp_path / f"store.db{suffix}").unlink(missing_ok=True)
    restore(tmp_path / "backup.db", tmp_path / "store.db", lambda *_: None)
    await place.start()
    await until(lambda: lunch.state is cafe.state is SubscriptionState.EXACT)
    assert (lunch.spec, ids_of(lunch)) == (TEA, offers[2:4])
    assert ids_of(cafe) == offers[4:]
    assert device.subscriptions == [lunch, cafe]
    found = (await client.inspect("d"))["subscriptions"]
    assert [one["name"] for one in found] == ["lunch", "café"]
    assert found[0]["spec"]["top_k"]["keywords"] == ["tea"]


SPECS = [
    Boolean('coffee AND (wifi OR "live music") AND NOT decaf', Circle(500), moving=True),
    Boolean({"Tea", "GREEN"}, Circle(500.0, [14.5, 35.5])),
    Boolean("a OR b", Polygon([[14.4, 35.4], [14.6, 35.4], [14.5, 35.6]]), dwell_s=2.0065),
    Boolean([Clause({"a"}, {"b"})], Circle(500.0), moving=True, window=Last(seconds=2.0065)),
    TopK(["Tea", " tea"], k=3, window=Last(seconds=600)),
    TopK({"tea"}, region=RegionMode.ELLIPSE),
]


@pytest.mark.parametrize("number", range(len(SPECS)))
async def test_a_recovered_subscription_equals_the_requested_one(client, number):
    spec = SPECS[number]
    async with await attached(client) as device:
        await device.subscribe(spec, name="it")
        await device.subscribe(spec)
    again = await attached(client)
    assert len(again.subscriptions) == 2
    for one in again.subscriptions:
        assert one.spec == spec
        assert hash(one.spec) == hash(spec)
        assert {one.spec, spec} == {spec}
    named = await again.subscribe(spec, name="it")
    assert named in again.subscriptions
    assert len(again.subscriptions) == 2
    others = [one for one in SPECS if one is not spec]
    assert spec not in others


async def test_a_recovered_subscription_can_be_read(client):
    async with await attached(client) as device:
        await device.subscribe(SPECS[0], name="it")
    (one,) = (await attached(client)).subscriptions
    text = 'coffee AND "live music" AND NOT decaf OR coffee AND wifi AND NOT decaf'
    assert repr(one.spec).startswith(
        f"Boolean({text!r}, range=Circle(radius_m=500.0, center=None), moving="
    )
