"""Combine subscription indexes: one for unweighted interests, one for each generation of weights.

Operations: those of the indexes; a batch is divided by index only if there are several.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.weights import SLOTS
from index.batches import Floats, InterestBatch, Ints, KeywordLists, Matches, ObjectBatch, ReachBatch
from index.contracts import InconsistentIndexError, SubscriptionIndex
from index.tables import SlotTable
from index.tables.slots import Slots
from safe_region.scoring.formulas import Similarity

ALIKE = 0
"""The number of the index of interests with equal weights of keywords; those of the slots follow."""

_TFIDF = int(Similarity.TFIDF)

Numbers = npt.NDArray[np.int8]


def index_numbers(similarity: Numbers, current: int) -> Numbers:
    """Return the index number of each subscription that is evaluated by the weights of a slot."""
    return np.where(similarity == _TFIDF, ALIKE + 1 + current, ALIKE).astype(np.int8)


class SubscriptionIndexes:
    """The subscriptions that a new object affects, for every text similarity.

    Parameters
    ----------
    make
        The factory of an index of interests with equal weights of keywords.
    make_weighted
        The factory of an index of the others.
    """

    def __init__(
        self, make: Callable[[], SubscriptionIndex], make_weighted: Callable[[], SubscriptionIndex]
    ) -> None:
        self._make_weighted = make_weighted
        self._by_number: dict[int, SubscriptionIndex] = {ALIKE: make()}

    def __len__(self) -> int:
        return sum(len(index) for index in self._by_number.values())

    @property
    def alike(self) -> SubscriptionIndex:
        """Return the index of interests with equal weights of keywords."""
        return self._by_number[ALIKE]

    def insert(self, reaches: ReachBatch, interests: InterestBatch, numbers: Numbers) -> None:
        """Add subscriptions."""
        for number, which in self._parts(numbers):
            if number not in self._by_number:
                self._by_number[number] = self._make_weighted()
            part = interests if which is None else _part(interests, which)
            if number == ALIKE:
                part = InterestBatch(part.weight_m, part.similarity, part.keywords)
            self._by_number[number].insert(reaches if which is None else reaches.part(which), part)

    def move(self, reaches: ReachBatch, numbers: Numbers) -> None:
        """Set a new place and reach of subscriptions."""
        for number, which in self._parts(numbers):
            self._by_number[number].move(reaches if which is None else reaches.part(which))

    def remove(self, ids: Ints, numbers: Numbers) -> None:
        """Remove subscriptions; drop an index of weights that becomes empty."""
        for number, which in self._parts(numbers):
            index = self._by_number[number]
            index.remove(ids if which is None else ids[which])
            if number != ALIKE and not len(index):
                del self._by_number[number]

    def match(self, objects: ObjectBatch, norms: Floats) -> Matches:
        """Return exactly the subscriptions that match each object; `norms` by object and slot.

        An index without subscriptions only observes the objects, which costs nothing unless it learns.
        """
        found = []
        for number, index in self._by_number.items():
            if len(index):
                norm2 = None if number == ALIKE else norms[:, number - 1].copy()
                found.append(index.match(replace(objects, norm2=norm2)))
            else:
                index.observe(objects)
        if not found:
            return Matches(np.zeros(len(objects) + 1, dtype=np.int64), np.empty(0, dtype=np.int64))
        return found[0] if len(found) == 1 else _joined(found)

    def _parts(self, numbers: Numbers) -> Iterator[tuple[int, npt.NDArray[np.bool_] | None]]:
        """Yield each index that has rows, with its rows; None for all."""
        if not len(numbers):
            return
        first = int(numbers[0])
        if (numbers == first).all():
            yield first, None
            return
        for number in range(ALIKE, ALIKE + SLOTS + 1):
            which = numbers == number
            if which.any():
                yield number, which

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""
        return sum(index.memory_bytes() for index in self._by_number.values())

    def check_holds(self, subscriptions: SlotTable) -> Slots:
        """Verify these indexes and the table of subscriptions; return the slots of those that are awake.

        Raises
        ------
        InconsistentIndexError
            If an invariant does not hold, or the indexes do not hold the awake subscriptions.
        """
        subscriptions.check()
        self.check()
        used = subscriptions.used()
        awake: Slots = used[subscriptions.rows["is_awake"][used] == 1]
        if len(self) != len(awake):
            raise InconsistentIndexError("the subscription index does not hold the awake subscriptions")
        return awake

    def check(self) -> None:
        """Verify every index."""
        for index in self._by_number.values():
            index.check()


def _part(interests: InterestBatch, which: npt.NDArray[np.bool_]) -> InterestBatch:
    rows = np.flatnonzero(which)
    lists = interests.keywords
    counts = np.diff(lists.offsets)
    kept = np.repeat(which, counts)
    offsets = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum(counts[which], out=offsets[1:])
    squares = None if interests.squares is None else interests.squares[kept]
    keywords = KeywordLists(offsets, lists.ids[kept])
    return InterestBatch(interests.weight_m[which], interests.similarity[which], keywords, squares)


def _joined(found: list[Matches]) -> Matches:
    """Return the matches of several indexes as one."""
    rows = np.concatenate(
        [np.repeat(np.arange(len(one.offsets) - 1), np.diff(one.offsets)) for one in found]
    )
    ids: npt.NDArray[Any] = np.concatenate([one.ids for one in found])
    order = np.argsort(rows, kind="stable")
    counts = np.bincount(rows, minlength=len(found[0].offsets) - 1)
    return Matches.of(counts.astype(np.int64), ids[order])
