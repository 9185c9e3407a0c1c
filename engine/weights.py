"""Hold weights of keywords, for similarities that weigh common keywords (tf-idf).

Tables of weights have generations. At most two are alive: the one by which subscriptions are evaluated,
and the one before it. Some subscriptions were last evaluated by the earlier one and still match new
objects by it. Each has a *slot*, 0 or 1. Without any table every keyword has the weight 1.

Operations: put O(1) a keyword, norms O(1) a keyword of the objects.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from index.batches import Floats, Ints, KeywordIds, KeywordLists
from index.tables.growth import longer

SLOTS = 2
_ROOM_MIN = 64


class Weights:
    """Squared weights by keyword and slot."""

    def __init__(self) -> None:
        self.squares: Floats = np.ones((_ROOM_MIN, SLOTS))
        self.generations = [0] * SLOTS
        """Generations of the tables in the slots; 0 for none."""
        self.current = 0
        """The slot by which subscriptions are evaluated."""
        self.reweighed: list[Ints] = []
        """The subscriptions that `take_reweighed` returns."""

    def note_reweighed(self, handles: Ints) -> None:
        """Record subscriptions that have been evaluated by other weights than before."""
        self.reweighed.append(handles)

    def take_reweighed(self) -> Ints:
        """Return the subscriptions recorded since the last call.

        Their objects have new constant parts.
        """
        found = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *self.reweighed]))
        self.reweighed.clear()
        return found

    @property
    def other(self) -> int:
        """Return the slot of the previous generation, and of the next one."""
        return 1 - self.current

    def put(self, keyword: int, squares: tuple[float, float]) -> None:
        """Set the squared weights of a keyword in both slots."""
        self._reserve(keyword + 1)
        self.squares[keyword] = squares

    def put_all(self, first: int, squares: Floats) -> None:
        """Set the squared weights of keywords from number `first` on, in both slots."""
        self._reserve(first + len(squares))
        self.squares[first : first + len(squares)] = squares[:, np.newaxis]

    def put_generation(self, generation: int, squares: Floats) -> None:
        """Set all weights of the other slot, by keyword."""
        self._reserve(len(squares))
        self.generations[self.other] = generation
        self.squares[: len(squares), self.other] = squares

    def of_keywords(self, keywords: KeywordIds, slot: int) -> Floats:
        """Return the squared weights of keywords."""
        self._reserve(int(keywords.max(initial=0)) + 1)
        found: Floats = self.squares[keywords, slot]
        return found

    def norms(self, lists: KeywordLists, slot: int) -> Floats:
        """Return the sum of the squared weights of each list; no list is empty."""
        if not len(lists):
            return np.empty(0)
        found: Floats = np.add.reduceat(self.of_keywords(lists.ids, slot), lists.offsets[:-1])
        return found

    def _reserve(self, count: int) -> None:
        before = len(self.squares)
        self.squares = longer(self.squares, count)
        self.squares[before:] = 1.0

    def memory_bytes(self) -> int:
        """Return the size of the array."""
        return self.squares.nbytes


class Refill:
    """The filling of an object index that is to replace another one, a batch at a time.

    Parameters
    ----------
    ids
        The live objects, increasing.
    next_id
        Above every published id: objects published from now on are in both indexes.
    """

    def __init__(self, ids: Ints, next_id: int) -> None:
        self._ids = ids
        self._cursor = 0
        self._next_id = next_id

    def take(self, count: int) -> Ints:
        """Return the next ids to insert, some of which may be gone; none at the end."""
        found = self._ids[self._cursor : self._cursor + count]
        self._cursor += len(found)
        return found

    def has(self, ids: Ints) -> npt.NDArray[np.bool_]:
        """Return whether objects are in the index that is being filled."""
        done = self._ids[self._cursor - 1] if self._cursor else np.iinfo(np.int64).min
        found: npt.NDArray[np.bool_] = (ids <= done) | (ids >= self._next_id)
        return found
