"""Weights of keywords: what a keyword in common is worth, for similarities that say so (tf-idf).

Tables of weights have generations. At most two are alive: that by which subscriptions are evaluated, and
the one before it, by which some were evaluated last and still are told of new objects. Each has a *slot*,
0 or 1. Without any table every keyword weighs 1.

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
        """Of the tables in the slots; 0 for none."""
        self.current = 0
        """The slot by which subscriptions are evaluated."""
        self.reweighed: list[Ints] = []
        """Subscriptions that `take_reweighed` returns."""

    def note_reweighed(self, handles: Ints) -> None:
        """Note subscriptions that have been evaluated by other weights than before."""
        self.reweighed.append(handles)

    def take_reweighed(self) -> Ints:
        """Return the subscriptions noted since the last time: what they hold has other shares now."""
        found = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *self.reweighed]))
        self.reweighed.clear()
        return found

    @property
    def other(self) -> int:
        """The slot of the generation before, and of the next."""
        return 1 - self.current

    def put(self, keyword: int, squares: tuple[float, float]) -> None:
        """Set what a keyword weighs in both slots."""
        self._reserve(keyword + 1)
        self.squares[keyword] = squares

    def put_all(self, first: int, squares: Floats) -> None:
        """Set what keywords weigh from a number on, in both slots."""
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
        """Return the sum of the squared weights of each list, none of which is empty."""
        if not len(lists):
            return np.empty(0)
        found: Floats = np.add.reduceat(self.of_keywords(lists.ids, slot), lists.offsets[:-1])
        return found

    def _reserve(self, count: int) -> None:
        before = len(self.squares)
        self.squares = longer(self.squares, count)
        self.squares[before:] = 1.0

    def memory_bytes(self) -> int:
        """Size of the array."""
        return self.squares.nbytes


class Refill:
    """The filling of an object index that is to take the place of another, a portion at a time.

    Parameters
    ----------
    ids
        What is alive, increasing.
    next_id
        Above every id published: what is published from now on is in both.
    """

    def __init__(self, ids: Ints, next_id: int) -> None:
        self._ids = ids
        self._cursor = 0
        self._next_id = next_id

    def take(self, count: int) -> Ints:
        """Return the next ids to be filled in, some of which may be gone; none at the end."""
        found = self._ids[self._cursor : self._cursor + count]
        self._cursor += len(found)
        return found

    def has(self, ids: Ints) -> npt.NDArray[np.bool_]:
        """Whether objects are in the index that is filled."""
        done = self._ids[self._cursor - 1] if self._cursor else np.iinfo(np.int64).min
        found: npt.NDArray[np.bool_] = (ids <= done) | (ids >= self._next_id)
        return found
