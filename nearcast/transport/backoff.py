"""Waiting times before retries.

They are exponential with full jitter: many devices that lose a server at the same time reconnect at
different times.
"""

from __future__ import annotations

import random

BACKOFF_FIRST_S = 0.1
BACKOFF_MAX_S = 5.0


def backoff_s(attempt: int, jitter: random.Random) -> float:
    """Return the seconds to wait before attempt 1, 2, ...: full jitter under a doubling bound."""
    return jitter.uniform(0.0, min(BACKOFF_MAX_S, BACKOFF_FIRST_S * 2.0 ** min(attempt, 30)))
