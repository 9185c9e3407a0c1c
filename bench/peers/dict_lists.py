"""Base of indexes in plain Python: rows by id, and a dict of lists that finds rows by keys."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Generic, TypeVar

import numpy as np

from index.batches import Ints
from index.contracts import InconsistentIndexError

Entry = TypeVar("Entry")
Item = TypeVar("Item")


class DictLists(Generic[Entry, Item]):
    """Rows by id, each in the lists of its keys.

    Operations: enter O(keys), leave O(keys, and a scan of their lists) a row.
    """

    def __init__(self) -> None:
        self.candidate_count = 0
        """Rows that were verified so far."""
        self._entries: dict[int, Entry] = {}
        self._lists: dict[int, list[Item]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def keys_of(self, one: int) -> Iterable[int]:
        """Return the keys of a row."""
        raise NotImplementedError

    def item_of(self, one: int) -> Item:
        """Return the item of a row in the lists."""
        raise NotImplementedError

    def enter(self, one: int, entry: Entry) -> None:
        """Add a row."""
        self._entries[one] = entry
        item = self.item_of(one)
        for key in self.keys_of(one):
            self._lists.setdefault(key, []).append(item)

    def leave(self, one: int) -> Entry:
        """Remove a row and return it."""
        item = self.item_of(one)
        for key in self.keys_of(one):
            items = self._lists[key]
            items.remove(item)
            if not items:
                del self._lists[key]
        return self._entries.pop(one)

    def require_new(self, ids: Ints) -> None:
        """Require ids that are all different and not in the index."""
        _require_different(ids)
        for one in ids.tolist():
            if one in self._entries:
                raise KeyError(f"id {one} is already in the index")

    def require_known(self, ids: Ints) -> None:
        """Require ids that are all different and in the index."""
        _require_different(ids)
        for one in ids.tolist():
            if one not in self._entries:
                raise KeyError(f"id {one} is not in the index")

    def check(self) -> None:
        """Verify that the lists agree with the rows."""
        expected = [(key, self.item_of(one)) for one in self._entries for key in self.keys_of(one)]
        pairs = [(key, item) for key, items in self._lists.items() for item in items]
        if len(pairs) != len(expected) or set(pairs) != set(expected):
            raise InconsistentIndexError("the lists do not match the rows")

    def memory_bytes(self) -> int:
        """Return the size of the dictionaries and lists, without keys and the contents of rows."""
        size = sys.getsizeof(self._lists) + sys.getsizeof(self._entries)
        return size + sum(sys.getsizeof(items) for items in self._lists.values())


def _require_different(ids: Ints) -> None:
    values, counts = np.unique(ids, return_counts=True)
    if (counts > 1).any():
        raise KeyError(f"id {values[counts > 1][0]} is in the batch twice")
