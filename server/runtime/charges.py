"""Charging callers: what a command is estimated to cost when it is taken on, and then what it took.

Operations: O(1) a command.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from server.commands.costs import Factor
from server.quotas import UNLIMITED
from server.runtime.command_queue import Entry

_NS_PER_US = 1_000


def now_us() -> float:
    """Return the time that this thread has computed: not what it has waited for others."""
    return time.thread_time_ns() / _NS_PER_US


class Charges:
    """Charges callers.

    Nobody can tell which command of a batch took how much of its time, so each bears the share that it
    was estimated to have.
    """

    def __init__(self) -> None:
        self.slices_long = 0
        """Slices of the event loop that took longer than they should."""

    def taken_on(self, entry: Entry) -> None:
        """Charge a command that waits now."""
        if entry.account is not UNLIMITED:
            entry.account.charge(entry.cost_us, time.monotonic())

    def carried_out(self, entries: Iterable[Entry], took_us: float, factor: Factor) -> None:
        """Correct what was charged for commands by what they took together."""
        charged = [entry for entry in entries if entry.cost_us]
        estimated_us = sum(entry.cost_us for entry in charged)
        factor.note(estimated_us, took_us)
        if estimated_us <= 0.0:
            return
        correction, now_s = took_us / estimated_us - 1.0, time.monotonic()
        for entry in charged:
            if entry.account is not UNLIMITED:
                entry.account.charge(correction * entry.cost_us, now_s)
