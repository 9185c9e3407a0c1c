"""Work that is done ahead: in order, bounded, and errors come through."""

from __future__ import annotations

import threading
import time

import pytest

from index.tables.threads import ahead_of


@pytest.mark.parametrize("count", [0, 1, 2, 50])
def test_results_come_in_order(count):
    def work(number):
        time.sleep(0.001 * (number % 3))
        return number * number

    assert list(ahead_of(range(count), work)) == [number * number for number in range(count)]


def test_only_a_few_parts_wait():
    done = []

    def work(number):
        done.append(number)
        return number

    results = ahead_of(range(1_000), work)
    next(results)
    time.sleep(0.05)
    assert len(done) < 500
    assert sum(results) == sum(range(1, 1_000))


def test_one_part_needs_no_thread():
    assert list(ahead_of([1], lambda _: threading.current_thread())) == [threading.main_thread()]


def test_an_error_is_the_callers():
    def work(number):
        if number == 3:
            raise ValueError("three")
        return number

    with pytest.raises(ValueError, match="three"):
        list(ahead_of(range(10), work))
