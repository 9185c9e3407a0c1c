"""Replicas: copies of subscriptions that share a part of the keywords, to say whom messages may concern.

A replica has no results and no window: it knows where subscriptions are and how far they reach, as their
owners have last said (`Placements`), and matches messages by that. It is a cache. What it does not know,
or knows as it was before, the owner evaluates anew.

Operations: those of the subscription index.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from engine.contracts import STANDING, handle_of
from engine.subscription_indexes import SubscriptionIndexes, index_numbers
from engine.weights import Weights
from index.batches import Floats, InterestBatch, Ints, KeywordLists, Matches, ObjectBatch, ReachBatch
from index.contracts import SubscriptionIndex
from index.tables.id_map import IdMap
from index.tables.id_map_kernels import NO_KEY
from streaming.arrays.blocks import Block, Bytes, Messages
from streaming.arrays.numbers import Numbers

_SLOT = 0
"""Weights of keywords do not change while a job runs."""


@dataclass(frozen=True, slots=True)
class Placements(Block):
    """What an owner says of its subscriptions."""

    handle: Ints
    x_m: Floats
    y_m: Floats
    weight_m: Floats
    similarity: Bytes
    reach_m: Floats
    reach_id: Ints
    mask: Ints
    """A bit for each partition that has a replica; 0 of one that has ended."""
    is_new: Bytes
    """Whether it has begun, maybe in place of another of its number."""


class Heard(NamedTuple):
    """What was heard of an owner last."""

    token: int
    """Which owner it was: one that was built anew has another, and reaches of its own."""
    version: int


class Replicas:
    """The replicas of one partition.

    Parameters
    ----------
    number
        Of the partition.
    make_index
        What makes a subscription index.
    """

    def __init__(self, number: int, make_index: Callable[[], SubscriptionIndex]) -> None:
        self.number = number
        self.heard: dict[int, Heard] = {}
        """By owner."""
        self._indexes = SubscriptionIndexes(make_index, make_index)
        self._numbers = Numbers()
        self._weights = Weights()
        self._ids = IdMap()

    def __len__(self) -> int:
        return len(self._ids)

    def hear(self, block: Placements) -> None:
        """Take note of what an owner says, each subscription once."""
        is_here = (block.mask >> self.number) & 1 == 1
        is_known = self._ids.present(block.handle)
        goes = is_known & (~is_here | (block.is_new == 1))
        gone = block.handle[goes]
        if len(gone):
            self._indexes.remove(gone, self._ids.remove(gone).astype(np.int8))
        stays = is_known & ~goes
        moved = np.flatnonzero(stays)
        if len(moved):
            self._indexes.move(_reaches(block, moved), index_numbers(block.similarity[moved], _SLOT))
        fresh = np.flatnonzero(is_here & ~stays)
        if len(fresh):
            numbers = index_numbers(block.similarity[fresh], _SLOT)
            self._ids.insert(block.handle[fresh], numbers.astype(np.int32))
            self._indexes.insert(_reaches(block, fresh), self._interests(block, fresh), numbers)

    def forget(self, owner: int, owners: int) -> None:
        """Forget all that an owner has said; subscriptions have owners by their numbers."""
        handles = self._ids.keys[self._ids.keys != NO_KEY]
        mine = handles[(handles - handle_of(STANDING, 0)) % owners == owner]
        if len(mine):
            self._indexes.remove(mine, self._ids.remove(mine).astype(np.int8))
        self.heard.pop(owner, None)

    def match(self, block: Messages) -> Matches:
        """Return whom each message may concern."""
        keywords = self._lists(block, np.arange(len(block)))
        norms = np.stack([self._weights.norms(keywords, slot) for slot in range(2)], axis=1)
        # Ties go to the smaller number, and are the owner's to decide: here each message wins them.
        ids = np.arange(len(block), dtype=np.int64) - len(block)
        objects = ObjectBatch(ids, block.x_m, block.y_m, keywords)
        return self._indexes.match(objects, norms)

    def _interests(self, block: Placements, rows: Ints) -> InterestBatch:
        keywords = self._lists(block, rows)
        squares = self._weights.of_keywords(keywords.ids, _SLOT)
        return InterestBatch(block.weight_m[rows], block.similarity[rows], keywords, squares)

    def _lists(self, block: Block, rows: Ints) -> KeywordLists:
        first = len(self._numbers)
        numbers, fresh = self._numbers.take(block.high, block.low)
        self._weights.put_all(first, block.square[fresh])
        return block.sorted_lists(numbers[block.words], rows)

    def check(self) -> None:
        """Verify the index."""
        self._indexes.check()
        self._ids.check()


def _reaches(block: Placements, rows: Ints) -> ReachBatch:
    return ReachBatch(
        block.handle[rows],
        block.x_m[rows],
        block.y_m[rows],
        np.zeros(len(rows)),
        block.reach_m[rows],
        block.reach_id[rows],
    )
