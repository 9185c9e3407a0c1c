"""Quotas of one caller: operations, time of the event loop, open streams. O(1) a request.

One caller's calls, streams and devices share an account for as long as any of them exists. So a caller
cannot get more by opening more calls. Time is charged by the estimates of commands, and corrected by the
measured time (`server/runtime/charges.py`).
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from weakref import WeakValueDictionary

from nearcast.errors import Reason, RefusedError

BURST_S = 10.0
"""Seconds of its rate that a caller may use at once after a quiet period."""

_PACE_BURST_S = 0.1
"""The same for its pace, in which others wait."""

_PACE_WAIT_S = 1.0
"""The longest time that a caller waits for its pace at once: the pace may have changed."""

_STREAM_RETRY_MS = 1_000
"""When to retry a stream: one of the caller's own has to end first."""

_FIRST_ANSWER_BYTES = 64 * 1024
"""Assumed size in bytes of the first response to a caller, until it is known."""

_US_PER_S = 1_000_000.0

_WINDOW_S = 10.0
"""Period over which the reported share of time is averaged."""


@dataclass(frozen=True, slots=True)
class Quota:
    """The quotas of an account.

    A call, a command of a device and a published object are an operation each.
    """

    operations_per_s: float = math.inf
    streams_max: float = math.inf
    time_share: float = math.inf
    """Share of the time of the event loop; 1 or more is no limit."""
    calls_max: float = math.inf
    """Maximum number of calls in progress, besides streams."""
    weight: float = 1.0
    """Number of turns for each one of a device, when several callers wait."""


class Bucket:
    """A token bucket. Its level may become negative by the last tokens taken.

    Parameters
    ----------
    rate_per_s
        Tokens added per second; infinity for no limit.
    clock
        Monotonic seconds.
    burst_s
        Seconds of the rate that may be used at once.
    """

    __slots__ = ("_at_s", "_burst", "_burst_s", "_clock", "_level", "is_limited", "rate_per_s")

    def __init__(self, rate_per_s: float, clock: Callable[[], float], burst_s: float) -> None:
        self._clock = clock
        self._burst_s = burst_s
        self._at_s = clock()
        self.is_limited = False
        self.set_rate(rate_per_s)

    def set_rate(self, rate_per_s: float) -> None:
        """Change the rate. A bucket that had no limit becomes full; another one keeps its debt."""
        if self.is_limited:
            self._fill(self._clock())
        else:
            self._level, self._at_s = math.inf, self._clock()
        self.rate_per_s = rate_per_s
        self.is_limited = rate_per_s < math.inf
        self._burst = max(1.0, rate_per_s * self._burst_s)
        self._level = min(self._level, self._burst)

    def wait_s(self) -> float:
        """Return how many seconds to wait until a token is available; 0 if one is."""
        if not self.is_limited:
            return 0.0
        self._fill(self._clock())
        return 0.0 if self._level >= 1.0 else (1.0 - self._level) / self.rate_per_s

    def take(self, count: float) -> None:
        """Take tokens without an update of the level; the caller has called `wait_s`."""
        if self.is_limited:
            self._level -= count

    def charge(self, count: float, now_s: float) -> None:
        """Update the level and take tokens, whatever the level is; a negative count adds tokens."""
        if self.is_limited:
            self._fill(now_s)
            self._level = min(self._burst, self._level - count)

    def _fill(self, now_s: float) -> None:
        """Add the tokens up to now. The level never exceeds the burst."""
        self._level = min(self._burst, self._level + (now_s - self._at_s) * self.rate_per_s)
        self._at_s = now_s


