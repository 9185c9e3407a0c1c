"""A server that restarts under load: publishers without keys and devices carry on by themselves."""

from __future__ import annotations

import asyncio

import pytest

import nearcast
from nearcast import RefusedError, SubscriptionState, TopK, UnavailableError
from server.runtime.lifecycle import ServerState
from tests.sdk.conftest import Place, until
from tests.sdk.test_publisher import alive, numbered
from tests.sdk.test_reconnect import SPEC, ids, is_exact, row
from tests.support.servers import HeldCommits

_WRITERS = 40


class Load:
    """Tasks that publish objects without keys on one stream, one after the other and all the time."""

    def __init__(self, client):
        self.published: dict[int, int] = {}
        self.unknown: list[int] = []
        self._publisher = client.publisher()
        self._count = 0
        self._is_over = False
        self._tasks = [asyncio.create_task(self._publish()) for _ in range(_WRITERS)]

    async def _publish(self):
        while not self._is_over:
            self._count = number = self._count + 1
            try:
                (object_id,) = await self._publisher.publish([numbered(number)])
            except UnavailableError:
                self.unknown.append(number)
            else:
                self.published[object_id] = number

    async def more(self):
        """Wait until it has gone on for a while."""
        count = len(self.published) + 3 * _WRITERS
        await until(lambda: len(self.published) + len(self.unknown) >= count or self.is_broken)

    @property
    def is_broken(self):
        return any(task.done() for task in self._tasks)

    async def end(self):
        self._is_over = True
        await asyncio.gather(*self._tasks)


async def test_publishers_without_keys_do_not_notice_restarts(place, client):
    load = Load(client)
    for _ in range(5):
        await load.more()
        await place.stop()
        await place.start()
    await load.more()
    await load.end()
    assert load.unknown == []
    assert alive(place) == load.published, "each once, under the returned id"


@pytest.mark.parametrize("state", [ServerState.DRAINING, ServerState.RECOVERING])
async def test_a_newcomer_does_not_wait_for_ever_for_a_server_that_will_be_back(
    place, client, monkeypatch, state
):
    monkeypatch.setattr("nearcast.transport.device_stream.PATIENCE_S", 0.2)
    monkeypatch.setattr("server.transport.device_service._RECOVERY_S", 0.01)
    known = await client.attach("known", lon=14.5, lat=35.5)
    place.server.command_loop.state = state
    async with nearcast.connect(place.target) as other:
        with pytest.raises((RefusedError, UnavailableError)) as failed:
            async with asyncio.timeout(60.0):
                await other.attach("new", lon=14.5, lat=35.5)
    refused = failed.value
    if isinstance(refused, UnavailableError):  # its time ended while it connected again
        assert "it last reported: " in str(refused)
        refused = refused.__cause__
    assert refused.reason.name == state.name
    place.server.command_loop.state = ServerState.SERVING
    assert known.is_online


@pytest.mark.parametrize(
    ("state", "reported"),
    [(ServerState.DRAINING, "server is stopping"), (ServerState.RECOVERING, "server is starting")],
)
async def test_a_publisher_that_gives_up_reports_the_state_of_the_server(
    place, client, monkeypatch, state, reported
):
    monkeypatch.setattr("nearcast.transport.calls.PATIENCE_S", 0.5)
    place.server.command_loop.state = state
    with pytest.raises(UnavailableError) as failed:
        await client.publisher().publish([numbered(0)])
    place.server.command_loop.state = ServerState.SERVING
    shown = str(failed.value)
    assert "not processed the request within 0.5 s; it last reported: " + reported in shown
    assert "reached" not in shown
    assert failed.value.__cause__.reason.name == state.name


async def test_requests_that_were_not_admitted_are_known_even_without_responses(
    place, client, monkeypatch
):
    """The disk takes longer than the server waits: only what it had begun is of unknown outcome."""
    monkeypatch.setattr("server.main._DRAIN_S", 0.2)
    monkeypatch.setattr("server.main._GRACE_S", 0.2)
    publisher = client.publisher()
    (first,) = await publisher.publish([numbered(0)])
    commits = HeldCommits(place.server.store)
    publishing = [asyncio.create_task(publisher.publish([numbered(i)])) for i in range(1, 101)]
    await until(lambda: place.server.command_loop.waiting_count >= 20)
    stopping = asyncio.create_task(place.stop())
    await until(lambda: any(task.done() for task in publishing))
    commits.go_on.set()
    await stopping
    await place.start()
    found = await asyncio.gather(*publishing, return_exceptions=True)
    unknown = {i for i, one in enumerate(found, start=1) if isinstance(one, UnavailableError)}
    answered = {one[0]: i for i, one in enumerate(found, start=1) if i not in unknown}
    assert 20 <= len(unknown) <= 64, "the server admits no more at once"
    objects = alive(place)
    assert objects.pop(first) == 0
    assert answered.items() <= objects.items()
    assert sorted(objects.values()) == list(range(1, 101)), "each once: it was carried out after all"


