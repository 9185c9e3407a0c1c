"""How much one caller may ask for: operations, time of the event loop, open streams. O(1), no I/O.

One caller's calls, streams and devices share an account for as long as any of them is there. So a caller
cannot get more by calling more often. Time is charged as commands are estimated, and corrected by what
they took (`server/runtime/charges.py`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from weakref import WeakValueDictionary

from server.errors import Reason, RefusalError

BURST_S = 10.0
"""How many seconds' worth a caller may ask for at once after it has been quiet."""

_STREAM_RETRY_MS = 1_000
"""When to try again for a stream: one of the caller's own has to end first."""

_FIRST_ANSWER_BYTES = 4 * 1024 * 1024
"""What the first answer of a caller is taken to have."""

_US_PER_S = 1_000_000.0

_WINDOW_S = 10.0
"""Over how long the share of time is averaged that is shown."""


@dataclass(frozen=True, slots=True)
class Quota:
    """What an account allows.

    A call, a command of a device and an object published are an operation each.
    """

    operations_per_s: float = math.inf
    streams_max: float = math.inf
    time_share: float = math.inf
    """Of the time of the event loop; 1 or more is no limit."""
    calls_max: float = math.inf
    """Calls under way, beside streams."""
    weight: float = 1.0
    """How many turns it has for each one of a device, where several wait."""


class Bucket:
    """A token bucket. What is left may become negative by the last that was taken.

    Parameters
    ----------
    rate_per_s
        What comes in a second; infinity for no limit.
    clock
        Monotonic seconds.
    """

    __slots__ = ("_at_s", "_burst", "_clock", "_level", "is_limited", "rate_per_s")

    def __init__(self, rate_per_s: float, clock: Callable[[], float]) -> None:
        self.rate_per_s = rate_per_s
        self.is_limited = rate_per_s < math.inf
        self._clock = clock
        self._burst = max(1.0, rate_per_s * BURST_S)
        self._level = self._burst
        self._at_s = clock()

    def wait_s(self) -> float:
        """Return how many seconds it is too early to take anything; 0 if something is there."""
        if not self.is_limited:
            return 0.0
        self._fill(self._clock())
        return 0.0 if self._level >= 1.0 else (1.0 - self._level) / self.rate_per_s

    def take(self, count: float) -> None:
        """Take something, whatever was there a moment ago, when `wait_s` was called."""
        if self.is_limited:
            self._level -= count

    def charge(self, count: float, now_s: float) -> None:
        """Take something, whatever is there now; give back what is negative."""
        if self.is_limited:
            self._fill(now_s)
            self._level = min(self._burst, self._level - count)

    def _fill(self, now_s: float) -> None:
        """Add what has come until now. It is no more than the burst, however long nothing was taken."""
        self._level = min(self._burst, self._level + (now_s - self._at_s) * self.rate_per_s)
        self._at_s = now_s


