"""Devices of a cluster: the owner of its slot serves each, and subscriptions stay when that changes."""

from __future__ import annotations

import asyncio
import random
import signal
from contextlib import asynccontextmanager

import pytest

import nearcast
from cluster.ownership import PORTION, Node
from cluster.slots import SLOTS, preferred, slot_of
from nearcast import (
    GeoObject,
    Last,
    Reason,
    RefusedError,
    SubscriptionState,
    TopK,
    UnavailableError,
)
from safe_region.steady_clock import steady_clock_s
from server.replication import own_lease, slot_keeper
from tests.chaos.cluster.links import Link
from tests.replication.conftest import log_servers
from tests.replication.test_nodes import (
    NodeProcess,
    best,
    client,
    digest_of,
    ids_of,
    node,
    until,
)
from tests.support.amounts import SEED
from tests.support.proxy import Proxy

pytestmark = pytest.mark.processes

COUNT = 24


def served(*nodes):
    """Return how many slots nodes serve."""
    return sum(one.node.slots.placement.served_count for one in nodes)


def is_served(one, device_id):
    """Return whether a node serves a device."""
    try:
        one.coordinator.require_here(device_id)
    except RefusedError:
        return False
    return True


def refers(one, device_id, other):
    """Return whether a node has another one's address for the clients of a device."""
    try:
        one.coordinator.require_here(device_id)
    except RefusedError as error:
        return error.reason is Reason.ANOTHER_SERVER and error.server == f"127.0.0.1:{other.port}"
    return False


def spec_of(number):
    window = Last(count=20) if number % 3 == 0 else None
    return TopK({"tea", "ice"}, k=1 + number % 7, window=window)


async def settled(*nodes):
    """Wait until every slot has one owner, which all nodes know."""
    await until(lambda: served(*nodes) == SLOTS)


async def shared(first, second):
    """Wait until a node that has started has its slots."""
    addresses = [f"127.0.0.1:{one.port}" for one in (first, second)]
    own_count = sum(preferred(slot, addresses) == addresses[1] for slot in range(SLOTS))
    await until(lambda: second.node.slots.placement.served_count == own_count)
    await settled(first, second)


async def publish(caller, count):
    rng = random.Random(SEED)
    items = [
        GeoObject({"tea", "ice"}, lon=rng.uniform(14.2, 14.8), lat=rng.uniform(35.2, 35.8), ttl_s=3_600)
        for _ in range(count)
    ]
    async with caller.publisher() as publisher:
        return await publisher.publish(items)


async def subscribed(nodes, numbers):
    """Let devices subscribe."""
    async with everywhere(nodes) as caller:
        for number in numbers:
            device = await caller.attach(f"d{number}", lon=14.5, lat=35.5)
            await device.subscribe(spec_of(number), name=f"n{number}")


async def require_exact(nodes, numbers):
    """Attach devices: they have their subscriptions, and results by the definition."""
    async with everywhere(nodes) as caller:
        found = {}
        for number in numbers:
            device = await caller.attach(f"d{number}", lon=14.5, lat=35.5)
            [found[number]] = device.subscriptions
            assert (found[number].spec, found[number].name) == (spec_of(number), f"n{number}")
        await all_exact(found, nodes[0])


async def test_devices_keep_their_subscriptions_when_nodes_come_and_go(tmp_path):
    numbers = range(COUNT)
    with log_servers(tmp_path / "log", 1) as logs:
        async with node(logs, tmp_path / "a.db") as a:
            await settled(a)
            async with client(a) as caller:
                await publish(caller, 200)
            await subscribed([a], numbers)
            await require_exact([a], numbers)
            async with node(logs, tmp_path / "b.db") as b:
                await digest_of(a, b)
                await shared(a, b)
                await require_exact([a, b], numbers)
                for one, other in ((a, b), (b, a)):
                    await until(lambda other=other: any(is_served(other, f"d{n}") for n in numbers))
                    name = next(f"d{n}" for n in numbers if is_served(other, f"d{n}"))
                    async with client(one) as caller:
                        await caller.attach(name, lon=14.5, lat=35.5)
                        await until(lambda other=other, name=name: is_attached(other, name))
                        await until(lambda one=one, name=name: name not in one.coordinator.sessions)
                    await until(lambda one=one, name=name, other=other: refers(one, name, other))
            await settled(a)
            await require_exact([a], numbers)
        async with node(logs, tmp_path / "c.db") as c:
            await settled(c)
            await require_exact([c], numbers)
            c.coordinator.check()


