"""How long to wait before trying again.

Exponential with full jitter: many devices that lose one server at the same moment do not come back at the
same moment.
"""

from __future__ import annotations

import random

BACKOFF_FIRST_S = 0.1
BACKOFF_MAX_S = 5.0


def backoff_s(attempt: int, jitter: random.Random) -> float:
    """Return how long to wait before attempt 1, 2, ...: full jitter under a doubling bound."""
    return jitter.uniform(0.0, min(BACKOFF_MAX_S, BACKOFF_FIRST_S * 2.0 ** min(attempt, 30)))
