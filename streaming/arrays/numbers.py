"""Numbers of keywords, by their digests: dense, from 0, in the order of their arrival.

Operations: O(1) a word expected. About 45 bytes a word; numbers are never freed.
"""

from __future__ import annotations

import numpy as np

from index.batches import Ints, KeywordIds
from index.tables.growth import longer
from index.tables.id_map import IdMap
from streaming.arrays.blocks import DigestError


class Numbers:
    """The numbers of keywords."""

    def __init__(self) -> None:
        self._ids = IdMap()
        self._high: Ints = np.empty(16, dtype=np.int64)
        self._low: Ints = np.empty(16, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._ids)

    def digests(self, numbers: KeywordIds) -> tuple[Ints, Ints]:
        """Return the digests of keywords, by number."""
        return self._high[numbers], self._low[numbers]

    def are_known(self, high: Ints) -> bool:
        """Return whether all words have numbers, by the first halves of their digests."""
        return bool(self._ids.present(high).all())

    def take(self, high: Ints, low: Ints) -> tuple[KeywordIds, Ints]:
        """Return the number of each digest, and the rows of new digests in the order of their numbers.

        Raises
        ------
        DigestError
            If two digests have equal first halves and different second halves.
        """
        is_new = ~self._ids.present(high)
        rows = np.flatnonzero(is_new)
        _, first = np.unique(high[rows], return_index=True)
        new_rows = rows[np.sort(first)]
        count = len(self)
        self._high = longer(self._high, count + len(new_rows))
        self._low = longer(self._low, count + len(new_rows))
        self._high[count : count + len(new_rows)] = high[new_rows]
        self._low[count : count + len(new_rows)] = low[new_rows]
        self._ids.insert(high[new_rows], np.arange(count, count + len(new_rows), dtype=np.int32))
        numbers = self._ids.find(high)
        if not np.array_equal(self._low[numbers], low):
            raise DigestError("the digests of two keywords have the same prefix")
        return numbers, new_rows
