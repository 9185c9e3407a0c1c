"""Deleting a device's data: nothing of it is left, and the order of the queue decides what is deleted."""

from __future__ import annotations

import pytest

from identity.principal import ANYBODY, Principal, Role
from nearcast.errors import Reason, RefusedError
from safe_region.earth.shapes import Circle
from safe_region.regions.region import RegionMode
from server import command as c
from server.errors import StoreError
from server.model import Boolean, Clause, TopK
from server.session import Detached, Outbox, Pong, Rejection, VersionedDelta, Welcome
from tests.server.test_command_loop import (  # noqa: F401 - fixtures
    HERE,
    SUSHI,
    an_object,
    clock,
    command_loop,
    held,
    report,
    steady_clock,
)
from tests.support.stored import subscriptions_of
from tests.support.traces_left import strings_with

RARE = "zymurgy"
WHO = "device"


def on_disk(loop):
    return [row.device_id for row in subscriptions_of(loop.store.recover())]


def kinds(events):
    return [type(event) for event in events]


async def attached(loop, device_id, *specs, principal=ANYBODY):
    line = Outbox(counters=loop.coordinator.counters, principal=principal)
    await loop.enqueue(c.Hello(line, device_id, b"nonce", 0, HERE))
    for number, spec in enumerate(specs, 1):
        await loop.enqueue(c.Subscribe(line, device_id, number, spec, HERE))
    await loop.execute(c.Sync())
    return line


def taken(loop, line):
    return [event for _, event in loop.coordinator.router.take(line, 100)]


SPECS = (
    TopK((RARE, "sushi"), 3, 0.5),
    TopK((RARE,), 3, 0.5, region=RegionMode.STATIONARY),
    TopK(("sushi",), 3, 0.5, region=RegionMode.ELLIPSE),
    Boolean((Clause((RARE,), ("tofu",)),), Circle(500.0), is_moving=True),
    Boolean((Clause(("sushi",)),), Circle(500.0, (14.5, 35.5)), is_moving=False),
)


@pytest.mark.parametrize("is_attached", [True, False])
async def test_nothing_of_it_is_left_in_memory_or_on_disk(command_loop, is_attached):  # noqa: F811
    loop, coordinator = command_loop, command_loop.coordinator
    coordinator.leases.lease_ms = 600_000  # which refer to sessions until they would have ended
    other = await attached(loop, "neighbour", SUSHI)
    line = await attached(loop, "erasable-7f3a", *SPECS)
    await loop.execute(c.Publish((an_object(),)))
    assert strings_with("erasable-7f3a", coordinator)
    assert strings_with(RARE, coordinator)
    if not is_attached:
        loop.enqueue_detach(c.Detach(line, "erasable-7f3a"))
    assert await loop.execute(c.ForgetDevice("erasable-7f3a")) == len(SPECS)
    assert on_disk(loop) == ["neighbour"]
    assert "erasable-7f3a" not in coordinator.sessions
    events = taken(loop, line)
    if is_attached:
        *before, (error,) = events
        assert VersionedDelta not in kinds(before), "what waited is not sent any more"
        assert error.reason is Reason.FORGOTTEN
    await loop.execute(c.Publish((an_object(),)))  # what is late is on disk, too
    del events, line
    for text in ("erasable-7f3a", RARE):
        assert strings_with(text, loop) == []
    assert coordinator.router.subscription_count == 1
    assert coordinator.subscription_counts == {"": 1}
    assert coordinator.counters.devices_deleted == 1
    coordinator.check()
    assert taken(loop, other)[-1].delta.add, "others go on"


async def test_nor_of_a_publisher_without_objects(command_loop):  # noqa: F811
    seller = Principal("seller-7f3a", frozenset({Role.PUBLISHER}))
    ids = await command_loop.execute(c.Publish((an_object("key-7f3a", b"payload-7f3a"),), seller))
    assert len(strings_with("7f3a", command_loop.coordinator)) >= 3
    await command_loop.execute(c.Retract(tuple(ids), seller))
    del seller
    assert strings_with("7f3a", command_loop.coordinator) == []


async def test_an_unknown_device_is_no_error(command_loop):  # noqa: F811
    assert await command_loop.execute(c.ForgetDevice("nobody")) == 0
    line = await attached(command_loop, WHO)
    assert await command_loop.execute(c.ForgetDevice(WHO)) == 0
    assert kinds(taken(command_loop, line)) == [Welcome, Detached]
    assert await command_loop.execute(c.ForgetDevice(WHO)) == 0
    assert command_loop.coordinator.counters.devices_deleted == 1


async def test_a_device_with_another_hello_is_new(command_loop):  # noqa: F811
    line = await attached(command_loop, WHO, SUSHI)
    await command_loop.execute(c.ForgetDevice(WHO))
    first = taken(command_loop, line)[0]
    await command_loop.enqueue(c.Hello(line, WHO, b"nonce", 2, HERE, first.epoch))
    await command_loop.enqueue(c.Subscribe(line, WHO, 1, SUSHI, HERE))
    await command_loop.execute(c.Sync())
    welcome, delta = taken(command_loop, line)
    assert (welcome.subscriptions, welcome.resumed) == ((), False)
    assert welcome.epoch != first.epoch
    assert delta.delta.snapshot
    assert on_disk(command_loop) == [WHO]