def is_attached(one, device_id):
    """Return whether a device is attached to a node."""
    session = one.coordinator.sessions.get(device_id)
    return session is not None and session.is_attached


def is_offline(offers):
    """Return whether a subscription says that it is offline; a count of objects needs the server."""
    is_counted = offers.spec.window is not None
    return offers.state is (SubscriptionState.OFFLINE_STALE if is_counted else SubscriptionState.OFFLINE)


def everywhere(nodes):
    """Return a client of several nodes."""
    return nearcast.connect([f"127.0.0.1:{one.port}" for one in nodes])


@asynccontextmanager
async def walkers(nodes, count):
    """Devices that keep their subscriptions while nodes come and go: subscriptions, by number."""
    async with everywhere(nodes) as caller:
        found = {}
        for number in range(count):
            device = await caller.attach(f"d{number}", lon=14.5, lat=35.5)
            found[number] = await device.subscribe(spec_of(number), name=f"n{number}")
        yield caller, found


async def all_exact(offers, judge):
    """Wait until devices say EXACT, with the results by the definition at a node."""
    wrong: list[object] = []  # the report of a stuck test shows it

    def is_so():
        wrong[:] = first_wrong(offers, judge)
        return not wrong

    await until(is_so)


def first_wrong(offers, judge):
    """Return the first subscription that is not exact, if any: number, state, results, expected ones."""
    for number, one in offers.items():
        found, expected = ids_of(one.results()), best(judge, 14.5, 35.5, spec_of(number))
        if one.state is not SubscriptionState.EXACT or found != expected:
            return number, one.state, found, expected
    return ()


async def test_a_node_that_stops_keeps_slots_that_nobody_takes(tmp_path, monkeypatch):
    """It waits as long as others take some, and a while longer."""
    monkeypatch.setattr("server.assembly.member._HAND_OVER_S", 0.1)
    with log_servers(tmp_path / "log", 1) as logs:
        async with node(logs, tmp_path / "a.db") as a, node(logs, tmp_path / "b.db") as b:
            await shared(a, b)
            others = b.node.slots.placement.served_count

            async def take(_slots):
                await asyncio.Event().wait()

            b.node.slots._take = take  # noqa: SLF001 - it is ready, and takes nothing
            before = a.node.slots.placement.served_count
            await a.node.hand_over(5.0)  # that is longer than it takes to release the first
            assert a.node.slots.placement.served_count == before - PORTION
            assert b.node.slots.placement.served_count == others


class Noted(dict):
    """Slots that are served, and all that ever were."""

    def __init__(self, served):
        super().__init__(served)
        self.ever = []

    def __setitem__(self, slot, sequence):
        self.ever.append((slot, sequence))
        super().__setitem__(slot, sequence)


async def test_a_slot_that_another_node_takes_while_it_is_read_is_not_served(tmp_path, monkeypatch):
    with log_servers(tmp_path / "log", 1) as logs:
        async with node(logs, tmp_path / "a.db") as a:
            await settled(a)
            keeper = a.node.slots
            registry, slot = keeper._registry, 5  # noqa: SLF001
            keeper.placement._served = served = Noted(keeper.placement._served)  # noqa: SLF001
            read, taken = registry.read, []

            async def lose(slots, until_sequence):
                monkeypatch.setattr(registry, "read", read)
                taken.append(until_sequence)
                await registry.set_owner(slot, Node("127.0.0.1:1", b"another"), until_sequence)
                await until(lambda: slot not in served)
                return await read(slots, until_sequence)

            monkeypatch.setattr(registry, "read", lose)
            await keeper._take({slot: served[slot]})  # noqa: SLF001
            await settled(a)
            assert (slot, *taken) not in served.ever
            assert served[slot] > taken[0]


