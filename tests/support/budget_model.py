"""Budgets as plain models: what accounts may have, from the definitions, with nothing put off."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

BURST_S = 10.0
PACE_BURST_S = 0.1
PACE_WAIT_S = 1.0
WINDOW_S = 10.0
US_PER_S = 1e6
NEAR = 1e-6
"""So close to what is needed, rounding decides."""


@dataclass
class Bucket:
    """A bucket that is filled at each step of time, and never has more than it holds."""

    rate_per_s: float
    burst_s: float = BURST_S
    level: float = field(init=False)

    def __post_init__(self) -> None:
        self.level = self.holds

    @property
    def holds(self) -> float:
        return max(1.0, self.burst_s * self.rate_per_s)

    def set_rate(self, rate_per_s: float) -> None:
        """Change the rate: without a limit before, it is full."""
        level = self.level if self.rate_per_s < math.inf else math.inf
        self.rate_per_s = rate_per_s
        self.level = min(level, self.holds)

    def pass_time(self, passed_s: float) -> None:
        if self.rate_per_s < math.inf:
            self.level = min(self.holds, self.level + passed_s * self.rate_per_s)

    def take(self, count: float) -> None:
        self.level = min(self.holds, self.level - count)

    @property
    def wait_s(self) -> float:
        return 0.0 if self.level >= 1.0 else (1.0 - self.level) / self.rate_per_s

    @property
    def is_near(self) -> bool:
        return abs(self.level - 1.0) < NEAR


class Account:
    """What a caller or a tenant has used.

    Parameters
    ----------
    operations_per_s, time_share
        What it may use.
    tenant
        The account that its tenant's callers share, which is charged as well.
    """

    def __init__(self, operations_per_s: float, time_share: float, tenant: Account | None = None) -> None:
        self.tenant = tenant
        self.operations = Bucket(operations_per_s)
        self.time = Bucket(time_share * US_PER_S if time_share < 1.0 else math.inf)
        self.pace = Bucket(math.inf, PACE_BURST_S)
        self.used_us = 0.0
        self.windows_us: dict[int, float] = {}
        """What was charged in each ten seconds of the clock."""
        self.stream_count = self.call_count = self.unread_bytes = 0

    @property
    def time_buckets(self) -> list[Bucket]:
        return [self.time, *(self.tenant.time_buckets if self.tenant else ())]

    @property
    def wait_s(self) -> float:
        return max(one.wait_s for one in (self.operations, *self.time_buckets))

    @property
    def is_near(self) -> bool:
        return any(one.is_near for one in (self.operations, *self.time_buckets))

    @property
    def pace_wait_s(self) -> float:
        return min(self.tenant.pace.wait_s, PACE_WAIT_S) if self.tenant else 0.0

    @property
    def refused_field(self) -> str:
        """What there is too little of; empty if there is enough."""
        if self.operations.wait_s:
            return "operations"
        return "time" if any(one.wait_s for one in self.time_buckets) else ""

    def pass_time(self, passed_s: float) -> None:
        self.operations.pass_time(passed_s)
        self.time.pass_time(passed_s)
        self.pace.pass_time(passed_s)

    def charge(self, cost_us: float, now_s: float) -> None:
        window = int(now_s // WINDOW_S)
        self.windows_us[window] = self.windows_us.get(window, 0.0) + cost_us
        self.used_us += cost_us
        self.time.take(cost_us)
        self.pace.take(cost_us)
        if self.tenant is not None:
            self.tenant.charge(cost_us, now_s)

    def lately_us(self, now_s: float) -> float:
        return self.windows_us.get(int(now_s // WINDOW_S), 0.0)

    def share(self, now_s: float) -> float:
        """Return the share of time of the present ten seconds, and of the rest of ten those before."""
        window = int(now_s // WINDOW_S)
        rest = 1.0 - (now_s / WINDOW_S - window)
        used_us = self.windows_us.get(window, 0.0) + rest * self.windows_us.get(window - 1, 0.0)
        return used_us / (WINDOW_S * US_PER_S)


class Heavy:
    """Accounts that use much: so many, and the one that has used least lately gives way to a new one.

    Parameters
    ----------
    count_max
        How many.
    used_us
        What one has used lately that uses much.
    """

    def __init__(self, count_max: int, used_us: float) -> None:
        self._count_max = count_max
        self._used_us = used_us
        self.accounts: list[Account] = []

    def charged(self, account: Account, now_s: float) -> None:
        if account in self.accounts or account.lately_us(now_s) <= self._used_us:
            return
        if len(self.accounts) == self._count_max:
            least = min(self.accounts, key=lambda one: one.share(now_s))
            self.accounts.remove(least)
        self.accounts.append(account)

    def shares(self, now_s: float) -> list[float]:
        found = [one.share(now_s) for one in self.accounts]
        return sorted((share for share in found if share > 0.0), reverse=True)