async def test_earlier_commands_are_processed_first_and_later_ones_are_refused(held):  # noqa: F811
    """The disk is busy with others: all of this waits, and is carried out in its order."""
    loop = held.loop
    publishing = await held.hold(c.Publish((an_object(),)))
    await loop.enqueue(c.Hello(held.line, WHO, b"n", 0, HERE))
    await loop.enqueue(c.Subscribe(held.line, WHO, 1, SUSHI, HERE))
    forgetting = await loop.submit(c.ForgetDevice(WHO))
    await loop.enqueue(c.Subscribe(held.line, WHO, 2, SUSHI, HERE))
    await loop.enqueue(report(held.line, 1))
    await loop.enqueue(c.Ping(held.line, WHO, 7))
    await held.rest()
    assert not forgetting.done()
    held.disk.go_on.set()
    await publishing
    assert await forgetting == 1
    await loop.execute(c.Sync())
    events = held.taken()
    assert kinds(events) == [Welcome, Detached, Rejection, Rejection, Rejection]
    assert {one.error.reason for one in events[2:]} == {Reason.OUT_OF_ORDER}
    assert on_disk(loop) == []
    held.coordinator.check()


async def test_a_report_behind_it_does_not_take_the_place_of_one_before(held):  # noqa: F811
    """The first is carried out, and answered or dropped; the second is of nobody any more."""
    loop = held.loop
    await held.subscribe(1)
    await held.hold(c.Subscribe(held.line, WHO, 2, SUSHI, HERE))
    await loop.enqueue(report(held.line, 1, 14.51))
    forgetting = await loop.submit(c.ForgetDevice(WHO))
    await loop.enqueue(report(held.line, 2, 14.52))
    held.disk.go_on.set()
    assert await forgetting == 2
    await loop.execute(c.Sync())
    assert held.coordinator.counters.reports_superseded == 0
    assert held.coordinator.counters.reports_accepted == 1
    assert kinds(held.taken())[-2:] == [Detached, Rejection]


async def test_while_it_is_being_deleted_it_gets_no_welcome(held):  # noqa: F811
    loop = held.loop
    await held.subscribe(1, 2)
    await loop.enqueue(c.Detach(held.line, WHO))
    forgetting = await held.hold(c.ForgetDevice(WHO))
    line = Outbox()
    await loop.enqueue(c.Hello(line, WHO, b"n", 3, HERE))
    await held.rest()
    assert held.taken(line) == []
    held.disk.go_on.set()
    assert await forgetting == 2
    await loop.execute(c.Sync())
    (welcome,) = held.taken(line)
    assert (welcome.subscriptions, welcome.resumed) == ((), False)


async def test_without_a_commit_it_is_not_deleted(command_loop, monkeypatch):  # noqa: F811
    line = await attached(command_loop, WHO, SUSHI)
    taken(command_loop, line)
    commit = command_loop.store.commit

    def full(mutations, *times):
        if mutations:
            raise StoreError("as if the disk were full")
        commit(mutations, *times)

    monkeypatch.setattr(command_loop.store, "commit", full)
    with pytest.raises(RefusedError) as refused:
        await command_loop.execute(c.ForgetDevice(WHO))
    assert refused.value.reason is Reason.INTERNAL
    monkeypatch.undo()
    await command_loop.enqueue(c.Ping(line, WHO, 1))
    await command_loop.execute(c.Sync())
    assert kinds(taken(command_loop, line)) == [Pong], "it continues as before"
    assert on_disk(command_loop) == [WHO]
    assert await command_loop.execute(c.ForgetDevice(WHO)) == 1


@pytest.mark.parametrize(
    ("caller", "device_id", "field"),
    [
        (Principal("device", frozenset({Role.DEVICE})), "other", "device_id"),
        (Principal("device", frozenset({Role.DEVICE}), "acme"), "acme\x1fother", "device_id"),
        (Principal("ops", frozenset({Role.OPERATOR})), "acme\x1fdevice", "device_id"),
        (Principal("ops", frozenset({Role.OPERATOR})), "", "device_id"),
        (Principal("ops", frozenset({Role.OPERATOR})), "d" * 129, "device_id"),
    ],
)
async def test_a_device_of_another_caller_is_refused(command_loop, caller, device_id, field):  # noqa: F811
    gate = Principal("gate", frozenset({Role.GATEWAY}), "acme")
    await attached(command_loop, "acme\x1fdevice", SUSHI, principal=gate)
    with pytest.raises(RefusedError) as refused:
        await command_loop.execute(c.ForgetDevice(device_id, caller))
    assert refused.value.field == field
    assert len(on_disk(command_loop)) == 1
