"""A user's data is deleted: by the app itself, by an operator, and for good."""

from __future__ import annotations

import asyncio

import pytest

import nearcast
from nearcast import GeoObject, Reason, RefusedError, TopK, UnavailableError
from server.command import ForgetDevice
from tests.chaos.servers import ServerProcess
from tests.sdk.conftest import Place, until
from tests.support.identity import keys_in, token

LON, LAT = 14.5, 35.5
SUSHI = TopK({"sushi"}, k=2)


async def publish(client):
    return await client.publisher().publish([GeoObject({"sushi"}, LON, LAT, 60.0)])


def assert_ended(subscription):
    assert isinstance(subscription.error, RefusedError)
    assert subscription.error.reason is Reason.FORGOTTEN
    assert str(subscription.error) == "device is forgotten, must be attached again, as a new one"


async def stays_away(place, client, device_id):
    """Nothing attaches the device again."""
    await client.sync()
    assert device_id not in place.server.coordinator.sessions


@pytest.mark.parametrize("is_alone", [True, False])
async def test_an_app_deletes_its_own(place, client, is_alone):
    async with client.fleet() as fleet:
        attach = client.attach if is_alone else fleet.attach
        device = await attach("d", lon=LON, lat=LAT)
        other = await fleet.attach("other", lon=LON, lat=LAT)
        subscriptions = [await device.subscribe(SUSHI), await device.subscribe(TopK({"tea"}))]
        kept = await other.subscribe(SUSHI)
        assert await device.forget() == 2
        for one in subscriptions:
            assert_ended(one)
        with pytest.raises(RefusedError) as refused:
            await device.subscribe(SUSHI)
        assert refused.value.reason is Reason.FORGOTTEN
        await stays_away(place, client, "d")
        assert await device.forget() == 0
        ids = await publish(client)
        await client.sync()
        assert [one.object.id for one in kept.results()] == ids, "others go on"
        assert not place.server.coordinator.counters.parked


@pytest.mark.parametrize("is_alone", [True, False])
async def test_an_operator_deletes_a_device_that_is_attached_elsewhere(place, client, is_alone):
    async with nearcast.connect(place.target) as phone, phone.fleet() as fleet:
        device = await (phone if is_alone else fleet).attach("d", lon=LON, lat=LAT)
        subscription = await device.subscribe(SUSHI)
        changes = subscription.changes()
        assert await client.forget_device("d") == 1
        await until(lambda: subscription.error is not None)
        assert_ended(subscription)
        async with asyncio.timeout(20):
            assert [one async for one in changes] == [], "they end"
        await stays_away(place, phone, "d")
        again = await (phone if is_alone else fleet).attach("d", lon=LON, lat=LAT)
        assert again.subscriptions == []
        assert (await again.subscribe(SUSHI)).id == 1


async def test_an_unknown_device_is_no_error_and_a_disconnected_one_is_deleted(place, client):
    assert await client.forget_device("nobody") == 0
    async with nearcast.connect(place.target) as phone:
        await (await phone.attach("d", lon=LON, lat=LAT)).subscribe(SUSHI)
    await until(lambda: not place.server.coordinator.sessions["d"].is_attached)
    assert await client.forget_device("d") == 1
    with pytest.raises(RefusedError) as refused:
        await client.forget_device("")
    assert refused.value.field == "device_id"


async def test_a_device_that_is_back_before_the_reply_is_deleted_again(place, client, monkeypatch):
    """As one whose connection broke in that moment, and which has resumed by itself."""
    device = await client.attach("d", lon=LON, lat=LAT)
    first = await device.subscribe(SUSHI)
    execute, later = place.server.command_loop.execute, []

    async def execute_and_come_back(command):
        reply = await execute(command)
        if isinstance(command, ForgetDevice) and not later:
            await until(lambda: first.error is not None)
            again = await client.attach("d", lon=LON, lat=LAT)
            later.append(await again.subscribe(SUSHI))
        return reply

    monkeypatch.setattr(place.server.command_loop, "execute", execute_and_come_back)
    assert await client.forget_device("d") == 2
    for one in (first, *later):
        assert_ended(one)
    with pytest.raises(RefusedError) as refused:
        await client.inspect("d")
    assert refused.value.field == "device_id"


async def test_callers_that_may_delete_a_device(tmp_path):
    flags = {"jwks": str(keys_in(tmp_path)), "tenants": ["acme", "other"]}
    place = Place(tmp_path / "store.db", **flags)
    await place.start()

    async def forget(device_id, who):
        async with nearcast.connect(place.target, token=who) as client:
            return await client.forget_device(device_id)

    async def subscribed(device_id, tenant=""):
        who = token(device_id, "device", tenant=tenant)
        async with nearcast.connect(place.target, token=who) as client:
            await (await client.attach(device_id, lon=LON, lat=LAT)).subscribe(SUSHI)

    for one in ("a", "b", "c"):
        await subscribed(one)
        await subscribed(one, "acme")
    for who in (token("b", "device"), token("a", "publisher"), token("b", "device", tenant="acme")):
        with pytest.raises(RefusedError) as refused:
            await forget("a", who)
        assert refused.value.reason is Reason.PERMISSION_DENIED
    for role in ("device", "gateway", "operator"):
        assert await forget("a", token("a", role, tenant="other")) == 0, "which has no such device"
    assert len(place.server.coordinator.sessions) == 6
    assert await forget("a", token("a", "device")) == 1
    assert await forget("b", token("gate", "gateway")) == 1
    assert await forget("c", token("ops", "operator")) == 1
    names = set(place.server.coordinator.sessions)
    assert names == {f"acme\x1f{one}" for one in ("a", "b", "c")}
    for role, one in (("gateway", "a"), ("operator", "b")):
        assert await forget(one, token("x", role, tenant="acme")) == 1
    assert await forget("c", token("c", "device", tenant="acme")) == 1
    assert not place.server.coordinator.sessions
    await place.stop()


@pytest.mark.processes
async def test_an_acknowledged_deletion_survives_kill_9(tmp_path):
    server = ServerProcess(tmp_path / "server")
    await server.start()
    async with nearcast.connect(server.target) as client:
        for number in range(3):
            async with nearcast.connect(server.target) as phone:
                device = await phone.attach(f"erasable-{number}-x", lon=LON, lat=LAT)
                await device.subscribe(TopK({f"zymurgy-{number}-x"}))
        assert await client.forget_device("erasable-1-x") == 1
        server.kill()
    await server.start()
    async with nearcast.connect(server.target) as client:
        with pytest.raises(RefusedError) as refused:
            await client.inspect("erasable-1-x")
        assert refused.value.field == "device_id"
        await client.inspect("erasable-0-x")
        await publish(client)  # a commit, behind which the log is tidied

        def left():
            files = [one.read_bytes() for one in server.store.parent.glob("store.db*")]
            return [
                text
                for text in ("erasable-1-x", "zymurgy-1-x")
                if any(text.encode() in one for one in files)
            ]

        await until(lambda: not left())
        device = await client.attach("erasable-1-x", lon=LON, lat=LAT)
        assert device.subscriptions == []
    server.kill()


async def test_without_a_server_it_raises():
    async with nearcast.connect("127.0.0.1:1") as client:
        with pytest.raises(UnavailableError):
            await client.forget_device("d")