async def test_devices_are_detached_when_their_slot_has_been_released(tmp_path):
    """So the next owner does not send them back to the former one."""
    names = [f"d{number}" for number in range(COUNT)]
    with log_servers(tmp_path / "log", 1) as logs:
        async with node(logs, tmp_path / "a.db") as a, node(logs, tmp_path / "b.db") as b:
            await shared(a, b)
            async with everywhere([a, b]) as caller:
                devices = [await caller.attach(name, lon=14.5, lat=35.5) for name in names]
                keeper = a.node.slots
                set_owners = keeper._set_owners  # noqa: SLF001
                attached = {}

                async def release(slots, owner):
                    some = [name for name in names if slot_of(name) in slots]
                    attached.update({name: is_attached(a, name) for name in some})
                    return await set_owners(slots, owner)

                keeper._set_owners = release  # noqa: SLF001 - before the devices are detached
                here = {name for name in names if is_attached(a, name)}
                await a.node.hand_over(10.0)
                assert here
                assert attached == dict.fromkeys(here, True)
                await until(lambda: all(is_attached(b, name) for name in names))
                assert len(devices) == COUNT


async def test_devices_of_a_node_that_is_killed_are_served_by_another(tmp_path):
    """Publications, and new subscriptions, meanwhile: nothing that was acknowledged is lost."""
    with log_servers(tmp_path / "log", 3) as logs:
        victim = NodeProcess(logs, tmp_path / "victim.db")
        async with node(logs, tmp_path / "other.db") as other:
            await settled(other)
            await victim.start()
            try:
                await until(lambda: other.node.slots.placement.served_count < 2 * SLOTS / 3)
                async with walkers([victim, other], COUNT) as (caller, offers):
                    await publish(caller, 200)
                    await all_exact(offers, other)
                    await until(lambda: 0 < sum(is_attached(other, f"d{n}") for n in offers) < COUNT)
                    await victim.kill()
                    await until(lambda: other.node.slots.placement.served_count == SLOTS)
                    await publish(caller, 20)
                    await all_exact(offers, other)
                    await until(lambda: all(is_attached(other, f"d{n}") for n in offers))
                    await victim.start()
                    await until(lambda: other.node.slots.placement.served_count < 2 * SLOTS / 3)
                    await publish(caller, 20)
                    await all_exact(offers, other)
                    other.coordinator.check()
            finally:
                await victim.kill()


@pytest.mark.slow
async def test_a_node_that_was_paused_learns_that_its_devices_are_elsewhere(tmp_path):
    """It is stopped for longer than its lease; what it then writes for its devices is refused."""
    with log_servers(tmp_path / "log", 1) as logs:
        victim = NodeProcess(logs, tmp_path / "victim.db")
        async with node(logs, tmp_path / "other.db") as other:
            await settled(other)
            await victim.start()
            try:
                await until(lambda: other.node.slots.placement.served_count < 2 * SLOTS / 3)
                async with walkers([victim, other], COUNT) as (caller, offers):
                    await publish(caller, 200)
                    await all_exact(offers, other)
                    victim.signal(signal.SIGSTOP)
                    await until(lambda: other.node.slots.placement.served_count == SLOTS)
                    victim.signal(signal.SIGCONT)
                    await until(lambda: other.node.slots.placement.served_count < 2 * SLOTS / 3)
                    await publish(caller, 20)
                    await all_exact(offers, other)
                await require_kept(victim, other)
            finally:
                await victim.kill()


@pytest.mark.slow
async def test_a_node_without_log_gives_its_devices_up_until_the_log_is_back(tmp_path):
    with log_servers(tmp_path / "log", 1) as (log,):
        async with node([log], tmp_path / "a.db") as only:
            await settled(only)
            async with walkers([only], COUNT) as (caller, offers):
                await publish(caller, 200)
                await all_exact(offers, only)
                log.kill()
                await until(lambda: served(only) == 0)
                await until(lambda: only.coordinator.router.subscription_count == 0)
                await until(lambda: all(is_offline(one) for one in offers.values()))
                log.start()
                await settled(only)
                await all_exact(offers, only)
                only.coordinator.check()