class Account:
    """What one caller has used.

    Parameters
    ----------
    quota
        What it may use.
    clock
        Monotonic seconds.
    name
        Whose it is, as operators are shown it.
    tenant
        What its tenant has used; None if that is not counted.
    """

    __slots__ = (
        "__weakref__",
        "_before_us",
        "_operations",
        "_time",
        "_usage_us",
        "_window",
        "answer_bytes",
        "call_count",
        "is_limited",
        "name",
        "quota",
        "stream_count",
        "tenant",
        "unread_bytes",
        "used_us",
        "weight",
    )

    def __init__(
        self,
        quota: Quota,
        clock: Callable[[], float] = time.monotonic,
        name: str = "",
        tenant: Account | None = None,
    ) -> None:
        self.quota = quota
        self.name = name
        self.tenant = tenant
        self.weight = quota.weight
        self._operations = Bucket(quota.operations_per_s, clock)
        share = quota.time_share if quota.time_share < 1.0 else math.inf
        self._time = Bucket(share * _US_PER_S, clock)
        is_limited = self._operations.is_limited or self._time.is_limited
        self.is_limited: bool = is_limited or (tenant is not None and tenant.is_limited)
        self.stream_count = 0
        self.call_count = 0
        self.unread_bytes = 0
        """Of answers to calls that are not written yet."""
        self.answer_bytes = _FIRST_ANSWER_BYTES
        """Of the last one."""
        self.used_us = 0.0
        """Time of the event loop, in all."""
        self._window = 0.0
        self._usage_us = self._before_us = 0.0

    def take(self, count: int) -> float:
        """Take operations; return how many seconds it is too early, 0 if they were taken.

        What is left may become negative by the last that was taken, so that none is too large for ever.
        """
        if not self.is_limited:
            return 0.0
        wait_s = max(self._operations.wait_s(), self._time_wait_s())
        if not wait_s:
            self._operations.take(count)
        return wait_s

    def require(self, count: int) -> None:
        """Take operations.

        Raises
        ------
        RefusalError
            RATE_LIMITED, with when to try again.
        """
        if not self.is_limited:
            return
        wait_s = self._operations.wait_s()
        if wait_s:
            raise _too_early("operations", f"at most {self.quota.operations_per_s:g} a second", wait_s)
        wait_s = self._time_wait_s()
        if wait_s:
            share = self._scarcest().quota.time_share
            raise _too_early("time", f"at most {share:.1%} of the server's", wait_s)
        self._operations.take(count)

    def charge(self, cost_us: float, now_s: float) -> None:
        """Note time of the event loop that was, or will be, used; give back what is negative."""
        window = now_s // _WINDOW_S
        if window != self._window:
            self._before_us = self._usage_us if window == self._window + 1.0 else 0.0
            self._usage_us, self._window = 0.0, window
        self._usage_us += cost_us
        self.used_us += cost_us
        self._time.charge(cost_us, now_s)
        if self.tenant is not None:
            self.tenant.charge(cost_us, now_s)

    @property
    def lately_us(self) -> float:
        """Time of the event loop in the last seconds, ten at most."""
        return self._usage_us

    def share(self, now_s: float) -> float:
        """Return which share of the event loop's time was used lately."""
        self.charge(0.0, now_s)
        passed = now_s / _WINDOW_S - self._window
        return (self._usage_us + (1.0 - passed) * self._before_us) / (_WINDOW_S * _US_PER_S)

    def _time_wait_s(self) -> float:
        wait_s = self._time.wait_s()
        return wait_s if self.tenant is None else max(wait_s, self.tenant._time_wait_s())  # noqa: SLF001

    def _scarcest(self) -> Account:
        """Return whose time comes back last: this account, or its tenant's."""
        tenant = self.tenant
        if tenant is None or self._time.wait_s() >= tenant._time_wait_s():  # noqa: SLF001
            return self
        return tenant

    def begin_stream(self) -> None:
        """Note that a stream begins; `end_stream` is to be called.

        Raises
        ------
        RefusalError
            RATE_LIMITED, if there are too many.
        """
        if self.stream_count >= self.quota.streams_max:
            raise RefusalError(
                Reason.RATE_LIMITED,
                "streams",
                f"{self.stream_count + 1} of the caller",
                f"at most {self.quota.streams_max:g}",
                retry_after_ms=_STREAM_RETRY_MS,
            )
        self.stream_count += 1

    def end_stream(self) -> None:
        """Note that a stream has ended."""
        self.stream_count -= 1

    def begin_call(self) -> None:
        """Note that a call begins; `end_call` is to be called.

        Raises
        ------
        RefusalError
            RATE_LIMITED, if there are too many.
        """
        if self.call_count >= self.quota.calls_max:
            raise RefusalError(
                Reason.RATE_LIMITED,
                "calls",
                f"{self.call_count + 1} of the caller at once",
                f"at most {self.quota.calls_max:g}",
                retry_after_ms=_STREAM_RETRY_MS,
            )
        self.call_count += 1

    def end_call(self) -> None:
        """Note that a call has ended."""
        self.call_count -= 1


def _too_early(field: str, limit: str, wait_s: float) -> RefusalError:
    retry_after_ms = math.ceil(1000.0 * wait_s)
    return RefusalError(Reason.RATE_LIMITED, field, "too many", limit, retry_after_ms=retry_after_ms)


UNLIMITED = Account(Quota())
"""Shared by all who are not limited."""


class Accounts:
    """The accounts of callers by tenant and name, each for as long as somebody has it.

    Parameters
    ----------
    tenant_share
        Of the event loop's time, of each tenant.
    clock
        Monotonic seconds.
    """

    def __init__(
        self, tenant_share: float = math.inf, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._accounts: WeakValueDictionary[tuple[str, str, Quota], Account] = WeakValueDictionary()
        self._tenant_quota = Quota(time_share=tenant_share)
        self.tenants: dict[str, Account] = {}
        """Of the tenants that have called."""

    def account(self, tenant: str, name: str, quota: Quota) -> Account:
        """Return the account of a caller."""
        key = tenant, name, quota
        found = self._accounts.get(key)
        if found is None:
            shared = self.tenants.get(tenant)
            if shared is None:
                shared = self.tenants[tenant] = Account(self._tenant_quota, self._clock, tenant)
            found = self._accounts[key] = Account(quota, self._clock, name, shared)
        return found

    def all(self) -> list[Account]:
        """Return those that are there now."""
        return list(self._accounts.values())
