"""Fair shares: the pace of a tenant that uses more than others; a server of closed loops, simulated."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import Counter
from dataclasses import dataclass

import pytest

from identity.quotas import Accounts, Quota
from server.runtime import fair_shares
from server.runtime.fair_shares import FairShares, Lane
from server.runtime.turns import Turns

PERIOD_S = 0.1
QUOTA = Quota(operations_per_s=1e6)


class Clock:
    def __init__(self):
        self.now_s = 1000.0

    def __call__(self):
        return self.now_s


@dataclass
class Entry:
    account: object
    tenant: str
    cost_us: float
    queued_s: float = 0.0
    is_taken: bool = False


class World:
    """Accounts of tenants with a caller each, and their fair shares."""

    def __init__(self):
        self.clock = Clock()
        self.accounts = Accounts(clock=self.clock)
        self.fair_shares = FairShares(self.accounts.tenants, self.clock)
        self.callers = {}

    def caller(self, tenant):
        if tenant not in self.callers:
            self.callers[tenant] = self.accounts.account(tenant, "caller", QUOTA)
        return self.callers[tenant]

    def periods(self, count, shares, waits_s, lane=Lane.VOLATILE):
        """Let tenants use shares of the time, and wait, for some periods."""
        for _ in range(count):
            for tenant, share in shares.items():
                self.caller(tenant).charge(share * 1e6 * PERIOD_S, self.clock.now_s)
            self.clock.now_s += PERIOD_S
            for tenant, wait_s in waits_s.items():
                entry = Entry(self.caller(tenant), tenant, 1.0, self.clock.now_s - wait_s)
                self.fair_shares.taken(lane, [entry])
            self.fair_shares.update()

    @property
    def paces(self):
        return self.fair_shares.paces


@pytest.fixture
def world():
    return World()


HEAVY = {"heavy": 0.7, "light": 0.1, "small": 0.1}
LONG = {"light": 0.02, "small": 0.02}


def test_a_tenant_that_uses_more_is_paced_while_others_wait(world):
    world.periods(20, HEAVY, LONG)
    assert list(world.paces) == ["heavy"]
    heavy, light = world.caller("heavy"), world.caller("light")
    light.charge(1e9, world.clock.now_s)
    assert light.pace_wait_s() == 0.0
    assert heavy.pace_wait_s() == heavy.take(1) == 1.0, "not longer, since the pace changes"
    heavy.charge(-heavy.tenant.used_us, world.clock.now_s)
    assert heavy.pace_wait_s() == heavy.take(1) == 0.0


def test_the_pace_falls_to_the_mean_share(world):
    mean = sum(HEAVY.values()) / len(HEAVY)
    world.periods(3, HEAVY, LONG)
    assert world.paces["heavy"] > 0.0
    world.periods(100, HEAVY, LONG)
    assert world.paces["heavy"] == pytest.approx(mean, rel=1e-3)
    assert world.paces.keys() == {"heavy"}


def test_the_pace_ends_when_nobody_waits(world):
    world.periods(20, HEAVY, LONG)
    assert world.paces
    world.periods(40, HEAVY, {"light": 0.001, "small": 0.001})
    assert not world.paces
    assert world.caller("heavy").pace_wait_s() == 0.0


@pytest.mark.parametrize(
    ("shares", "waits_s"),
    [
        ({"one": 0.9}, {"one": 1.0}),
        (HEAVY, {}),
        (HEAVY, {"heavy": 5.0, "light": 0.001, "small": 0.001}),
        (dict.fromkeys("abcd", 0.25), dict.fromkeys("abcd", 0.5)),
    ],
    ids=["alone", "nothing was taken", "only its own wait", "all use the same"],
)
def test_no_pace_without_a_reason(world, shares, waits_s):
    world.periods(50, shares, waits_s)
    assert not world.paces


def test_waiting_for_the_disk_is_no_reason(world):
    waits_s = dict.fromkeys(LONG, 0.05)
    for _ in range(30):
        world.fair_shares.committed(0.03)
        world.periods(1, HEAVY, waits_s, Lane.DURABLE)
    assert not world.paces
    for _ in range(200):
        world.fair_shares.committed(0.002)
        world.periods(1, HEAVY, waits_s, Lane.DURABLE)
    assert world.paces.keys() == {"heavy"}


def throughput(*, is_paced, heavy_count, heavy_us, seconds=10.0):
    """Simulate callers with one request in progress each; return the requests of each tenant.

    Three tenants have four callers with requests of 0.3 ms. The fourth has others. A response and the
    next request take 2 ms on their way. The server takes one command at a time, in turns.
    """
    world = World()
    clock, turns = world.clock, Turns()
    done = Counter()
    numbers = itertools.count()
    tenants = {"a": (4, 300.0), "b": (4, 300.0), "c": (4, 300.0), "heavy": (heavy_count, heavy_us)}
    events = []  # arrivals, as time, number, account, tenant, cost
    for tenant, (count, cost_us) in tenants.items():
        for i in range(count):
            account = world.accounts.account(tenant, str(i), QUOTA)
            world.callers[tenant, i] = account
            heapq.heappush(events, (clock.now_s, next(numbers), account, tenant, cost_us))
    end_s, update_s = clock.now_s + seconds, clock.now_s + PERIOD_S
    while clock.now_s < end_s:
        while events and events[0][0] <= clock.now_s:
            _, _, account, tenant, cost_us = heapq.heappop(events)
            if wait_s := account.take(1):
                heapq.heappush(
                    events, (clock.now_s + max(wait_s, 1e-4), next(numbers), account, tenant, cost_us)
                )
                continue
            account.charge(cost_us, clock.now_s)
            turns.put(Entry(account, tenant, cost_us, clock.now_s))
        if clock.now_s >= update_s:
            update_s += PERIOD_S
            if is_paced:
                world.fair_shares.update()
        taken = turns.take(1)
        world.fair_shares.taken(Lane.VOLATILE, taken)
        for item in taken:
            clock.now_s += item.cost_us / 1e6
            done[item.tenant] += 1
            back = (clock.now_s + 0.002, next(numbers), item.account, item.tenant, item.cost_us)
            heapq.heappush(events, back)
        if not taken:
            clock.now_s = min(events[0][0], update_s)
    return done


@pytest.mark.parametrize(("heavy_count", "heavy_us"), [(4, 10_000.0), (64, 300.0), (32, 3_000.0)])
def test_tenants_in_closed_loops_keep_their_throughput(heavy_count, heavy_us):
    """Nine tenths of that beside a tenant that is like them; turns alone leave less than seven."""
    equal = throughput(is_paced=True, heavy_count=4, heavy_us=300.0)
    found = throughput(is_paced=True, heavy_count=heavy_count, heavy_us=heavy_us)
    for tenant in "abc":
        assert found[tenant] >= 0.9 * equal[tenant]
    if heavy_us > 300.0:
        turns_alone = throughput(is_paced=False, heavy_count=heavy_count, heavy_us=heavy_us)
        assert turns_alone["a"] < 0.7 * equal["a"]


async def test_a_server_that_nobody_uses_rests(world, monkeypatch):
    monkeypatch.setattr(fair_shares, "_PERIOD_S", 0.001)
    monkeypatch.setattr(fair_shares, "_IDLE_S", 3_600.0)
    update, updates = world.fair_shares.update, asyncio.Queue()
    monkeypatch.setattr(world.fair_shares, "update", lambda: updates.put_nowait(update()))
    caller = world.caller("one")
    running = asyncio.create_task(world.fair_shares.run())
    await updates.get()
    world.fair_shares.taken(Lane.VOLATILE, [])
    await asyncio.sleep(0.05)
    assert updates.empty()
    caller.charge(1e6, world.clock.now_s)
    world.fair_shares.taken(Lane.VOLATILE, [Entry(caller, "one", 1.0)])
    for _ in range(3):
        await updates.get()
    running.cancel()
