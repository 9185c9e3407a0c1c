"""Planning: what plans of one batch touch, and where a batch ends."""

from __future__ import annotations

import pytest

from safe_region.frame import Area, Frame
from server.commands import command as c
from server.commands.plan import apply
from server.commands.planner import Planner
from server.core.coordinator import Coordinator
from server.errors import RefusalError
from server.limits import Limits
from server.model import NewObject, TopK
from server.session import Outbox

FRAME = Frame.of(Area(14.0, 35.0, 15.0, 36.0))
SUSHI = TopK(("sushi",), 3, 0.5)


def publish(key: str, payload: bytes = b"") -> c.Publish:
    return c.Publish((NewObject(14.5, 35.5, ("sushi",), 60_000, payload, key),))


@pytest.fixture
def coordinator():
    return Coordinator(FRAME, Limits(), virtual_time=True)


@pytest.fixture
def planner(coordinator):
    return Planner(coordinator)


def carried_out(coordinator, planner, *commands):
    plans = planner.plan_batch(commands)
    assert len(plans) == len(commands)
    return apply(coordinator, plans)


@pytest.mark.parametrize("key", ["everything", "device", "1", "()", "keys"])
def test_no_key_of_a_publisher_closes_a_batch(planner, key):
    assert len(planner.plan_batch([publish(key), publish("other"), publish("third")])) == 3


def test_what_a_key_is_called_like_is_not_touched(coordinator, planner):
    """A device, an object and a key of one name have nothing to do with each other."""
    line = Outbox()
    ((object_id,), _) = carried_out(
        coordinator, planner, publish("1"), c.Hello(line, "1", b"n", 0, 14.5, 35.5)
    )
    assert object_id == 1
    commands = [
        c.Subscribe(line, "1", 1, SUSHI, 14.5, 35.5),
        c.Retract((object_id,)),
        publish("('device', '1')"),
    ]
    assert len(planner.plan_batch(commands)) == 3


def test_a_batch_ends_before_what_it_touches_already(coordinator, planner):
    line = Outbox()
    ((object_id,), _) = carried_out(
        coordinator, planner, publish("a"), c.Hello(line, "d", b"n", 0, 14.5, 35.5)
    )
    assert len(planner.plan_batch([publish("b"), publish("b", b"other")])) == 1
    assert len(planner.plan_batch([publish("a", b"other"), c.Retract((object_id,))])) == 1
    assert len(planner.plan_batch([c.Retract((object_id,)), publish("a", b"other")])) == 1
    subscribe = c.Subscribe(line, "d", 1, SUSHI, 14.5, 35.5)
    assert len(planner.plan_batch([subscribe, c.Ping(line, "d", 1)])) == 1
    assert len(planner.plan_batch([subscribe, c.Forget(("d",))])) == 1
    assert len(planner.plan_batch([c.AdvanceClock(1), publish("b")])) == 1


def test_what_is_published_again_is_not_taken_back_in_the_same_batch(coordinator, planner):
    """It would be answered with an id that is gone."""
    ((object_id,),) = carried_out(coordinator, planner, publish("a"))
    commands = [c.Retract((object_id,)), publish("a")]
    replies = []
    while len(replies) < len(commands):
        plans = planner.plan_batch(commands[len(replies) :])
        assert not any(isinstance(plan, RefusalError) for plan in plans)
        replies += apply(coordinator, plans)
    (again,) = replies[1]
    assert list(coordinator.matching.objects) == [again]
    coordinator.check()
