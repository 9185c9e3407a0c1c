"""The weights of keywords from the TFIDF interests of an index, by keyword id. O(1) a keyword."""

from __future__ import annotations

import numpy as np

from index.batches import Floats, InterestBatch
from index.tables.growth import longer

_ROOM_MIN = 64


class KeywordWeights:
    """Squared weights by keyword id; 1 for keywords without a weight."""

    def __init__(self) -> None:
        self.squares: Floats = np.ones(_ROOM_MIN)

    def note(self, interests: InterestBatch) -> None:
        """Store the weights of the keywords of interests."""
        words = interests.keywords.ids
        if not len(words):
            return
        before = len(self.squares)
        self.squares = longer(self.squares, int(words.max()) + 1)
        self.squares[before:] = 1.0
        self.squares[words] = interests.all_squares()