class Observed:
    """A device with a subscription, and the states that it has shown."""

    def __init__(self, device, offers) -> None:
        self.device = device
        self.offers = offers
        self.states = []
        self._task = asyncio.create_task(self._observe())

    async def _observe(self):
        async for state in self.offers.states():
            self.states.append(state)

    @property
    def is_lagging(self):
        return self.offers.state is SubscriptionState.LAGGING

    @property
    def has_lagged(self):
        return SubscriptionState.LAGGING in self.states

    @property
    def has_been_offline(self):
        return bool({SubscriptionState.OFFLINE, SubscriptionState.OFFLINE_STALE} & set(self.states))

    def stop(self):
        self._task.cancel()


@asynccontextmanager
async def observed(caller, count):
    found = []
    for number in range(count):
        device = await caller.attach(f"d{number}", lon=14.5, lat=35.5)
        found.append(Observed(device, await device.subscribe(spec_of(number))))
    yield found
    for one in found:
        one.stop()


def keep_slots(monkeypatch):
    """Let nodes give up no slot, however long the rest of the test takes, or a new connection."""
    monkeypatch.setattr(slot_keeper, "GIVE_UP_S", 3_600.0)
    monkeypatch.setattr(slot_keeper, "LEASE_S", 3_600.0)


async def until_lagging(logs, found):
    """End the leader of the log; wait until all devices lag and will not be exact without a new one.

    A renewal of the lease that was sent before may be read late, and ends a lag that has just begun.
    """
    for log in logs[1:]:
        log.kill()
    end_s = steady_clock_s() + own_lease.LEASE_S
    await until(lambda: all(one.is_lagging for one in found) and steady_clock_s() > end_s)
    for one in found:
        one.states.clear()


async def test_devices_lag_while_the_log_has_no_leader(tmp_path, monkeypatch):
    """They are answered from what is applied; when the log is back in time, they are exact again."""
    keep_slots(monkeypatch)
    with log_servers(tmp_path / "log", 3) as logs:
        async with node(logs, tmp_path / "a.db") as only, client(only) as caller:
            await settled(only)
            await publish(caller, 200)
            async with observed(caller, 6) as found:
                await all_exact({number: one.offers for number, one in enumerate(found)}, only)
                await until_lagging(logs, found)
                for one in found:
                    await one.device.move(lon=14.7, lat=35.7)
                    expected = best(only, 14.7, 35.7, one.offers.spec)
                    await until(
                        lambda one=one, expected=expected: (
                            one.is_lagging and ids_of(one.offers.results()) == expected
                        )
                    )
                    assert 0 < one.device.lag_offset <= only.command_loop.applier.offset
                subscribing = asyncio.create_task(found[0].device.subscribe(spec_of(6)))
                rejected = only.coordinator.counters.rejected
                await until(lambda: rejected[Reason.LAGGING])
                with pytest.raises(UnavailableError, match="lagged behind"):
                    await found[0].offers.exact_results()
                assert only.node.slots.placement.gauges()["cluster_devices_lagging"] == len(found)
                assert not any(SubscriptionState.EXACT in one.states for one in found)
                for log in logs[1:]:
                    log.start()
                await until(lambda: all(one.offers.state is SubscriptionState.EXACT for one in found))
                assert not any(one.has_been_offline for one in found)
                assert [one.device.lag_offset for one in found] == [0] * len(found)
                assert served(only) == SLOTS
                await publish(caller, 20)
                offers, expected = await subscribing, best(only, 14.7, 35.7, spec_of(6))
                await until(lambda: ids_of(offers.results()) == expected)


async def test_a_node_without_a_leader_of_the_log_ends_streams_after_a_while(tmp_path, monkeypatch):
    monkeypatch.setattr(slot_keeper, "GIVE_UP_S", 6.0)
    with log_servers(tmp_path / "log", 3) as logs:
        async with node(logs, tmp_path / "a.db") as only, client(only) as caller:
            await settled(only)
            async with observed(caller, 2) as found:
                for log in logs[1:]:
                    log.kill()
                # A node that takes long to connect to the last server ends the streams with its lease.
                await until(lambda: all(one.has_lagged or is_offline(one.offers) for one in found))
                await until(lambda: all(is_offline(one.offers) for one in found))
                assert served(only) == 0
                for log in logs[1:]:
                    log.start()
                await until(lambda: all(one.offers.state is SubscriptionState.EXACT for one in found))


