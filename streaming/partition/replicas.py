"""Replicas: copies of subscriptions that share a part of the keywords, to find whom messages may concern.

A replica has no results and no window: it knows where subscriptions are and how far they reach, as their
owners have last sent it (`Feedback`), and matches messages by that. Where it does not know what an owner
has sent last, the owner evaluates all of its subscriptions.

Operations: those of the subscription index.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from engine.contracts import STATIONARY, handle_of
from engine.subscription_indexes import SubscriptionIndexes, index_numbers
from engine.weights import Weights
from index.batches import Floats, InterestBatch, Ints, KeywordLists, Matches, ObjectBatch, ReachBatch
from index.contracts import SubscriptionIndex
from index.tables.id_map import IdMap
from index.tables.id_map_kernels import NO_KEY
from streaming.arrays.blocks import Block, Bytes, Messages, pack, unpack
from streaming.arrays.numbers import Numbers

_SLOT = 0
"""Weights of keywords do not change while a job runs."""


UNKNOWN = -1
"""The version of an owner of which nothing is known."""


@dataclass(frozen=True, slots=True)
class Placements(Block):
    """Where subscriptions are, how far they reach, and which partitions have replicas of them."""

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
    """Whether it has started, maybe in place of another of its number."""


class OwnerVersion(NamedTuple):
    """What is known of an owner."""

    token: int
    """Which owner it is: one that was built again has another, and reaches of its own."""
    version: int
    """The number of the batch behind which it sent something last."""


NOBODY = OwnerVersion(0, UNKNOWN)
"""An owner of which nothing is known."""


class Feedback(NamedTuple):
    """What an owner sends a partition of replicas behind a batch."""

    owner: int
    source: OwnerVersion
    placements: Placements
    is_whole: bool
    """Whether that is all that concerns the partition, in place of what it was sent before."""

    def pack(self) -> bytes:
        """Write it."""
        about: Ints = np.array([self.owner, *self.source, self.is_whole], dtype=np.int64)
        block = self.placements
        return pack({"about": about, **{one.name: getattr(block, one.name) for one in fields(block)}})

    @classmethod
    def unpack(cls, data: bytes) -> Feedback:
        """Read it; its arrays share the memory of the bytes."""
        columns = unpack(data)
        owner, token, version, is_whole = columns.pop("about").tolist()
        return cls(owner, OwnerVersion(token, version), Placements(**columns), bool(is_whole))


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
        self.versions: dict[int, OwnerVersion] = {}
        """By owner: what it has sent last."""
        self._indexes = SubscriptionIndexes(make_index, make_index)
        self._numbers = Numbers()
        self._weights = Weights()
        self._ids = IdMap()

    def __len__(self) -> int:
        return len(self._ids)

    def apply(self, feedback: Feedback, owners: int) -> None:
        """Take what one of the owners has sent."""
        if feedback.is_whole:
            self._forget(feedback.owner, owners)
        self._apply(feedback.placements)
        self.versions[feedback.owner] = feedback.source

    def _apply(self, block: Placements) -> None:
        """Take placements, each subscription once."""
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
        added = np.flatnonzero(is_here & ~stays)
        if len(added):
            numbers = index_numbers(block.similarity[added], _SLOT)
            self._ids.insert(block.handle[added], numbers.astype(np.int32))
            self._indexes.insert(_reaches(block, added), self._interests(block, added), numbers)

    def _forget(self, owner: int, owners: int) -> None:
        """Forget the subscriptions of an owner, which is known by their numbers."""
        handles = self._ids.keys[self._ids.keys != NO_KEY]
        mine = handles[(handles - handle_of(STATIONARY, 0)) % owners == owner]
        if len(mine):
            self._indexes.remove(mine, self._ids.remove(mine).astype(np.int8))

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
        numbers, added = self._numbers.take(block.high, block.low)
        self._weights.put_all(first, block.square[added])
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