class Account:
    """The use of one caller.

    Parameters
    ----------
    quota
        The caller's quotas.
    clock
        Monotonic seconds.
    name
        The name of the caller, as operators see it.
    tenant
        The account of its tenant; None if that is not counted.
    """

    __slots__ = (
        "__weakref__",
        "_before_us",
        "_operations",
        "_pace",
        "_time",
        "_usage_us",
        "_window",
        "answer_bytes",
        "call_count",
        "is_limited",
        "name",
        "quota",
        "received_bytes",
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
        self._operations = Bucket(quota.operations_per_s, clock, BURST_S)
        share = quota.time_share if quota.time_share < 1.0 else math.inf
        self._time = Bucket(share * _US_PER_S, clock, BURST_S)
        self._pace = Bucket(math.inf, clock, _PACE_BURST_S)
        is_limited = self._operations.is_limited or self._time.is_limited
        self.is_limited: bool = is_limited or (tenant is not None and tenant.is_limited)
        self.stream_count = 0
        self.call_count = 0
        self.unread_bytes = 0
        """Bytes of responses to calls that are not written yet."""
        self.received_bytes = 0
        """Bytes of requests to publish that were read and have no result yet."""
        self.answer_bytes = _FIRST_ANSWER_BYTES
        """Bytes of the last response."""
        self.used_us = 0.0
        """Time of the event loop in total, in microseconds."""
        self._window = 0.0
        self._usage_us = self._before_us = 0.0

    def take(self, count: int) -> float:
        """Take operations; return how many seconds it is too early, 0 if they were taken.

        The level may become negative by the last operations, so that no request is too large for ever.
        """
        if not self.is_limited:
            return 0.0
        wait_s = max(self._operations.wait_s(), self._time_wait_s(), self.pace_wait_s())
        if not wait_s:
            self._operations.take(count)
        return wait_s

    async def acquire(self, count: int) -> None:
        """Wait until the caller may have operations, and take them: a stream is read at its rate."""
        while wait_s := self.take(count):  # noqa: ASYNC110 - time has no event
            await asyncio.sleep(wait_s)

    async def pace(self) -> None:
        """Wait while the caller is ahead of its pace."""
        while wait_s := self.pace_wait_s():  # noqa: ASYNC110 - time has no event
            await asyncio.sleep(wait_s)

    def require(self, count: int) -> None:
        """Take operations.

        Raises
        ------
        RefusedError
            RATE_LIMITED, with the time to retry.
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
        """Charge time of the event loop that was, or will be, used; a negative cost is a credit."""
        window = now_s // _WINDOW_S
        if window != self._window:
            self._before_us = self._usage_us if window == self._window + 1.0 else 0.0
            self._usage_us, self._window = 0.0, window
        self._usage_us += cost_us
        self.used_us += cost_us
        for bucket in self._time, self._pace:
            if bucket.is_limited:
                bucket.charge(cost_us, now_s)
        if self.tenant is not None:
            self.tenant.charge(cost_us, now_s)

    def set_pace(self, share: float) -> None:
        """Set the share of the event loop's time that this tenant may use for now; infinity for any."""
        self._pace.set_rate(share * _US_PER_S)

    def pace_wait_s(self) -> float:
        """Return how many seconds its tenant is ahead of its pace; a second at most."""
        if self.tenant is None:
            return 0.0
        return min(self.tenant._pace.wait_s(), _PACE_WAIT_S)  # noqa: SLF001

    @property
    def lately_us(self) -> float:
        """Time of the event loop in the present window of ten seconds."""
        return self._usage_us

    def share(self, now_s: float) -> float:
        """Return the recently used share of the event loop's time."""
        self.charge(0.0, now_s)
        passed = now_s / _WINDOW_S - self._window
        return (self._usage_us + (1.0 - passed) * self._before_us) / (_WINDOW_S * _US_PER_S)

    def _time_wait_s(self) -> float:
        wait_s = self._time.wait_s()
        return wait_s if self.tenant is None else max(wait_s, self.tenant._time_wait_s())  # noqa: SLF001

    def _scarcest(self) -> Account:
        """Return the account whose time is available last: this one, or its tenant's."""
        tenant = self.tenant
        if tenant is None or self._time.wait_s() >= tenant._time_wait_s():  # noqa: SLF001
            return self
        return tenant

    def begin_stream(self) -> None:
        """Count a stream that starts; the caller calls `end_stream` later.

        Raises
        ------
        RefusedError
            RATE_LIMITED, if there are too many.
        """
        if self.stream_count >= self.quota.streams_max:
            raise RefusedError(
                Reason.RATE_LIMITED,
                "streams",
                f"{self.stream_count + 1} of the caller",
                f"at most {self.quota.streams_max:g}",
                retry_after_ms=_STREAM_RETRY_MS,
            )
        self.stream_count += 1

    def end_stream(self) -> None:
        """Count a stream that has ended."""
        self.stream_count -= 1

    def begin_call(self) -> None:
        """Count a call that starts; the caller calls `end_call` later.

        Raises
        ------
        RefusedError
            RATE_LIMITED, if there are too many.
        """
        if self.call_count >= self.quota.calls_max:
            raise RefusedError(
                Reason.RATE_LIMITED,
                "calls",
                f"{self.call_count + 1} of the caller at once",
                f"at most {self.quota.calls_max:g}",
                retry_after_ms=_STREAM_RETRY_MS,
            )
        self.call_count += 1

    def end_call(self) -> None:
        """Count a call that has ended."""
        self.call_count -= 1


def _too_early(field: str, limit: str, wait_s: float) -> RefusedError:
    retry_after_ms = math.ceil(1000.0 * wait_s)
    return RefusedError(Reason.RATE_LIMITED, field, "too many", limit, retry_after_ms=retry_after_ms)


UNLIMITED = Account(Quota())
"""Shared by all callers without limits."""


class Accounts:
    """The accounts of callers by tenant and name, each for as long as it is referenced.

    Parameters
    ----------
    tenant_share
        Share of the event loop's time for each tenant.
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
        """The accounts of the tenants that have called."""

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
        """Return all present accounts."""
        return list(self._accounts.values())
