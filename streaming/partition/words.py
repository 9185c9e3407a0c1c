"""The keywords of messages and subscriptions: numbers and weights that the partitions of a host share.

Words are only added, so what a partition has read stays true when another partition adds words.
"""

from __future__ import annotations

import secrets

import numpy as np

from engine.weights import Weights
from index.batches import KeywordIds
from streaming.arrays.blocks import Messages, Subscriptions
from streaming.arrays.numbers import Numbers

NO_WORDS: KeywordIds = np.empty(0, dtype=np.int32)


class Words:
    """Numbers and weights by digest."""

    def __init__(self) -> None:
        self.token = secrets.token_hex(8)
        """Names these words: others have other numbers."""
        self.numbers = Numbers()
        self.weights = Weights()

    def adopt(self, other: Words) -> None:
        """Become other words. Structures that read the weights of these read the others from now on."""
        self.token, self.numbers = other.token, other.numbers
        self.weights.squares = other.weights.squares

    def are_known(self, block: Messages | Subscriptions) -> bool:
        """Return whether all words of a block have numbers."""
        return self.numbers.are_known(block.high)

    def of(self, block: Messages | Subscriptions) -> KeywordIds:
        """Return the number of each word of a block; new words get the next numbers."""
        first = len(self.numbers)
        numbers, new_rows = self.numbers.take(block.high, block.low)
        if len(new_rows):
            self.weights.put_all(first, block.square[new_rows])
        return numbers[block.words]
