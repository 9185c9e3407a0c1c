"""The queue of commands: in order, but for reports that give way to the next one of their device."""

from __future__ import annotations

import gc
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from identity.principal import Principal, Role
from identity.quotas import Account, Quota
from server import command as c
from server.counters import Counters
from server.model import Place, TopK
from server.runtime.command_queue import CALLER_MAX, CommandQueue, Entry
from server.session import Outbox

LINE, OTHER_LINE = Outbox(), Outbox()
HERE = Place(14.5, 35.5)


def report(sequence=1, device_id="d", **changes):
    fields = {"outbox": LINE, "session": None, "subscription_ids": (1, 2)}
    place = Place(changes.pop("lon", 14.5), 35.5, changes.pop("margin_m", 0.0))
    return c.Report(device_id=device_id, sequence=sequence, place=place, **{**fields, **changes})


@pytest.fixture
def counters():
    return Counters()


@pytest.fixture
def queue(counters):
    return CommandQueue(counters)


def volatile(queue):
    """What waits of a single caller in the volatile lane."""
    return [entry.command for entry in queue.volatile.of(LINE.principal.account)]


def durable(queue, count=1000):
    """What may be taken next of the durable lane."""
    entries = queue.take_durable(count)
    queue.put_back(entries)
    return [entry.command for entry in entries]


def waiting(queue):
    return volatile(queue), durable(queue)


def test_a_report_takes_the_place_of_the_one_before(queue, counters):
    commands = (report(1), report(1, "other"), report(2, lon=14.6), report(7, lon=14.7))
    assert [queue.put(command) for command in commands] == [True, True, False, False]
    assert waiting(queue) == ([report(7, lon=14.7), report(1, "other")], [])
    assert len(queue) == 2
    assert counters.reports_superseded == 2
    assert [entry.command for entry in queue.take_volatile(1)] == [report(7, lon=14.7)]
    assert waiting(queue) == ([report(1, "other")], [])


@pytest.mark.parametrize(
    "after",
    [
        report(1),
        report(2, outbox=OTHER_LINE),
        report(2, subscription_ids=(1,)),
        report(2, subscription_ids=(1, 2, 3)),
        report(2, margin_m=5.0),
    ],
    ids=lambda one: str(one[3:]),
)
def test_different_reports_both_wait(queue, counters, after):
    queue.put(report(1))
    queue.put(after)
    assert volatile(queue) == [report(1), after]
    assert counters.reports_superseded == 0


def test_a_taken_command_is_removed(queue):
    queue.put(report(1))
    queue.take_volatile(1)
    queue.put(report(2))
    queue.put(report(3))
    assert volatile(queue) == [report(3)]
    queue.put(report(4, subscription_ids=(5,)))
    queue.take_volatile(1)  # of the two reports of the device, not the last
    queue.put(report(5, subscription_ids=(5,)))
    assert volatile(queue) == [report(5, subscription_ids=(5,))]


def test_commands_without_disk_wait_in_the_volatile_lane(queue):
    publish, ping, ack = c.Publish(()), c.Ping(LINE, "d", 1), c.Ack(LINE, "d", 1)
    hello, detach = c.Hello(LINE, "e", b"n", 0, HERE), c.Detach(LINE, "e")
    search = c.Search(TopK(("sushi",), 3, 0.5), 14.5, 35.5)
    aside = [report(1), ping, ack, hello, detach, search]
    for command in (publish, *aside):
        queue.put(command)
    assert waiting(queue) == (aside, [publish])


def test_a_search_waits_for_no_command(queue):
    """Not even for what is under way of the device that asks: it is not the device's."""
    queue.put(c.Unsubscribe(LINE, "d", 1))
    search = c.Search(TopK(("sushi",), 3, 0.5), 14.5, 35.5)
    queue.put(search)
    assert volatile(queue) == [search]


@pytest.mark.parametrize(
    "command", [c.Hello(LINE, "d", b"n", 0, HERE), c.Detach(LINE, "d"), report(1), c.Ping(LINE, "d", 1)]
)
def test_a_device_that_is_being_forgotten_waits(queue, command):
    forget = c.Forget(("d", "e"))
    for one in (forget, command, report(1, "other")):
        queue.put(one)
    assert waiting(queue) == ([report(1, "other")], [forget, command])
    queue.take_volatile(1)
    (taken,) = queue.take_durable(1)
    queue.put(c.Ack(LINE, "d", 1))
    assert waiting(queue) == ([], [command, c.Ack(LINE, "d", 1)])
    queue.done([taken])
    queue.done(queue.take_durable(2))
    queue.put(command)
    assert waiting(queue) == ([command], [])


def test_nothing_of_a_device_is_overtaken(queue):
    """Not by what comes behind it, as long as it has not been carried out."""
    end = c.Unsubscribe(LINE, "d", 1)
    for command in (report(1), end, report(2), report(3), report(1, "other")):
        queue.put(command)
    assert waiting(queue) == ([report(1), report(1, "other")], [])
    queue.take_volatile(2)
    assert waiting(queue) == ([], [end, report(3)])
    (taken,) = queue.take_durable(1)
    queue.put(c.Ping(LINE, "d", 1))
    assert waiting(queue) == ([], [report(3), c.Ping(LINE, "d", 1)])
    queue.done([taken])
    queue.done(queue.take_durable(2))
    queue.put(report(4))
    assert waiting(queue) == ([report(4)], [])


def test_a_barrier_is_behind_earlier_commands(queue):
    sync, publish = c.Sync(), c.Publish(())
    for command in (publish, report(1), sync, report(1, "other")):
        queue.put(command)
    assert durable(queue) == [publish]
    queue.take_volatile(1)
    assert durable(queue) == [publish, sync], "what came later is of no concern"


