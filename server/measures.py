"""What the server measures: how long things take, and how much is done at once.

Beside `server.counters`, which has how often. Whoever does something notes it here. `named` gives the
names of `ControlService.Status`, whose endings are units: `_us` and `_ms`; others are numbers.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, fields

from server.distribution import Classes, Distribution

_NS_PER_US = 1_000


def now_us() -> int:
    """Microseconds of a clock that never jumps, for durations."""
    return time.perf_counter_ns() // _NS_PER_US


def cpu_us() -> float:
    """Microseconds that this thread has computed: not what it has waited for others."""
    return time.thread_time_ns() / _NS_PER_US


def _of_us() -> Distribution:
    """From 64 us to 17 s."""
    return Distribution(6, 24)


def _of_ms() -> Distribution:
    """From 1 ms to 65 s."""
    return Distribution(0, 16)


def _of_numbers() -> Distribution:
    """From 1 to 16,383."""
    return Distribution(1, 14)


@dataclass(slots=True)
class Measures:
    """Distributions since the server began."""

    report_latency_us: Distribution = field(default_factory=_of_us)
    """From when a report was read until its answer was written: of one at a time on each stream."""
    delta_delay_ms: Distribution = field(default_factory=_of_ms)
    """How long each delta that was written had waited in its outbox."""
    publication_us: Distribution = field(default_factory=_of_us)
    """From when a publish request was read until what it publishes was on disk and matched."""
    commit_us: Distribution = field(default_factory=_of_us)
    """How long a commit of the store took."""
    commit_rows: Distribution = field(default_factory=_of_numbers)
    """How many mutations it wrote, those that nobody waits for included."""
    retrieval_us: Distribution = field(default_factory=_of_us)
    """How long a thread looked objects up for a batch of evaluations."""
    slice_us: Distribution = field(default_factory=_of_us)
    """How long the event loop computed at a stretch for commands, not counting what it waited for."""
    evaluation_us: Distribution = field(default_factory=_of_us)
    """How long a batch of evaluations took on the event loop."""
    evaluation_subscriptions: Distribution = field(default_factory=_of_numbers)
    """How many subscriptions it evaluated."""

    def named(self) -> dict[str, Classes]:
        """Return all of them, by name."""
        return {one.name: getattr(self, one.name).classes() for one in fields(self)}


class timed:  # noqa: N801 - used as a function is
    """Note how long a block takes, whether or not it fails.

    A class: a generator would take three times as long.
    """

    __slots__ = ("_began_us", "_distribution")

    def __init__(self, distribution: Distribution) -> None:
        self._distribution = distribution

    def __enter__(self) -> None:
        self._began_us = now_us()

    def __exit__(self, *_error: object) -> None:
        self._distribution.note(now_us() - self._began_us)


class SliceTimer:
    """Measures what a thread computes at a stretch, between its pauses. It begins when it is made.

    Parameters
    ----------
    distribution
        Where each is noted.
    """

    __slots__ = ("_began_ns", "_distribution", "_total_ns")

    def __init__(self, distribution: Distribution) -> None:
        self._distribution = distribution
        self._total_ns = 0
        self._began_ns = time.thread_time_ns()

    def resume(self) -> None:
        """Begin another one."""
        self._began_ns = time.thread_time_ns()

    def pause(self) -> None:
        """Note the present one."""
        took_ns = time.thread_time_ns() - self._began_ns
        self._total_ns += took_ns
        self._distribution.note(took_ns // _NS_PER_US)

    @property
    def total_us(self) -> float:
        """All that were noted, in microseconds."""
        return self._total_ns / _NS_PER_US
