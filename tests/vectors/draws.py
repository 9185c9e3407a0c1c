"""Random numbers that every version of Python draws alike."""

from __future__ import annotations

import random


class Draws:
    """Draws by `Random.random` alone, whose numbers never change for a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed).random

    def between(self, low: float, high: float) -> float:
        return low + (high - low) * self.random()

    def whole(self, low: int, high: int) -> int:
        """Draw a whole number, both ends included."""
        return low + int(self.random() * (high - low + 1))

    def one_of(self, items):
        return items[self.whole(0, len(items) - 1)]

    def some_of(self, items, share: float):
        return [one for one in items if self.random() < share]
