"""Turns: every caller in order, all of them served, and each about its share, against a plain model."""

from __future__ import annotations

import random
from collections import Counter, deque
from dataclasses import dataclass

import pytest

from identity.quotas import Account, Quota
from server.runtime.turns import QUANTUM_US, Turns
from tests.support.amounts import examples


@dataclass(eq=False)
class Item:
    account: Account
    tenant: str
    cost_us: float
    number: int = 0
    is_taken: bool = False


def account(name, weight=1.0):
    return Account(Quota(weight=weight), name=name)


def filled(turns, accounts, count, cost_us, tenant=""):
    for number in range(count):
        for one in accounts:
            turns.put(Item(one, tenant, cost_us, number))


def shares(taken):
    found = Counter()
    for item in taken:
        found[item.account.name] += item.cost_us
    return found


def of_callers(costs, weights, waiting_us):
    """Turns of callers that all have as much waiting, in commands of a cost and with a weight each."""
    turns, accounts = Turns(), [account(str(i), weight) for i, weight in enumerate(weights)]
    for one, cost_us in zip(accounts, costs, strict=True):
        filled(turns, [one], waiting_us // cost_us, float(cost_us))
    return turns, accounts


def test_a_flood_does_not_stand_before_the_first_of_another():
    turns, flood, honest = Turns(), account("flood"), account("honest")
    filled(turns, [flood], 100_000, 100.0)
    turns.put(Item(honest, "", 100.0))
    taken = turns.take(1_000)
    place = next(i for i, item in enumerate(taken) if item.account is honest)
    assert place <= QUANTUM_US / 100.0 + 1


@pytest.mark.parametrize(("costs", "weights"), [((10, 1000), (1, 1)), ((50, 50, 50), (1, 2, 8))])
def test_callers_that_wait_have_their_share_by_cost(costs, weights):
    turns, accounts = of_callers(costs, weights, 200_000)
    found = shares(turns.take(10**6, 100_000.0))
    least = found["0"] / weights[0]
    for one, weight, cost_us in zip(accounts, weights, costs, strict=True):
        assert abs(found[one.name] / weight - least) <= 2 * QUANTUM_US + 2 * max(costs) + cost_us


@pytest.mark.parametrize(
    ("costs", "weights"),
    [((1_000, 3_000), (1, 2)), ((20_000, 5_000, 7_000), (1, 1, 2)), ((3_000, 20_000), (8, 1))],
)
def test_shares_do_not_drift_apart_where_commands_are_dearer_than_turns(costs, weights):
    """Rounds in which all are in debt are no loss to those that are first in the ring."""
    turns, accounts = of_callers(costs, weights, 10_000_000)
    found = shares(turns.take(10**6, 4_000_000.0))
    had = [found[one.name] / one.weight for one in accounts]
    largest = max(cost_us / weight for cost_us, weight in zip(costs, weights, strict=True))
    assert max(had) - min(had) <= QUANTUM_US + largest


@pytest.mark.parametrize("tenants", [("", ""), ("one", "other")])
@pytest.mark.parametrize("depth", [1, 2])
def test_a_caller_with_one_request_at_a_time_has_no_more_than_its_share(tenants, depth):
    turns, dear, cheap = Turns(), account("dear"), account("cheap")
    filled(turns, [dear], depth, 20_000.0, tenants[0])
    filled(turns, [cheap], 5_000, 100.0, tenants[1])
    found = Counter()
    for _ in range(300):
        for item in turns.take(64, 5_000.0):
            found[item.account.name] += item.cost_us
            filled(turns, [item.account], 1, item.cost_us, item.tenant)
    assert abs(found["dear"] - found["cheap"]) <= 4_000.0 + 20_000.0


def test_debts_end_when_no_caller_waits():
    turns, dear, cheap = Turns(), account("dear"), account("cheap")
    filled(turns, [dear, cheap], 1, 10.0**9)
    assert len(turns.take(2)) == 2
    filled(turns, [dear, cheap], 1, 1.0)
    assert [item.account for item in turns.take(2)] == [dear, cheap]


def test_tenants_have_their_share_however_many_callers_they_have():
    turns = Turns()
    many = [account(f"many {i}") for i in range(50)]
    filled(turns, many, 100, 100.0, "many")
    filled(turns, [account("one")], 5_000, 100.0, "one")
    found = shares(turns.take(10**6, 200_000.0))
    assert abs(found["one"] - 100_000.0) < 10_000.0


def test_a_caller_without_competitors_has_no_debt():
    turns, alone, late = Turns(), account("alone"), account("late")
    filled(turns, [alone], 10_000, 1_000.0)
    turns.take(9_000)
    filled(turns, [late], 1_000, 1_000.0)
    assert abs(shares(turns.take(100))["alone"] - 50_000.0) <= 2_000.0


def test_a_command_dearer_than_many_turns_is_served_all_the_same():
    turns, dear, cheap = Turns(), account("dear"), account("cheap")
    filled(turns, [dear], 3, 10.0**9)
    filled(turns, [cheap], 3, 1.0)
    assert len(turns.take(6)) == 6


def test_the_cost_of_taken_commands_is_bounded():
    turns = Turns()
    filled(turns, [account("a"), account("b")], 100, 300.0)
    assert len(turns.take(1000, 1000.0)) == 4
    assert len(turns.take(3)) == 3


def test_a_caller_that_is_not_ready_is_skipped_and_keeps_its_place():
    turns, busy, other = Turns(), account("busy"), account("other")
    filled(turns, [busy, other], 3, 1.0)
    assert {item.account for item in turns.take(10, is_ready=lambda one: one.account is other)} == {other}
    assert [item.number for item in turns.take(10)] == [0, 1, 2]
    assert len(turns) == 0


@pytest.mark.parametrize("tenant", ["", "another"])
@pytest.mark.parametrize("count", [1, 9])
def test_what_was_put_back_is_taken_next(tenant, count):
    """Whatever its caller has behind it, and however long the queue of others is."""
    turns, flood, honest = Turns(), account("flood"), account("honest")
    filled(turns, [flood], 1_000, 100.0)
    filled(turns, [honest], count, QUANTUM_US - 1.0, tenant)
    taken = []
    while not any(item.account is honest for item in taken):
        taken = turns.take(7)
    kept = [item for item in taken if item.account is honest]
    turns.put_back(kept)
    for _ in range(3):
        assert turns.take(1) == kept[:1]
        turns.put_back(kept[:1])


def is_other_than(barred):
    return lambda one: one.account is not barred


@pytest.mark.parametrize("seed", range(examples(30)))
def test_any_mix_against_queues_of_each_caller(seed):
    """Nothing is lost or doubled, each caller is served in order, and nobody waits for ever."""
    chance, turns = random.Random(seed), Turns()
    accounts = [(account(str(i), chance.choice((1, 8))), f"tenant {i % 3}") for i in range(7)]
    model = {one: deque() for one, _ in accounts}
    under_way, number = [], 0
    for _ in range(300):
        if chance.random() < 0.6:
            one, tenant = chance.choice(accounts)
            number += 1
            item = Item(one, tenant, chance.choice((1.0, 50.0, 700.0, 20_000.0)), number)
            turns.put(item)
            model[one].append(item)
        elif chance.random() < 0.3 and under_way:
            returned = under_way[chance.randrange(len(under_way)) :]
            turns.put_back(returned)
            for item in reversed(returned):
                model[item.account].appendleft(item)
        else:
            barred = chance.choice(accounts)[0] if chance.random() < 0.5 else None
            cost_us = chance.choice((1.0, 800.0, 1e9))
            under_way = turns.take(chance.randint(1, 9), cost_us, is_other_than(barred))
            for item in under_way:
                assert model[item.account].popleft() is item
                assert item.account is not barred
                assert item.is_taken
        assert len(turns) == sum(map(len, model.values()))
        assert all(list(turns.of(one)) == list(waiting) for one, waiting in model.items())
    rest = turns.take(10**6)
    assert len(rest) == sum(map(len, model.values()))