async def test_a_device_that_comes_back_to_a_node_without_lease_resumes(tmp_path, monkeypatch):
    """Nobody else has served it meanwhile. Another instance waits for the lease."""
    keep_slots(monkeypatch)
    with log_servers(tmp_path / "log", 3) as logs:
        async with node(logs, tmp_path / "a.db") as only:
            await settled(only)
            door = Proxy(f"127.0.0.1:{only.port}")
            address = await door.start()
            async with (
                nearcast.connect(address) as caller,
                client(only) as newcomer,
                observed(caller, 1) as (one,),
            ):
                await until(lambda: one.offers.state is SubscriptionState.EXACT)
                await until_lagging(logs, [one])
                door.cut()
                await until(lambda: one.has_been_offline and one.is_lagging)
                attaching = asyncio.create_task(newcomer.attach("d1", lon=14.5, lat=35.5))
                await until(lambda: only.coordinator.counters.rejected[Reason.RECOVERING])
                assert not attaching.done()
                for log in logs[1:]:
                    log.start()
                await attaching
                await until(lambda: one.offers.state is SubscriptionState.EXACT)
            await door.stop()


@pytest.mark.slow
async def test_a_node_without_lease_does_not_speak_for_devices_that_another_may_serve(
    tmp_path, monkeypatch
):
    """It would have earlier subscriptions of them: a client would take up again what it has ended."""
    keep_slots(monkeypatch)
    with log_servers(tmp_path / "log", 1) as (log,):
        link = Link(log.url.removeprefix("nats://"))
        url = f"nats://{await link.start()}"
        async with node([log], tmp_path / "a.db") as a, node([log], tmp_path / "b.db", log=url) as b:
            await shared(a, b)
            number, unknown = [n for n in range(1_000) if is_served(b, f"d{n}")][:2]
            async with everywhere([a, b]) as caller:
                device = await caller.attach(f"d{number}", lon=14.5, lat=35.5)
                await device.subscribe(spec_of(1), name="ended")
                link.cut_off(is_silent=True)
                await until(lambda: served(a) == SLOTS)
                assert is_served(b, f"d{number}")  # as far as that one knows
                async with client(a) as successor:
                    device = await successor.attach(f"d{number}", lon=14.5, lat=35.5, take_over=True)
                    await device.subscriptions[0].unsubscribe()
                    await device.subscribe(spec_of(2), name="begun")
            async with client(b) as late:
                attaching = asyncio.create_task(late.attach(f"d{number}", lon=14.5, lat=35.5))
                forgetting = asyncio.create_task(late.forget_device(f"d{unknown}"))
                await until(lambda: b.coordinator.counters.rejected[Reason.RECOVERING])
                await asyncio.sleep(0.2)  # more than a response takes
                assert not attaching.done()
                assert not forgetting.done()
                link.heal()
                device = await attaching
                assert [one.name for one in device.subscriptions] == ["begun"]
                assert await forgetting == 0
        await link.stop()


DAY_MS = 24 * 3_600_000


async def checked(server):
    """Wait until a node has looked for devices to be forgotten, and has forgotten them."""
    loop = server.command_loop
    retention = loop._retention  # noqa: SLF001
    await until(lambda: retention.due_ms > server.coordinator.now_ms)
    await retention.stop()
    await until(lambda: not loop.waiting_count)


