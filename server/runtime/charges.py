"""Charges to callers: the estimated cost when a command is queued, then the actual one.

Operations: O(1) per command.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterable
from operator import itemgetter

from identity.quotas import UNLIMITED, Account
from server.commands.costs import Factor
from server.runtime.command_queue import Entry

_HEAVY_US = 5_000.0
_HEAVY_MAX = 64
"""The recent use from which a caller is reported to operators, and the maximum number of such callers."""


class Charges:
    """Charges callers.

    The time of a single command in a batch is not known, so each command is charged in proportion to its
    estimate.

    Parameters
    ----------
    clock
        Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._heavy: dict[Account, None] = {}
        """The known callers with much use: the latest that were charged for it."""

    def heaviest(self, now_s: float, count: int) -> list[tuple[float, Account]]:
        """Return the callers that have used most time lately, with their shares, largest first."""
        found = ((one.share(now_s), one) for one in self._heavy)
        return heapq.nlargest(count, (one for one in found if one[0] > 0.0), key=itemgetter(0))

    def taken_on(self, entry: Entry) -> None:
        """Charge the estimated cost of a command that was queued."""
        if entry.account is not UNLIMITED:
            self._charge(entry.account, entry.cost_us, self._clock())

    def carried_out(
        self,
        entries: Iterable[Entry],
        took_us: float,
        factor: Factor | None = None,
        commit_us: float = 0.0,
    ) -> None:
        """Correct the charges of commands by the time that they took together, and update the factor.

        Parameters
        ----------
        entries
            The commands.
        took_us
            Time of the event loop.
        factor
            The factor of the estimates.
        commit_us
            CPU time of the thread that made them durable. It is charged, too: the loop waits for the
            interpreter meanwhile.
        """
        charged = [entry for entry in entries if entry.cost_us]
        estimated_us = sum(entry.cost_us for entry in charged)
        if factor is not None:
            factor.note(estimated_us, took_us)
        if estimated_us <= 0.0:
            return
        correction, now_s = (took_us + commit_us) / estimated_us - 1.0, self._clock()
        for entry in charged:
            if entry.account is not UNLIMITED:
                self._charge(entry.account, correction * entry.cost_us, now_s)

    def carried(self, account: Account, cost_us: float) -> None:
        """Charge a caller for reading its stream, writing to it, or computing for it, in microseconds."""
        if account is not UNLIMITED:
            self._charge(account, cost_us, self._clock())

    def _charge(self, account: Account, cost_us: float, now_s: float) -> None:
        account.charge(cost_us, now_s)
        if account.lately_us > _HEAVY_US and account not in self._heavy:
            if len(self._heavy) >= _HEAVY_MAX:
                del self._heavy[min(self._heavy, key=lambda one: one.share(now_s))]
            self._heavy[account] = None
