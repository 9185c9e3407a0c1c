"""Replicas: copies of subscriptions for some keywords, which find those that a message may affect.

A replica has no results and no window. It knows the positions and reaches of subscriptions, as their
owners have last sent them (`Feedback`), and matches messages by these. If it does not have the last
feedback of an owner, the owner evaluates all of its subscriptions.

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
    """The positions and reaches of subscriptions, and the partitions that have replicas of them."""

    handle: Ints
    x_m: Floats
    y_m: Floats
    weight_m: Floats
    similarity: Bytes
    reach_m: Floats
    reach_id: Ints
    mask: Ints
    """A bit for each partition that has a replica; 0 for a subscription that has ended."""
    is_new: Bytes
    """Whether it has started, possibly in place of another of its number."""


class OwnerVersion(NamedTuple):
    """The last known version of an owner."""

    token: int
    """Identifies the owner: an owner that was rebuilt has another token, and other reaches."""
    version: int
    """The number of the batch after which the owner last sent feedback."""


NOBODY = OwnerVersion(0, UNKNOWN)
"""An owner of which nothing is known."""


class Feedback(NamedTuple):
    """The feedback that an owner sends a partition of replicas after a batch."""

    owner: int
    source: OwnerVersion
    placements: Placements
    is_whole: bool
    """Whether the placements replace all that the owner sent the partition before."""

    def pack(self) -> bytes:
        """Return the feedback as bytes."""
        about: Ints = np.array([self.owner, *self.source, self.is_whole], dtype=np.int64)
        block = self.placements
        return pack({"about": about, **{one.name: getattr(block, one.name) for one in fields(block)}})

    @classmethod
    def unpack(cls, data: bytes) -> Feedback:
        """Read feedback; its arrays share the memory of the bytes."""
        columns = unpack(data)
        owner, token, version, is_whole = columns.pop("about").tolist()
        return cls(owner, OwnerVersion(token, version), Placements(**columns), bool(is_whole))


class Replicas:
    """The replicas of one partition.

    Parameters
    ----------
    number
        The number of the partition.
    make_index
        Makes a subscription index.
    """

    def __init__(self, number: int, make_index: Callable[[], SubscriptionIndex]) -> None:
        self.number = number
        self.versions: dict[int, OwnerVersion] = {}
        """By owner: the version of its last feedback."""
        self._indexes = SubscriptionIndexes(make_index, make_index)
        self._numbers = Numbers()
        self._weights = Weights()
        self._ids = IdMap()

    def __len__(self) -> int:
        return len(self._ids)

    def apply(self, feedback: Feedback, owners: int) -> None:
        """Apply the feedback of one of the owners."""
        if feedback.is_whole:
            self._forget(feedback.owner, owners)
        self._apply(feedback.placements)
        self.versions[feedback.owner] = feedback.source

    def _apply(self, block: Placements) -> None:
        """Apply placements, each subscription once."""
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
        """Forget the subscriptions of an owner; their numbers modulo `owners` identify it."""
        handles = self._ids.keys[self._ids.keys != NO_KEY]
        mine = handles[(handles - handle_of(STATIONARY, 0)) % owners == owner]
        if len(mine):
            self._indexes.remove(mine, self._ids.remove(mine).astype(np.int8))

    def match(self, block: Messages) -> Matches:
        """Return the subscriptions that each message may affect."""
        keywords = self._lists(block, np.arange(len(block)))
        norms = np.stack([self._weights.norms(keywords, slot) for slot in range(2)], axis=1)
        # Ties go to the smaller number, and the owner decides them: here each message wins its ties.
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