@pytest.mark.parametrize("is_fleet", [False, True])
async def test_busy_devices_come_back_from_restarts(place, client, is_fleet):
    """They move, begin and end subscriptions while the server restarts; then all is as it should be."""
    await client.publisher().publish(row(100))
    async with client.fleet() as fleet:
        attach = fleet.attach if is_fleet else client.attach
        devices = [await attach(f"d{i}", lon=14.5, lat=35.5) for i in range(5)]
        lists = [await device.subscribe(SPEC) for device in devices]
        is_over = asyncio.Event()

        async def move(device, number):
            place_number = number
            while not is_over.is_set():
                place_number = (place_number * 7 + 3) % 89
                await device.move(lon=14.05 + 0.01 * place_number, lat=35.5)
                await (await device.subscribe(TopK({"tea"}))).unsubscribe()
                await asyncio.sleep(0)
            await device.move(lon=14.1 + 0.1 * number, lat=35.5)

        moving = [asyncio.create_task(move(device, i)) for i, device in enumerate(devices)]
        for _ in range(3):
            await asyncio.sleep(0.1)
            await place.stop()
            await place.start()
        await until(lambda: all(one.state is SubscriptionState.EXACT for one in lists))
        is_over.set()
        await asyncio.gather(*moving)
        await until(lambda: all(one.state is SubscriptionState.EXACT for one in lists))
        for number, (device, subscription) in enumerate(zip(devices, lists, strict=True)):
            assert await is_exact(client, subscription, 14.1 + 0.1 * number)
            handles = place.server.coordinator.sessions[device.id].handles
            assert handles.keys() == {subscription.id}, "what was ended has ended"
        place.server.coordinator.check()


@pytest.mark.parametrize("is_fleet", [False, True])
async def test_a_device_that_attaches_while_the_server_drains_waits_for_the_next(place, client, is_fleet):
    """A publisher whose commit is slow holds the server between draining and stopping."""
    publisher = client.publisher()
    (first,) = await publisher.publish(row(1, start=14.5))
    async with nearcast.connect(place.target) as other, other.fleet() as fleet:
        if is_fleet:
            await fleet.attach("known", lon=14.5, lat=35.5)
        commits = HeldCommits(place.server.store)
        publishing = asyncio.create_task(publisher.publish(row(1, start=14.5)))
        await until(lambda: place.server.coordinator.latest_object_id > first)
        stopping = asyncio.create_task(place.stop())
        await until(lambda: place.server.command_loop.state is ServerState.DRAINING)
        attach = fleet.attach if is_fleet else other.attach
        attaching = asyncio.create_task(attach("newcomer", lon=14.5, lat=35.5))
        rejected = place.server.coordinator.counters.rejected
        count = sum(rejected.values())
        await until(lambda: sum(rejected.values()) >= count + 3)
        commits.go_on.set()
        await stopping
        await asyncio.sleep(0.5)  # it cannot even be reached now
        assert not attaching.done()
        await place.start()
        device = await attaching
        (second,) = await publishing
        assert set(ids(await device.subscribe(SPEC))) == {first, second}


async def test_a_newcomer_does_not_wait_for_ever(place, client, monkeypatch):
    monkeypatch.setattr("nearcast.transport.device_stream.PATIENCE_S", 0.5)
    await client.publisher().publish(row(1))
    place.server.command_loop.drain()
    attaching = asyncio.create_task(client.attach("newcomer", lon=14.5, lat=35.5))
    rejected = place.server.coordinator.counters.rejected
    await until(lambda: sum(rejected.values()) >= 2)
    await place.stop()
    with pytest.raises(UnavailableError):
        await attaching
    await place.start()


async def test_the_sdk_half_closes_at_once(tmp_path, monkeypatch):
    """The server does not have to wait for its deadline, which is long here."""
    monkeypatch.setattr("server.main._DRAIN_S", 3600.0)
    place = Place(tmp_path / "store.db")
    await place.start()
    async with nearcast.connect(place.target) as client, client.fleet() as fleet, client.fleet():
        await client.publisher().publish(row(1))
        await client.attach("alone", lon=14.5, lat=35.5)
        for i in range(3):
            await fleet.attach(f"f{i}", lon=14.5, lat=35.5)
        async with asyncio.timeout(60.0):
            await place.stop()