def test_a_barrier_waits_for_earlier_requests_of_others(queue):
    """And for nothing that came behind it, however long its own caller's queue is."""
    ours, theirs = caller("ours"), caller("theirs")
    before = [c.Publish((), theirs) for _ in range(3)]
    sync, after = c.Sync(ours), c.Publish((), theirs)
    for command in (*before, sync, after, c.Publish((), ours)):
        queue.put(command)
    taken = []
    for _ in range(3):
        assert sync not in taken
        entries = queue.take_durable(1)
        taken += [entry.command for entry in entries]
        queue.done(entries)
    assert taken == before
    assert sync in durable(queue)
    returned = queue.take_durable(1)
    assert returned[0].command in (sync, after)
    queue.put_back(returned)
    assert sync in durable(queue)


def test_a_callers_last_command_waits_for_its_earlier_ones(queue):
    """Also if that was put back."""
    ours, theirs = caller("ours"), caller("theirs")
    queue.put(c.Publish((), theirs))
    queue.put(c.Sync(ours))
    taken = queue.take_durable(1)
    queue.put_back(taken)
    assert [type(one) for one in durable(queue, 1)] == [c.Publish]


def test_what_was_executed_is_let_go_behind_a_command_that_waits_for_long(queue):
    slow, other = caller("slow"), caller("other")
    first = c.Publish((), slow)
    queue.put(first)
    for _ in range(3_000):
        queue.put(c.Search(TopK(("sushi",), 3, 0.5), 14.5, 35.5, other))
        queue.take_volatile(1_000)
    entries = [one for one in gc.get_objects() if type(one) is Entry]  # not a proxy, which may be dead
    kept = sum(one.account in {slow.account, other.account} for one in entries)
    assert kept < 1_500
    queue.put(c.Publish((), other), "a future")
    queue.put(c.Sync(other))
    entries = queue.take_durable(10)
    (executed,) = [entry for entry in entries if entry.answer is not None]
    queue.done([executed])
    assert executed.command != c.Publish((), other)
    assert executed.answer is None
    queue.put_back([entry for entry in entries if entry is not executed])
    assert durable(queue) == [first, c.Sync(other)], "and the order is known"


def test_callers_take_turns(queue):
    flood, honest = caller("flood"), caller("honest")
    for _ in range(1000):
        queue.put(c.Publish((), flood))
    queue.put(c.Publish((), honest))
    taken = queue.take_durable(1000, cost_max_us=2000.0)
    assert honest in [entry.command.principal for entry in taken]


def test_the_queue_of_one_caller_is_bounded_and_others_have_capacity():
    queue = CommandQueue(Counters(), count_max=12_000)
    flood, second, honest = caller("flood"), caller("second"), caller("honest")
    while queue.has_room(flood.account):
        queue.put(c.Publish((), flood))
    assert len(queue) == CALLER_MAX
    while queue.has_room(second.account):
        queue.put(c.Publish((), second))
    assert len(queue) == 12_000
    count = 0
    while queue.has_room(honest.account):
        queue.put(c.Publish((), honest))
        count += 1
    assert 1 <= count < 100
    queue.done(queue.take_durable(5_000))
    assert queue.has_room(second.account)


def caller(name):
    """Return a caller with an account of its own."""
    account = Account(Quota(operations_per_s=1e9), name=name)
    return Principal(name, frozenset({Role.PUBLISHER, Role.OPERATOR}), account=account)


devices = st.sampled_from("abc")
puts = st.one_of(
    st.builds(lambda one: ("put", lambda n: report(n, one)), devices),
    st.builds(lambda one: ("put", lambda n: c.Ping(LINE, one, n)), devices),
    st.builds(lambda one: ("put", lambda n: c.Unsubscribe(LINE, one, n)), devices),
    st.builds(lambda one: ("put", lambda _: c.Hello(LINE, one, b"n", 0, HERE)), devices),
    st.builds(lambda one: ("put", lambda _: c.Forget((one,))), devices),
    st.just(("put", lambda _: c.Sync())),
    st.sampled_from([*itertools.product(("volatile", "durable"), (1, 3)), ("done", 0)]),
)


class Driver:
    """Puts and takes as told, and notes what it has taken; durable commands are under way until done."""

    def __init__(self):
        self.queue = CommandQueue(Counters())
        self.put, self.taken, self.under_way = [], [], []

    def step(self, kind, what):
        queue = self.queue
        if kind == "put":
            self.put.append(what(len(self.put) + 1))
            queue.put(self.put[-1])
        elif kind == "volatile":
            self.taken += [entry.command for entry in queue.take_volatile(what)]
        elif kind == "durable" and not self.under_way:
            self.under_way = queue.take_durable(what)
            self.taken += [entry.command for entry in self.under_way]
        elif kind == "done":
            queue.done(self.under_way)
            self.under_way = []


@given(st.lists(puts, max_size=60))
def test_commands_of_a_device_are_in_order_and_only_volatile_ones_overtake(steps):
    driver = Driver()
    for kind, what in [*steps, *3 * (len(steps) + 1) * [("done", 0), ("volatile", 1), ("durable", 1)]]:
        driver.step(kind, what)
    assert len(driver.queue) == 0
    numbers = {id(command): number for number, command in enumerate(driver.put)}
    order = [(numbers[id(command)], command) for command in driver.taken]
    for device_id in "abc":
        mine = [number for number, one in order if getattr(one, "device_id", "") == device_id]
        assert mine == sorted(mine)
    for place, (number, command) in enumerate(order):
        if isinstance(command, c.DurableCommand):
            assert all(later > number for later, _ in order[place + 1 :])
