"""Count the work of the matcher since its creation, from which costs follow."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Work:
    """Counts, which only grow."""

    pairs: int = 0
    """Pairs of a subscription and an object that were tested one by one."""
    settled: int = 0
    """Subscriptions with too many matches that were settled again."""
