"""The meter of costs notices what holds others up, and nothing else; recipes make what they should."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz import cost_messages as messages
from tests.fuzz import cost_world, costs
from tests.fuzz.growth import Choices, grow
from tests.fuzz.recipes import field, joined, literal, message_of, nested, repeated

COSTLY = messages.costly()


@pytest.fixture(scope="module")
def meter():
    """A meter whose kernels are compiled."""
    return costs.Meter()


def spend(milliseconds):
    end_ns = time.thread_time_ns() + milliseconds * 1_000_000
    while time.thread_time_ns() < end_ns:
        pass


@given(st.binary(max_size=600), st.integers(0, 400))
def test_whatever_there_is_is_a_recipe(recipe, bytes_max):
    assert len(message_of(recipe, bytes_max)) <= bytes_max


@given(st.binary(max_size=700))
def test_a_literal_is_itself(content):
    assert message_of(literal(content), 1_000) == content


def test_a_recipe_repeats_nests_and_joins():
    recipe = nested(3, repeated(joined(literal(b"a"), literal(b"bc")), 200), literal(b"d"))
    assert message_of(recipe, 10_000) == field(3, 200 * b"abc" + b"d")
    assert field(3, 600 * b"a")[:3] == b"\x1a\xd8\x04"


def test_fields_become_long_wherever_they_are():
    """Bytes choose field 2 of a report within its request, then the list of ids, then 3 << 4 times 1."""
    message = messages.report([5])
    grow(message, Choices(bytes([3, 2, 1, 2, 4])))
    assert list(message.report.subscription_ids) == [5] + 48 * [1]
    fleet = messages.device_service_pb2.AttachFleetRequest()
    grow(fleet, Choices(bytes([0, 0, 0, 10])))
    assert len(fleet.entries) == 1 + 1024
    grow(fleet, Choices(bytes([0, 1, 0, 0, 5, 3])))
    assert fleet.entries[0].device_id == 48 * "a"


@settings(deadline=None, max_examples=50)
@given(st.binary(min_size=1, max_size=40))
def test_whatever_there_is_is_a_message_of_its_kind(data):
    kind, found = costs.sent(data)
    assert kind in cost_world.KINDS
    assert len(found) <= cost_world.KINDS[kind].bytes_max + 1


@pytest.fixture
def idle(monkeypatch):
    """A machine that takes as long as an idle one."""
    monkeypatch.setattr(costs, "slowness", lambda: 1.0)


@pytest.mark.usefixtures("idle")
def test_a_message_that_takes_too_long_is_found(meter, monkeypatch):
    monkeypatch.setattr(cost_world, "request_of", lambda *_: spend(8) or messages.hello())
    with pytest.raises(AssertionError, match=r"kind 0, 1 bytes: .* ms of 5\.0"):
        meter.check(messages.HELLO, b"x")


@pytest.mark.usefixtures("idle")
def test_a_run_that_takes_too_long_once_is_not_found(meter, monkeypatch):
    spent = iter([8, 8, 8, 0])
    monkeypatch.setattr(cost_world, "request_of", lambda *_: spend(next(spent)) or messages.hello())
    meter.check(messages.HELLO, b"x")
    assert next(spent, None) is None


@pytest.mark.processes
def test_a_slow_input_is_measured_again_in_another_process(monkeypatch):
    """In this process everything takes long, as if it was followed."""
    run, judge = costs.make(), costs.Judge(cost_ms_max=0.0)
    monkeypatch.setattr(cost_world, "request_of", lambda *_: spend(8) or messages.hello())
    for seed in messages.seeds()[:3]:
        run(seed)
    for _ in range(2):
        with pytest.raises(AssertionError, match=r"kind 0, 28 bytes: .* ms of 0\.0"):
            judge.check(messages.seeds()[0])
    judge.close()


def test_a_slow_machine_raises_the_cost_limit(meter, monkeypatch):
    monkeypatch.setattr(costs, "slowness", lambda: 8.0)
    monkeypatch.setattr(cost_world, "request_of", lambda *_: spend(8) or messages.hello())
    meter.check(messages.HELLO, b"x")


def test_the_cost_limit_of_a_message_grows_with_its_charge(meter):
    for count, allowed_ms in ((1, 5.0), (101, 15.0), (1_000, 50.0)):
        data = messages.publication(count).SerializeToString()
        assert meter.cost_ms(messages.PUBLISH, data)[1] == pytest.approx(allowed_ms)


def test_the_same_message_finds_the_same_world_again(meter):
    report = messages.report(range(1, 9)).SerializeToString()
    removed = messages.unsubscribe(3).SerializeToString()
    retract = messages.publisher_service_pb2.RetractRequest(ids=[1]).SerializeToString()
    for kind, data in (
        (messages.DEVICE, report),
        (messages.DEVICE, removed),
        (messages.RETRACT, retract),
    ):
        for _ in range(3):
            meter.cost_ms(kind, data)
            assert meter._world.operation_count == 1
    meter.cost_ms(messages.SEARCH, b"")
    meter._world.coordinator.check()


@pytest.mark.parametrize("seed", messages.seeds(), ids=bytes.hex)
def test_valid_inputs_cost_little(meter, seed):
    meter.check(*costs.sent(seed))


def test_growing_inputs_cost_little(meter):
    chance = random.Random(1)
    for number in range(200):
        kind = len(cost_world.KINDS) + number % len(cost_world.KINDS)
        meter.check(*costs.sent(bytes([kind]) + chance.randbytes(20)))


@pytest.mark.parametrize("name", COSTLY)
def test_inputs_that_blocked_others_do_so_no_more(meter, name):
    meter.check(*costs.sent(COSTLY[name]))
