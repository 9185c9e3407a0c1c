"""Accounts: operations, time, streams; of a caller and of its tenant."""

from __future__ import annotations

import pytest

from identity.principal import Principal, Role
from identity.quotas import BURST_S, Account, Accounts, Quota
from nearcast.errors import Reason, RefusedError
from safe_region.earth.frame import Area, Frame
from safe_region.earth.shapes import Circle
from server import command as c
from server.commands.costs import Costs, Factor
from server.core.coordinator import Coordinator
from server.model import Boolean, Clause, NewObject, TopK
from server.runtime.charges import Charges
from server.runtime.command_queue import Entry

FRAME = Frame.of(Area(14.0, 35.0, 15.0, 36.0))


class Clock:
    def __init__(self):
        self.now_s = 1000.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


def test_time_that_was_used_has_to_come_again(clock):
    account = Account(Quota(time_share=0.1), clock)
    account.require(1)
    account.charge(1e6 * 0.1 * BURST_S + 50_000.0, clock.now_s)
    with pytest.raises(RefusedError) as refused:
        account.require(1)
    assert (refused.value.reason, refused.value.field) == (Reason.RATE_LIMITED, "time")
    assert 500 <= refused.value.retry_after_ms <= 501
    assert 0.5 <= account.take(1) < 0.501
    clock.now_s += 0.51
    account.require(1)
    assert account.take(1) == 0.0


def test_time_that_was_charged_too_much_is_given_back(clock):
    account = Account(Quota(time_share=0.1), clock)
    account.charge(5e6, clock.now_s)
    assert account.take(1) > 0.0
    account.charge(-5e6, clock.now_s)
    assert account.take(1) == 0.0
    assert account.used_us == 0.0


def test_quiet_time_before_a_charge_does_not_pay_for_it(clock):
    """Also if nothing was asked for: large deltas are charged to a device that is silent."""
    account = Account(Quota(time_share=0.1), clock)
    clock.now_s += 3600.0
    account.charge(1e6 * 0.1 * BURST_S + 50_000.0, clock.now_s)
    assert 0.5 <= account.take(1) < 0.501
    clock.now_s += 3600.0
    account.charge(-1e9, clock.now_s)
    account.charge(1e6 * 0.1 * BURST_S + 50_000.0, clock.now_s)
    assert 0.5 <= account.take(1) < 0.501, "no more is given back than there may be"


@pytest.mark.parametrize(
    ("quota", "used", "limit"),
    [
        (Quota(), "other", "20.0%"),
        (Quota(time_share=0.1), "other", "20.0%"),
        (Quota(time_share=0.1), "one", "10.0%"),
    ],
)
def test_a_refusal_names_the_share_that_was_used_up(clock, quota, used, limit):
    accounts = Accounts(0.2, clock)
    one, other = (accounts.account("acme", name, quota) for name in ("one", "other"))
    cost_us = 1e6 * 0.2 * BURST_S + 1e6 if used == "other" else 1e6 * 0.1 * BURST_S + 1e5
    {"one": one, "other": other}[used].charge(cost_us, clock.now_s)
    with pytest.raises(RefusedError) as refused:
        one.require(1)
    assert limit in refused.value.limit


def test_a_tenant_has_a_share_of_its_own(clock):
    accounts = Accounts(0.2, clock)
    one, other = (accounts.account("acme", name, Quota()) for name in ("one", "other"))
    third = accounts.account("beta", "one", Quota())
    one.charge(1e6 * 0.2 * BURST_S + 1e6, clock.now_s)
    assert other.take(1) > 0.0
    assert third.take(1) == 0.0
    with pytest.raises(RefusedError):
        other.require(1)


def test_the_share_that_is_shown_is_of_late(clock):
    account = Account(Quota(), clock)
    for _ in range(40):
        account.charge(250_000.0, clock.now_s)
        clock.now_s += 1.0
    assert 0.2 < account.share(clock.now_s) < 0.3
    clock.now_s += 100.0
    assert account.share(clock.now_s) == 0.0
    assert account.used_us == 1e7


def test_a_caller_without_limits_is_not_limited(clock):
    account = Account(Quota(), clock)
    account.charge(1e12, clock.now_s)
    assert account.take(10**9) == 0.0
    account.require(10**9)


def test_the_time_of_a_batch_is_shared_as_estimated():
    charges, factor = Charges(), Factor()
    entries = []
    for name, cost_us in (("one", 100.0), ("other", 300.0)):
        account = Account(Quota(time_share=0.5), name=name)
        principal = Principal(name, frozenset({Role.DEVICE}), account=account)
        entries.append(Entry(c.Sync(principal), None, 1, principal, cost_us))
        charges.taken_on(entries[-1])
    charges.carried_out(entries, 1_000.0, factor)
    assert [round(entry.account.used_us) for entry in entries] == [250, 750]
    assert factor.value > 1.0


@pytest.mark.parametrize(("estimated_us", "took_us"), [(100.0, 1e9), (1e9, 0.0), (0.0, 5.0)])
def test_a_factor_stays_within_reason(estimated_us, took_us):
    factor = Factor()
    for _ in range(1000):
        factor.note(estimated_us, took_us)
    assert 0.2 <= factor.value <= 16.0


def test_estimates_follow_the_shape_of_requests():
    costs = Costs(Coordinator(FRAME))
    one = NewObject(14.5, 35.5, ("sushi",), 60_000, b"", "")
    assert costs.of(c.Publish((one,) * 100)) == pytest.approx(100 * costs.of(c.Publish((one,))))
    small = Boolean((Clause(("a",)),), Circle(10.0), is_moving=True)
    words = tuple(f"w{i}" for i in range(16))
    large = Boolean(tuple(Clause((f"r{i}",), words) for i in range(64)), Circle(10.0), is_moving=True)
    assert costs.of(c.Search(large, 14.5, 35.5)) > 5 * costs.of(c.Search(small, 14.5, 35.5))
    assert costs.of(c.Search(TopK(("a",), 100, 0.5), 0.0, 0.0)) > costs.of(
        c.Search(TopK(("a",), 1, 0.5), 0.0, 0.0)
    )
    assert costs.of(c.Retract(tuple(range(1000)))) > 100 * costs.of(c.Retract((1,)))
