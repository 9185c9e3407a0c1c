"""How much one caller may ask for: a token bucket, and how many streams are open. O(1), no I/O.

One caller's calls, streams and devices share an account for as long as any of them is there. So a caller
cannot get more by calling more often.
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


@dataclass(frozen=True, slots=True)
class Quota:
    """What an account allows.

    A call, a command of a device and an object published are an operation each.
    """

    operations_per_s: float = math.inf
    streams_max: float = math.inf


class Account:
    """What one caller has used.

    Parameters
    ----------
    quota
        What it may use.
    clock
        Monotonic seconds.
    """

    __slots__ = (
        "__weakref__",
        "_at_s",
        "_burst",
        "_clock",
        "_level",
        "_quota",
        "is_limited",
        "stream_count",
    )

    def __init__(self, quota: Quota, clock: Callable[[], float] = time.monotonic) -> None:
        self._quota = quota
        self._clock = clock
        self.is_limited = quota.operations_per_s < math.inf
        self._burst = max(1.0, quota.operations_per_s * BURST_S)
        self._level = self._burst
        self._at_s = clock()
        self.stream_count = 0

    def take(self, count: int) -> float:
        """Take operations; return how many seconds it is too early, 0 if they were taken.

        What is left may become negative by the last that was taken, so that none is too large for ever.
        """
        if not self.is_limited:
            return 0.0
        now_s, rate = self._clock(), self._quota.operations_per_s
        self._level = min(self._burst, self._level + (now_s - self._at_s) * rate)
        self._at_s = now_s
        if self._level < 1.0:
            return (1.0 - self._level) / rate
        self._level -= count
        return 0.0

    def require(self, count: int) -> None:
        """Take operations.

        Raises
        ------
        RefusalError
            RATE_LIMITED, with when to try again.
        """
        wait_s = self.take(count)
        if wait_s:
            limit = f"at most {self._quota.operations_per_s:g} a second"
            raise RefusalError(
                Reason.RATE_LIMITED,
                "operations",
                "too many",
                limit,
                retry_after_ms=math.ceil(1000.0 * wait_s),
            )

    def begin_stream(self) -> None:
        """Note that a stream begins; `end_stream` is to be called.

        Raises
        ------
        RefusalError
            RATE_LIMITED, if there are too many.
        """
        if self.stream_count >= self._quota.streams_max:
            raise RefusalError(
                Reason.RATE_LIMITED,
                "streams",
                f"{self.stream_count + 1} of the caller",
                f"at most {self._quota.streams_max:g}",
                retry_after_ms=_STREAM_RETRY_MS,
            )
        self.stream_count += 1

    def end_stream(self) -> None:
        """Note that a stream has ended."""
        self.stream_count -= 1


UNLIMITED = Account(Quota())
"""Shared by all who are not limited."""


class Accounts:
    """The accounts of callers by name, each for as long as somebody has it."""

    def __init__(self) -> None:
        self._accounts: WeakValueDictionary[tuple[str, Quota], Account] = WeakValueDictionary()

    def account(self, name: str, quota: Quota) -> Account:
        """Return the account of a caller."""
        found = self._accounts.get((name, quota))
        if found is None:
            found = self._accounts[name, quota] = Account(quota)
        return found
