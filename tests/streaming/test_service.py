"""When a job divides itself again."""

import pytest

from streaming.metrics import JobMetrics
from streaming.parameters import ParameterError
from streaming.result.sink import Batch
from streaming.service import OVERLOADED_BATCHES, PAUSE_S, LoadWatch


def batch(*loads_us):
    return Batch(0, {}, list(loads_us))


class Clock:
    def __init__(self):
        self.now_s = 100.0

    def __call__(self):
        return self.now_s


OVERLOADED = batch(10_000, 10_000, 10_000, 60_000)
ALIKE = batch(20_000, 10_000, 15_000, 20_000)


def test_it_is_due_when_one_partition_takes_twice_the_mean_for_long():
    watch = LoadWatch("location")
    for _ in range(OVERLOADED_BATCHES - 1):
        watch.note(OVERLOADED)
    assert not watch.is_due()
    watch.note(OVERLOADED)
    assert watch.is_due()


def test_one_batch_between_restarts_the_count():
    watch = LoadWatch("prefix")
    for number in range(3 * OVERLOADED_BATCHES):
        watch.note(ALIKE if number % OVERLOADED_BATCHES == 0 else OVERLOADED)
    assert not watch.is_due()


@pytest.mark.parametrize("little", [batch(), batch(0, 0, 900), batch(1_000, 8_000)])
def test_batches_with_little_to_do_do_not_count(little):
    watch = LoadWatch("keyword")
    for _ in range(OVERLOADED_BATCHES):
        watch.note(little)
        watch.note(OVERLOADED)
    assert watch.is_due()
    again = LoadWatch("keyword")
    for _ in range(5 * OVERLOADED_BATCHES):
        again.note(little)
    assert not again.is_due()


def test_hashing_has_nothing_to_divide_by():
    watch = LoadWatch("hashing")
    for _ in range(2 * OVERLOADED_BATCHES):
        watch.note(OVERLOADED)
    assert not watch.is_due()


def test_it_is_done_once_an_hour_at_most():
    clock = Clock()
    watch = LoadWatch("location", clock)
    for _ in range(OVERLOADED_BATCHES):
        watch.note(OVERLOADED)
    assert watch.is_due()
    watch.note_rebalanced()
    for _ in range(OVERLOADED_BATCHES):
        watch.note(OVERLOADED)
    clock.now_s += PAUSE_S - 1.0
    assert not watch.is_due()
    clock.now_s += 1.0
    assert watch.is_due()


def test_a_request_waits_for_one_batch_only():
    watch = LoadWatch("prefix", Clock())
    watch.ask()
    assert not watch.is_due()
    watch.note(batch())
    assert watch.is_due()
    watch.note_rebalanced()
    watch.note(ALIKE)
    assert not watch.is_due()
    watch.ask()
    assert watch.is_due()


@pytest.mark.parametrize(("host", "is_taken"), [("127.0.0.1", True), ("nowhere.invalid", False)])
def test_a_port_that_cannot_be_had_is_named(host, is_taken):
    metrics = JobMetrics()
    with metrics.served(0, "127.0.0.1") as taken:
        port = taken if is_taken else 0
        with (
            pytest.raises(ParameterError, match=f"metrics port is {host}:{port}, must be"),
            metrics.served(port, host),
        ):
            pass


def test_a_port_of_an_ipv6_address_is_named_in_brackets():
    metrics = JobMetrics()
    with (
        metrics.served(0, "::1") as taken,
        pytest.raises(ParameterError, match=rf"metrics port is \[::1\]:{taken}, must be"),
        metrics.served(taken, "::1"),
    ):
        pass
