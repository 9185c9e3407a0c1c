"""Fair shares: a tenant that uses more of the server than others is slowed down while they wait.

Turns (`server/runtime/turns.py`) divide time among callers with waiting commands. A caller with one
request in progress has nothing waiting while the response is in transit, so turns alone leave the server
to the tenant that sends most. Therefore the server measures, ten times a second, how long commands have
waited. While the commands of all other tenants wait too long on average, a tenant that uses more time
than the median tenant gets a *pace*, a maximum share of the time of the event loop. In each such period
the pace decreases, but not below the mean share of all tenants. In other periods it increases, until it
is no limit. A tenant that is ahead of its pace is read more slowly, and nothing is refused.

Operations: O(1) per command; O(tenants) ten times a second, once a second while nobody uses the server.
"""

from __future__ import annotations

import asyncio
import enum
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from identity.quotas import Account

_PERIOD_S = 0.1

_IDLE_S = 1.0
"""Maximum time between two periods while nobody uses the server. Ten updates a second were a fifth of the
time of a server in which objects only expired."""

_SMOOTHING = 0.2
"""Weight of a period in the use of a tenant."""

_TOLERANCE = 1.25
"""How far a tenant may exceed the median before it gets a pace: the use of equal tenants varies."""

_FALL, _RISE = 0.75, 1.05
"""Factors of a pace in a period in which others wait too long, and in one in which they do not."""

_ACTIVE_SHARE = 0.002
"""Use from which a tenant counts in median and mean: 2 ms per second."""


class Lane(enum.IntEnum):
    """The lanes of the command queue."""

    VOLATILE = 0
    DURABLE = 1


_WAIT_MAX_S = {Lane.VOLATILE: 0.002, Lane.DURABLE: 0.005}
"""Mean waits in the queue that are not too long, in seconds; a durable command may also wait for the disk
to finish two commits."""


class Waited(Protocol):
    """A command that was taken from the queue."""

    account: Account
    queued_s: float


class _Waits:
    """Sums of waits in a period, and the numbers of commands, by lane."""

    __slots__ = ("counts", "sums_s")

    def __init__(self) -> None:
        self.sums_s = [0.0] * len(Lane)
        self.counts = [0] * len(Lane)


class _Use:
    """The smoothed use of a tenant, its pace, and the waits of its commands in this period."""

    __slots__ = ("pace", "share", "used_us", "waits")

    def __init__(self, used_us: float) -> None:
        self.used_us = used_us
        self.share = 0.0
        self.pace = math.inf
        self.waits = _Waits()


class FairShares:
    """Paces tenants.

    Parameters
    ----------
    tenants
        The accounts of all tenants; a view, to which tenants are added.
    clock
        Monotonic seconds.
    """

    def __init__(
        self, tenants: Mapping[str, Account], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._tenants = tenants
        self._clock = clock
        self._updated_s = clock()
        self._uses: dict[Account, _Use] = {}
        self._commit_s = 0.0
        self._is_idle = False
        """Whether no tenant has used a noteworthy share lately, and none has a pace."""
        self._in_use = asyncio.Event()

    @property
    def paces(self) -> dict[str, float]:
        """The maximum shares of the tenants that have a pace now, by name."""
        return {account.name: use.pace for account, use in self._uses.items() if use.pace < math.inf}

    def taken(self, lane: Lane, entries: Sequence[Waited]) -> None:
        """Record the waits of commands that were taken from a lane. O(1) per command."""
        if self._is_idle and entries:
            self._in_use.set()
        if len(self._uses) <= 1:
            return
        now_s = self._clock()
        for entry in entries:
            tenant = entry.account.tenant
            use = None if tenant is None else self._uses.get(tenant)
            if use is not None:
                use.waits.sums_s[lane] += now_s - entry.queued_s
                use.waits.counts[lane] += 1

    def committed(self, took_s: float) -> None:
        """Record the duration of a commit.

        The shortest ones show how long the disk takes, for which no caller is responsible.
        """
        self._commit_s = min(took_s, _RISE * self._commit_s) or took_s

    async def run(self) -> None:
        """Update paces, without end."""
        while True:
            if not self._is_idle or await self._is_used_within(_IDLE_S):
                await asyncio.sleep(_PERIOD_S)
            self.update()

    async def _is_used_within(self, period_s: float) -> bool:
        """Wait until a command is taken, at most for a period; return whether one was."""
        loop = asyncio.get_running_loop()
        self._in_use.clear()
        timer = loop.call_later(period_s, self._in_use.set)
        await self._in_use.wait()
        timer.cancel()
        return loop.time() < timer.when()

    def update(self) -> None:
        """End a period: measure the use of each tenant, and set its pace."""
        now_s = self._clock()
        passed_s, self._updated_s = max(now_s - self._updated_s, 1e-6), now_s
        for account in self._tenants.values():
            use = self._uses.setdefault(account, _Use(account.used_us))
            share = (account.used_us - use.used_us) / (1e6 * passed_s)
            use.used_us = account.used_us
            use.share += _SMOOTHING * (share - use.share)
        active = [use.share for use in self._uses.values() if use.share > _ACTIVE_SHARE] or [math.inf]
        median, mean = statistics.median(active), statistics.fmean(active)
        for account, use in self._uses.items():
            pace = use.pace
            if use.share > _TOLERANCE * median and self._others_wait(use):
                pace = max(_FALL * min(pace, use.share), mean)
            elif pace < math.inf:
                pace *= _RISE
            if pace >= 1.0:
                pace = math.inf
            if pace != use.pace:
                use.pace = pace
                account.set_pace(pace)
        for use in self._uses.values():
            use.waits = _Waits()
        self._is_idle = median == math.inf and not self.paces

    def _others_wait(self, own: _Use) -> bool:
        """Return whether the commands of other tenants have waited too long on average."""
        others = [use.waits for use in self._uses.values() if use is not own]
        for lane, max_s in _WAIT_MAX_S.items():
            count = sum(one.counts[lane] for one in others)
            disk_s = 2.0 * self._commit_s if lane is Lane.DURABLE else 0.0
            if count and sum(one.sums_s[lane] for one in others) / count > max_s + disk_s:
                return True
        return False
