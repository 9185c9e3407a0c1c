"""What subscriptions ask for, in words, over the engine's rows, which have numbers only.

A subscription is one number here, its alpha; keywords, k, similarity and region are the engine's. A
`TopK` is made when somebody asks for it. Look-up O(keywords), put O(1) a subscription.
"""

from __future__ import annotations

import numpy as np

from index.batches import Floats, Ints
from index.tables import SlotTable
from index.tables.growth import longer
from safe_region.anchored import RegionMode
from safe_region.scoring import Similarity
from server.core.keyword_dictionary import KeywordDictionary
from server.model import TopK


class SpecTable:
    """Specs by handle.

    Parameters
    ----------
    table
        The engine's rows of subscriptions.
    vocabulary
        Where keywords have their numbers.
    """

    def __init__(self, table: SlotTable, dictionary: KeywordDictionary) -> None:
        self._table = table
        self._dictionary = dictionary
        self._alpha: Floats = np.zeros(16)

    def put(self, handles: Ints, alpha: Floats) -> None:
        """Add subscriptions that the engine has rows of."""
        self._alpha = longer(self._alpha, self._table.end)
        self._alpha[self._table.slots(handles)] = alpha

    def region(self, handle: int) -> RegionMode:
        """Return the mode of a subscription's safe region."""
        return RegionMode(int(self._table.rows[self._slot(handle)]["region"]))

    def spec(self, handle: int) -> TopK:
        """Return what a subscription asks for."""
        slot = self._slot(handle)
        row = self._table.rows[slot]
        return TopK(
            self.keywords(handle),
            int(row["k"]),
            float(self._alpha[slot]),
            Similarity(int(row["similarity"])),
            RegionMode(int(row["region"])),
        )

    def keywords(self, handle: int) -> tuple[str, ...]:
        """Return the keywords of a subscription."""
        slots = self._table.slots(np.array([handle], dtype=np.int64))
        (found,) = self._dictionary.words(self._table.keyword_lists(slots))
        return found

    def memory_bytes(self) -> int:
        """Size of the column."""
        return self._alpha.nbytes

    def _slot(self, handle: int) -> int:
        return int(self._table.slots(np.array([handle], dtype=np.int64))[0])