@pytest.mark.slow
async def test_a_device_that_never_returns_is_forgotten_though_its_slot_has_moved(tmp_path):
    """It is neither forgotten too early, nor does its retention start again at another node."""
    with log_servers(tmp_path / "log", 1) as logs:
        chosen = {"virtual_time": True, "subscription_retention_days": 8.0}
        async with node(logs, tmp_path / "b.db", **chosen) as b:
            async with node(logs, tmp_path / "a.db", **chosen) as a, walkers([a, b], 2) as (caller, _):
                await settled(a, b)
                for number in range(2, COUNT):
                    await (await attached(caller, number)).detach()
                for day in range(1, 6):
                    await caller.advance_clock(day * DAY_MS)
                    await checked(a)
                    await checked(b)
            await settled(b)
            async with walkers([b], 2) as (caller, offers):
                await caller.advance_clock(9 * DAY_MS)
                await checked(b)
                assert b.coordinator.counters.devices_forgotten == 0
                assert b.coordinator.router.subscription_count == COUNT
                await caller.advance_clock(10 * DAY_MS)
                await until(lambda: b.coordinator.counters.devices_forgotten == COUNT - 2)
                for day in range(11, 30):
                    await caller.advance_clock(day * DAY_MS)
                    await checked(b)
                assert b.coordinator.counters.devices_forgotten == COUNT - 2
                assert all(one.state is SubscriptionState.EXACT for one in offers.values())
        async with node(logs, tmp_path / "c.db", **chosen) as c:
            await settled(c)
            assert set(c.coordinator.sessions) == {"d0", "d1"}


async def attached(caller, number):
    """Attach a device that has a subscription."""
    device = await caller.attach(f"d{number}", lon=14.5, lat=35.5)
    await device.subscribe(spec_of(number), name=f"n{number}")
    return device


async def test_a_subscription_is_made_although_its_slot_moves_meanwhile(tmp_path):
    """The device gets no refusal: it is detached, and its client sends the command again."""
    with log_servers(tmp_path / "log", 1) as logs:
        async with node(logs, tmp_path / "a.db") as only, client(only) as caller:
            await settled(only)
            await publish(caller, 50)
            device = await caller.attach("d0", lon=14.5, lat=35.5)
            keeper, slot = only.node.slots, slot_of("d0")
            accepted = only.command_loop.accepted_count
            keeper.placement._served.pop(slot)  # noqa: SLF001 - the moment before it is detached
            subscribing = asyncio.create_task(device.subscribe(spec_of(0), name="n0"))
            loop = only.command_loop
            await until(lambda: loop.accepted_count > accepted and not loop.waiting_count)
            await keeper._give_up([slot])  # noqa: SLF001
            await all_exact({0: await subscribing}, only)
            assert [one.name for one in device.subscriptions] == ["n0"]


async def require_kept(*nodes):
    """Attach all devices again: their subscriptions are there, each once."""
    async with everywhere(nodes) as caller:
        for number in range(COUNT):
            device = await caller.attach(f"d{number}", lon=14.5, lat=35.5)
            assert [(one.name, one.spec) for one in device.subscriptions] == [
                (f"n{number}", spec_of(number))
            ]


@pytest.mark.slow
async def test_slots_that_are_taken_while_they_are_dropped_have_their_subscriptions(tmp_path):
    """What a node has restored is not removed by what it had to do for the slot before."""
    numbers = range(COUNT)
    with log_servers(tmp_path / "log", 1) as logs:
        async with node(logs, tmp_path / "a.db") as only, client(only) as caller:
            await settled(only)
            await publish(caller, 50)
            await subscribed([only], numbers)
            keeper = only.node.slots
            slots = keeper.placement.served()
            dropping = asyncio.create_task(keeper._drop(slots * 20))  # noqa: SLF001 - it takes a while
            for slot in slots:
                keeper._ownership.failed(slot)  # noqa: SLF001
            keeper._changed.set()  # noqa: SLF001
            await dropping
            await settled(only)
            await require_exact([only], numbers)


async def test_slots_that_are_taken_twice_have_their_subscriptions_once(tmp_path):
    numbers = range(COUNT)
    with log_servers(tmp_path / "log", 1) as logs:
        async with node(logs, tmp_path / "a.db") as only, client(only) as caller:
            await settled(only)
            await publish(caller, 50)
            await subscribed([only], numbers)
            async with walkers([only], COUNT // 2) as (_, offers):
                keeper = only.node.slots
                for slot in keeper.placement.served():
                    keeper._ownership.failed(slot)  # noqa: SLF001
                before = dict(keeper.placement._served)  # noqa: SLF001
                keeper._changed.set()  # noqa: SLF001
                await until(lambda: not before.items() & keeper.placement._served.items())  # noqa: SLF001
                await settled(only)
                await all_exact(offers, only)
                for number in numbers:
                    assert await caller.forget_device(f"d{number}") == 1
                only.coordinator.check()
