"""What the matcher has done since it was made, in numbers that costs follow from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Work:
    """Counts, which only grow."""

    pairs: int = 0
    """Pairs of a subscription and an object that were tested one by one."""
    settled: int = 0
    """Subscriptions with too many matches that were brought up to date."""
