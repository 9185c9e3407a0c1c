"""Charging callers: what a command is estimated to cost when it is taken on, and then what it took.

Operations: O(1) a command.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterable
from operator import itemgetter

from server.commands.costs import Factor
from server.quotas import UNLIMITED, Account
from server.runtime.command_queue import Entry

_HEAVY_US = 5_000.0
_HEAVY_MAX = 64
"""Callers of whom operators are told: who has used as much in some seconds, and how many at most."""


class Charges:
    """Charges callers.

    Nobody can tell which command of a batch took how much of its time, so each bears the share that it
    was estimated to have.

    Parameters
    ----------
    clock
        Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._heavy: dict[Account, None] = {}
        """Callers that use much, as far as is known: the last of so many that were charged for it."""

    def heaviest(self, now_s: float, count: int) -> list[tuple[float, Account]]:
        """Return which callers have used most time lately, with their shares, most first."""
        found = ((one.share(now_s), one) for one in self._heavy)
        return heapq.nlargest(count, (one for one in found if one[0] > 0.0), key=itemgetter(0))

    def taken_on(self, entry: Entry) -> None:
        """Charge a command that waits now."""
        if entry.account is not UNLIMITED:
            self._charge(entry.account, entry.cost_us, self._clock())

    def carried_out(self, entries: Iterable[Entry], took_us: float, factor: Factor | None = None) -> None:
        """Correct what was charged for commands by what they took together; let estimates follow it."""
        charged = [entry for entry in entries if entry.cost_us]
        estimated_us = sum(entry.cost_us for entry in charged)
        if factor is not None:
            factor.note(estimated_us, took_us)
        if estimated_us <= 0.0:
            return
        correction, now_s = took_us / estimated_us - 1.0, self._clock()
        for entry in charged:
            if entry.account is not UNLIMITED:
                self._charge(entry.account, correction * entry.cost_us, now_s)

    def carried(self, account: Account, cost_us: float) -> None:
        """Charge a caller for what was read of its stream, or written to it."""
        if account is not UNLIMITED:
            self._charge(account, cost_us, self._clock())

    def _charge(self, account: Account, cost_us: float, now_s: float) -> None:
        account.charge(cost_us, now_s)
        if account.lately_us > _HEAVY_US and account not in self._heavy:
            if len(self._heavy) >= _HEAVY_MAX:
                del self._heavy[min(self._heavy, key=lambda one: one.share(now_s))]
            self._heavy[account] = None
