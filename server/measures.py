"""The measurements of the server: durations, and the sizes of batches.

`server.counters` has the numbers of events. The code of each event records it here. `named` gives the
names of `ControlService.Status`, whose endings are units: `_us` and `_ms`; others are numbers.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, fields

from server.distribution import Classes, Distribution

_NS_PER_US = 1_000


def now_us() -> int:
    """Return the microseconds of a clock that never jumps, for durations."""
    return time.perf_counter_ns() // _NS_PER_US


def cpu_us() -> float:
    """Return the CPU time of this thread in microseconds, without the time it has waited."""
    return time.thread_time_ns() / _NS_PER_US


def _of_us() -> Distribution:
    """Return a distribution from 64 us to 17 s."""
    return Distribution(6, 24)


def _of_ms() -> Distribution:
    """Return a distribution from 1 ms to 65 s."""
    return Distribution(0, 16)


def _of_numbers() -> Distribution:
    """Return a distribution from 1 to 16,383."""
    return Distribution(1, 14)


@dataclass(slots=True)
class Measures:
    """Distributions since the server started."""

    report_latency_us: Distribution = field(default_factory=_of_us)
    """Time from reading a report until its response was written: for one at a time on each stream."""
    delta_delay_ms: Distribution = field(default_factory=_of_ms)
    """Time that each written delta had waited in its outbox."""
    publication_us: Distribution = field(default_factory=_of_us)
    """Time from reading a publish request until its objects were on disk and matched."""
    commit_us: Distribution = field(default_factory=_of_us)
    """Duration of a commit of the store."""
    commit_rows: Distribution = field(default_factory=_of_numbers)
    """Mutations per commit, including those that no command waits for."""
    retrieval_us: Distribution = field(default_factory=_of_us)
    """Time that a thread took to look up objects for a batch of evaluations."""
    slice_us: Distribution = field(default_factory=_of_us)
    """CPU time of an uninterrupted slice of the event loop for commands, without waits."""
    evaluation_us: Distribution = field(default_factory=_of_us)
    """Time that a batch of evaluations took on the event loop."""
    evaluation_subscriptions: Distribution = field(default_factory=_of_numbers)
    """Number of subscriptions in a batch of evaluations."""

    def named(self) -> dict[str, Classes]:
        """Return all distributions, by name."""
        return {one.name: getattr(self, one.name).classes() for one in fields(self)}


class timed:  # noqa: N801 - it is used as a function is
    """Record how long a block takes, whether or not it fails.

    It is a class, since a generator would take three times as long.
    """

    __slots__ = ("_began_us", "_distribution")

    def __init__(self, distribution: Distribution) -> None:
        self._distribution = distribution

    def __enter__(self) -> None:
        self._began_us = now_us()

    def __exit__(self, *_error: object) -> None:
        self._distribution.note(now_us() - self._began_us)


class SliceTimer:
    """Measures the CPU time of slices of a thread, between its pauses. The first slice starts at once.

    Parameters
    ----------
    distribution
        Receives the time of each slice.
    """

    __slots__ = ("_began_ns", "_distribution", "_total_ns")

    def __init__(self, distribution: Distribution) -> None:
        self._distribution = distribution
        self._total_ns = 0
        self._began_ns = time.thread_time_ns()

    def resume(self) -> None:
        """Start another slice."""
        self._began_ns = time.thread_time_ns()

    def pause(self) -> None:
        """Record the present slice."""
        took_ns = time.thread_time_ns() - self._began_ns
        self._total_ns += took_ns
        self._distribution.note(took_ns // _NS_PER_US)

    @property
    def total_us(self) -> float:
        """The sum of all recorded slices, in microseconds."""
        return self._total_ns / _NS_PER_US
