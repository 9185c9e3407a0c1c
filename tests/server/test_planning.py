"""Planning: what plans of one batch touch, and where a batch ends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from identity.principal import Principal, Role
from nearcast.errors import Reason, RefusedError
from safe_region.earth.frame import Area, Frame
from safe_region.earth.shapes import Circle
from server import command as c
from server.clock import Clock
from server.commands.plan import LATER, Plan, slices
from server.commands.planner import Planner
from server.core.coordinator import Coordinator
from server.core.evaluation_batch import EvaluationBatch
from server.limits import Limits
from server.model import Boolean, Clause, NewObject, Place, TopK, Window
from server.session import Outbox
from server.store.mutations import DeleteDevice, SetLastSeen

FRAME = Frame.of(Area(14.0, 35.0, 15.0, 36.0))
SUSHI = TopK(("sushi",), 3, 0.5)
HERE = Place(14.5, 35.5)


def publish(key: str, payload: bytes = b"") -> c.Publish:
    return c.Publish((NewObject(14.5, 35.5, ("sushi",), 60_000, payload, key),))


@pytest.fixture
def coordinator():
    return Coordinator(FRAME, Limits(), clock=Clock(is_virtual=True))


@pytest.fixture
def planner(coordinator):
    return Planner(coordinator)


def carried_out(coordinator, planner, *commands):
    """Plan and apply a batch without a store; return the replies."""
    plans = planner.plan_batch(commands)
    assert LATER not in plans
    return applied(coordinator, plans)


def together(planner, *commands):
    """Return how many commands make a batch."""
    return sum(plan is not LATER for plan in planner.plan_batch(commands))


def applied(coordinator, plans):
    batch = EvaluationBatch()
    replies = []
    for plan in plans:
        assert isinstance(plan, Plan)
        replies.append(plan.apply(batch))
        if plan.publication is not None:
            for fresh, replaced in slices([plan.publication], 2):
                coordinator.publish(fresh, replaced)
    coordinator.evaluate(batch)
    return replies


def attached(coordinator, device_id):
    line, batch = Outbox(), EvaluationBatch()
    coordinator.hello(c.Hello(line, device_id, b"n", 0, HERE), batch)
    coordinator.evaluate(batch)
    return line


@pytest.mark.parametrize("key", ["everything", "device", "1", "()", "keys"])
def test_no_key_of_a_publisher_closes_a_batch(planner, key):
    assert together(planner, publish(key), publish("other"), publish("third")) == 3


def test_equal_names_of_a_device_an_object_and_a_key_are_independent(coordinator, planner):
    """A device, an object and a key of one name have nothing to do with each other."""
    line = attached(coordinator, "1")
    ((object_id,),) = carried_out(coordinator, planner, publish("1"))
    assert object_id == 1
    commands = [
        c.Subscribe(line, "1", 1, SUSHI, HERE),
        c.Retract((object_id,)),
        publish("('device', '1')"),
    ]
    assert together(planner, *commands) == 3


def test_a_batch_ends_before_an_object_that_it_touches_already(coordinator, planner):
    line = attached(coordinator, "d")
    ((object_id,),) = carried_out(coordinator, planner, publish("a"))
    assert together(planner, publish("b"), publish("b", b"other")) == 1
    assert together(planner, publish("a", b"other"), c.Retract((object_id,))) == 1
    assert together(planner, c.Retract((object_id,)), publish("a", b"other")) == 1
    subscribe = c.Subscribe(line, "d", 1, SUSHI, HERE)
    assert together(planner, subscribe, c.Forget(("d",))) == 1
    assert together(planner, subscribe, c.ForgetDevice("d")) == 1
    assert together(planner, c.ForgetDevice("d"), subscribe) == 1
    assert together(planner, c.ForgetDevice("d"), c.ForgetDevice("e"), publish("b")) == 3
    assert together(planner, c.AdvanceClock(1), publish("b")) == 1


def test_a_key_belongs_to_an_earlier_publication_in_the_queue(coordinator, planner):
    """Whatever shares a batch: a retraction by key sees what came before it, and nothing behind."""
    retract = c.Retract((), keys=("a",))
    assert together(planner, publish("a"), retract) == 1
    planner.give_back(planner.plan_batch([publish("b")]))
    ((first,),) = carried_out(coordinator, planner, publish("a"))
    assert together(planner, publish("a", b"other"), retract) == 1
    assert together(planner, retract, publish("a", b"other")) == 1
    assert together(planner, retract, retract) == 1
    assert together(planner, retract, c.Retract((first,))) == 1
    assert together(planner, retract, c.Retract((), keys=("b",)), publish("c")) == 3
    carried_out(coordinator, planner, retract)
    (refused,) = planner.plan_batch([retract])
    assert (refused.reason, refused.field) == (Reason.UNKNOWN_OBJECT, "keys[0]")
    coordinator.check()


def test_an_object_that_is_named_twice_is_retracted_once(coordinator, planner):
    ids = [carried_out(coordinator, planner, publish(key))[0][0] for key in "abc"]
    (plan,) = planner.plan_batch([c.Retract((ids[0], ids[0]), keys=("b", "a", "b"))])
    assert [one.object_id for one in plan.mutations] == ids[:2]
    applied(coordinator, [plan])
    assert list(coordinator.matching.objects) == ids[2:]
    assert list(coordinator.keys) == [("", "c", ids[2])]
    coordinator.check()


@pytest.mark.parametrize(
    ("ids", "keys", "reason", "field"),
    [
        ((), (), "INVALID_FIELD", "ids"),
        ((), ("a",) * 6, "TOO_MANY", "keys"),
        ((1,) * 6, (), "TOO_MANY", "ids"),
        ((1, 1, 1), ("a", "a", "a"), "TOO_MANY", "ids and keys"),
        ((), ("a", "b"), "UNKNOWN_OBJECT", "keys[1]"),
        ((1, 9), ("a",), "UNKNOWN_OBJECT", "ids[1]"),
        ((), ("a", ""), "INVALID_FIELD", "keys[1]"),
        ((), ("a" * 129,), "INVALID_FIELD", "keys[0]"),
        ((), ("acme\x1fa",), "INVALID_FIELD", "keys[0]"),
        ((), ("a", "theirs"), "UNKNOWN_OBJECT", "keys[1]"),
    ],
)
def test_an_unknown_object_is_named_and_nothing_is_retracted(
    planner, coordinator, ids, keys, reason, field
):
    coordinator.limits = replace(coordinator.limits, objects_per_request_max=5)
    shop, other = (Principal(name, frozenset({Role.PUBLISHER})) for name in ("shop", "other"))
    carried_out(coordinator, planner, replace(publish("a"), principal=shop))
    carried_out(coordinator, planner, replace(publish("theirs"), principal=other))
    (refused,) = planner.plan_batch([c.Retract(ids, shop, keys)])
    assert (refused.reason.name, refused.field) == (reason, field)
    assert len(coordinator.matching.objects) == 2
    operator = Principal("ops", frozenset({Role.OPERATOR}))
    carried_out(coordinator, planner, c.Retract((), operator, ("a", "theirs")))
    assert not coordinator.matching.objects


def test_a_republished_object_is_not_retracted_in_the_same_batch(coordinator, planner):
    """It would be answered with an id that is gone."""
    ((object_id,),) = carried_out(coordinator, planner, publish("a"))
    commands = [c.Retract((object_id,)), publish("a")]
    replies = []
    while len(replies) < len(commands):
        found = planner.plan_batch(commands[len(replies) :])
        plans = [plan for plan in found if plan is not LATER]
        assert not any(isinstance(plan, RefusedError) for plan in plans)
        replies += applied(coordinator, plans)
    (again,) = replies[1]
    assert list(coordinator.matching.objects) == [again]
    coordinator.check()


def test_a_volatile_command_is_behind_earlier_and_ahead_of_later_ones_of_its_device(coordinator, planner):
    line = attached(coordinator, "d")
    subscribe, ping = c.Subscribe(line, "d", 1, SUSHI, HERE), c.Ping(line, "d", 1)
    plan, nothing = planner.plan_batch([subscribe, ping])
    assert isinstance(plan, Plan)
    assert nothing is None
    assert planner.plan_batch([ping, subscribe]) == [None, LATER]
    assert together(planner, c.Ping(line, "other", 1), subscribe) == 2


SPECS = {
    "windows": lambda i: TopK(("sushi",), 3, 0.5, window=Window(1_000 * (i + 1))),
    "clauses": lambda i: Boolean(
        tuple(Clause(tuple(sorted(f"{i}-{j}-{k}" for k in range(16)))) for j in range(64)),
        Circle(500.0, None),
        True,
    ),
}


@pytest.mark.parametrize(
    ("kind", "most", "field"), [("windows", 8, "spec.window"), ("clauses", 4, "spec.boolean.clauses")]
)
def test_what_a_device_may_have_is_bounded_also_for_commands_of_one_batch(
    coordinator, planner, kind, most, field
):
    """Other devices have the windows already: they are not new to the server."""
    other, line = attached(coordinator, "other"), attached(coordinator, "d")
    coordinator.limits = replace(coordinator.limits, device_windows_max=20)
    specs = [SPECS[kind](i) for i in range(12)]
    if kind == "windows":
        for i, spec in enumerate(specs, 1):
            carried_out(coordinator, planner, c.Subscribe(other, "other", i, spec, HERE))
    coordinator.limits = replace(coordinator.limits, device_windows_max=8)
    waiting = [c.Subscribe(line, "d", i, spec, HERE) for i, spec in enumerate(specs, 1)]
    refused = []
    while waiting:
        found = [one for one in planner.plan_batch(waiting) if one is not LATER]
        refused += [one for one in found if isinstance(one, RefusedError)]
        applied(coordinator, [one for one in found if isinstance(one, Plan)])
        waiting = waiting[len(found) :]
    assert len(coordinator.sessions["d"].handles) == most
    assert {(one.reason, one.field) for one in refused} == {(Reason.TOO_MANY, field)}


def test_a_refused_command_takes_no_room_from_those_after_it(coordinator, planner):
    shop = Principal("shop", frozenset({Role.PUBLISHER}))
    coordinator.limits = replace(coordinator.limits, publisher_objects_max=3, publisher_bytes_max=10)

    def of(count, size):
        items = tuple(NewObject(14.5, 35.5, ("sushi",), 60_000, bytes(size)) for _ in range(count))
        return c.Publish(items, shop)

    refused, plan = planner.plan_batch([of(3, 4), of(3, 1)])
    assert (refused.reason, refused.field) == (Reason.TOO_MANY, "payload bytes")
    assert isinstance(plan, Plan)


def test_the_time_is_bounded(coordinator, planner):
    most = 2**53 - 1
    (refused,) = planner.plan_batch([c.AdvanceClock(most + 1)])
    assert (refused.reason, refused.field) == (Reason.INVALID_FIELD, "time_ms")
    carried_out(coordinator, planner, c.AdvanceClock(most))
    (plan,) = planner.plan_batch([publish("a")])
    assert isinstance(plan, Plan)


def test_a_device_that_was_there_lately_is_not_forgotten(coordinator, planner):
    """The store learns of it later."""
    line = attached(coordinator, "d")
    carried_out(coordinator, planner, c.Subscribe(line, "d", 1, SUSHI, HERE))
    coordinator.detach(line, "d")
    (plan,) = planner.plan_batch([c.Forget(("d",), 1_000)])
    assert plan.mutations == (SetLastSeen("d"),)
    carried_out(coordinator, planner, c.AdvanceClock(1_000))
    (plan,) = planner.plan_batch([c.Forget(("d",), 1_000)])
    assert plan.mutations == (DeleteDevice("d"),)


def test_a_device_that_comes_back_while_it_is_forgotten_is_told(coordinator, planner):
    line = attached(coordinator, "d")
    carried_out(coordinator, planner, c.Subscribe(line, "d", 1, SUSHI, HERE))
    coordinator.detach(line, "d")
    (plan,) = planner.plan_batch([c.Forget(("d",))])
    line = attached(coordinator, "d")
    coordinator.router.take(line, 10)
    applied(coordinator, [plan])
    ((_, event),) = coordinator.router.take(line, 10)
    assert event.error.reason is Reason.FORGOTTEN
    assert "d" not in coordinator.sessions
    assert not line.devices
    coordinator.check()


def test_an_existing_subscription_is_not_written_again(coordinator, planner):
    line = attached(coordinator, "d")
    for spec, rows in ((SUSHI, 1), (SUSHI, 0), (TopK(("sushi",), 4, 0.5), 1), (SUSHI, 1)):
        (plan,) = planner.plan_batch([c.Subscribe(line, "d", 1, spec, HERE)])
        assert len(plan.mutations) == rows
        applied(coordinator, [plan])
    coordinator.check()


def test_two_subscribes_of_one_number_do_not_share_a_batch(coordinator, planner):
    """Whether the second changes anything depends on the first."""
    line = attached(coordinator, "d")
    commands = [
        c.Subscribe(line, "d", 1, SUSHI, HERE),
        c.Subscribe(line, "d", 1, TopK(("tofu",), 3, 0.5), HERE),
    ]
    assert together(planner, *commands) == 1


def test_a_device_starts_many_subscriptions_in_one_batch(coordinator, planner):
    line = attached(coordinator, "d")
    limits = replace(coordinator.limits, subscriptions_per_device_max=5)
    coordinator.limits = limits
    commands = [c.Subscribe(line, "d", number, SUSHI, HERE, f"name {number}") for number in range(1, 8)]
    plans = planner.plan_batch(commands)
    assert [isinstance(plan, Plan) for plan in plans] == 5 * [True] + 2 * [False]
    assert {plan.reason for plan in plans[5:]} == {Reason.TOO_MANY}
    applied(coordinator, plans[:5])
    assert sorted(coordinator.sessions.get("d").handles) == [1, 2, 3, 4, 5]
    coordinator.check()


def test_of_one_name_there_is_one_subscription_a_batch(coordinator, planner):
    line = attached(coordinator, "d")
    one = c.Subscribe(line, "d", 1, SUSHI, HERE, "lunch")
    other = c.Subscribe(line, "d", 2, SUSHI, HERE, "lunch")
    plan, later = planner.plan_batch([one, other])
    assert later is LATER
    applied(coordinator, [plan])
    (refused,) = planner.plan_batch([other])
    assert refused.reason is Reason.SUBSCRIPTION_EXISTS
    end, again = c.Unsubscribe(line, "d", 1), c.Subscribe(line, "d", 3, SUSHI, HERE, "lunch")
    assert together(planner, end, again) == 1
    assert together(planner, replace(one, name="dinner"), again) == 1


def test_a_waiting_command_is_not_overtaken_by_its_device_or_publisher(coordinator, planner):
    line = attached(coordinator, "d")
    end, subscribe = c.Unsubscribe(line, "d", 1), c.Subscribe(line, "d", 2, SUSHI, HERE)
    shop = Principal("shop", frozenset({Role.PUBLISHER}))
    first, second, third = (replace(publish(key), principal=shop) for key in "aab")
    ping = c.Ping(line, "d", 1)
    found = planner.plan_batch([ping, first, end, second, subscribe, third, ping, publish("c"), c.Sync()])
    waits = [plan is LATER for plan in found]
    assert waits == [False, False, True, True, True, True, True, False, True]


def test_a_barrier_does_not_overtake_waiting_commands(planner):
    found = planner.plan_batch([publish("a"), publish("a", b"other"), c.Sync(), publish("b")])
    assert [plan is LATER for plan in found] == [False, True, True, True]
    found = planner.plan_batch([publish("a"), c.Sync(), publish("b")])
    assert [plan is LATER for plan in found] == [False, False, True], "and is the last of its batch"


def test_each_publisher_has_keys_of_its_own(coordinator, planner):
    shop, other = (Principal(name, frozenset({Role.PUBLISHER})) for name in ("shop", "other"))
    ops = Principal("ops", frozenset({Role.OPERATOR}))
    ((mine,),) = carried_out(coordinator, planner, replace(publish("a"), principal=shop))
    ((theirs,),) = carried_out(coordinator, planner, replace(publish("a"), principal=other))
    assert mine != theirs
    ((again,),) = carried_out(coordinator, planner, replace(publish("a"), principal=shop))
    assert again == mine
    (refused,) = planner.plan_batch([c.Retract((), ops, ("a",))])
    assert (refused.reason, refused.field) == (Reason.INVALID_FIELD, "keys[0]")
    assert f"2 publishers use it: give ids, such as {mine}, {theirs}" in refused.limit
    (refused,) = planner.plan_batch([c.Retract((), ops, ("b",))])
    assert refused.limit == "the key of a live object"
    (refused,) = planner.plan_batch([c.Retract((), shop, ("b",))])
    assert refused.limit == "the key of a live object that the caller has published"
    carried_out(coordinator, planner, c.Retract((), shop, ("a",)))
    assert list(coordinator.matching.objects) == [theirs]
    carried_out(coordinator, planner, c.Retract((), ops, ("a",)))
    assert not coordinator.matching.objects
    coordinator.check()


def test_equal_keys_of_two_publishers_share_a_batch(coordinator, planner):
    shop, other = (Principal(name, frozenset({Role.PUBLISHER})) for name in ("shop", "other"))
    ops = Principal("ops", frozenset({Role.OPERATOR}))
    of_shop, of_other = (replace(publish("a"), principal=one) for one in (shop, other))
    assert together(planner, of_shop, of_other, of_shop) == 2
    carried_out(coordinator, planner, of_shop)
    by_key, by_its_owner = c.Retract((), ops, ("a",)), c.Retract((), shop, ("a",))
    changed = replace(publish("a", b"other"), principal=shop)
    assert together(planner, of_other, by_key, of_other) == 2
    assert together(planner, of_other, by_its_owner) == 2
    for first in (by_key, by_its_owner):
        for second in (by_key, by_its_owner, of_shop, changed):
            assert together(planner, first, second) == together(planner, second, first) == 1
    coordinator.check()
