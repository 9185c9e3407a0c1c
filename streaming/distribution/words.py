"""Keywords divided among partitions, in the order of frequency (skype.txt section 7.3.3, Algorithm 4).

A part's cost is the number of subscriptions that have one of its keywords times the share of messages
that do (Equation 16); a line divides a part where the costs of both sides differ least. Deviations from
the paper: costs are those of a sample, one added to each count, and of either side the sum over its
keywords, so that one pass finds the line; a number of partitions that is no power of two divides
unevenly; keywords that the sample has not, the rarest of all, are divided by their digests.

Operations: choose O(sample * log), look up O(log(vocabulary)) a keyword.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from index.batches import Floats, Ints
from streaming.arrays.blocks import Messages, Subscriptions
from streaming.distribution.contract import Sample

Ranks = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class WordPartition:
    """Which partition each keyword belongs to, and how rare it is.

    Parameters
    ----------
    partitions
        How many there are.
    high
        Beginnings of the digests of known keywords, increasing.
    rank
        0 for the rarest of them.
    owner
        The partition of each.
    """

    partitions: int
    high: Ints
    rank: Ranks
    owner: Ranks

    @classmethod
    def choose(cls, partitions: int, sample: Sample) -> Self:
        """Divide the keywords of a sample."""
        high, counts = _counts(sample.messages, sample.subscriptions)
        by_frequency = np.lexsort((high, counts[0] + counts[1]))
        cost = (1.0 + counts[1][by_frequency]) * (1.0 + counts[0][by_frequency])
        parts = np.zeros(len(high), dtype=np.int32)
        _divide(parts, cost, 0, len(high), (0, partitions))
        rank, owner = np.empty(len(high), dtype=np.int32), np.empty(len(high), dtype=np.int32)
        rank[by_frequency] = np.arange(len(high))
        owner[by_frequency] = parts
        return cls(partitions, high, rank, owner)

    def look_up(self, high: Ints) -> tuple[Ranks, Ranks]:
        """Return partition and rank of keywords; those that are not known are rarer than all others."""
        at = np.minimum(np.searchsorted(self.high, high), max(0, len(self.high) - 1))
        is_known = self.high[at] == high if len(self.high) else np.zeros(len(high), dtype=np.bool_)
        owner = (high % self.partitions).astype(np.int32)
        rank = np.full(len(high), -1, dtype=np.int32)
        if len(self.high):
            owner, rank = (
                np.where(is_known, self.owner[at], owner),
                np.where(is_known, self.rank[at], rank),
            )
        return owner.astype(np.int32), rank.astype(np.int32)

    def encoded(self) -> Any:  # noqa: ANN401
        """Return what JSON can keep."""
        return [self.high.tolist(), self.rank.tolist(), self.owner.tolist()]

    @classmethod
    def decoded(cls, partitions: int, kept: Any) -> Self:  # noqa: ANN401
        """Return what was encoded."""
        high, rank, owner = kept
        return cls(
            partitions,
            np.array(high, dtype=np.int64),
            np.array(rank, dtype=np.int32),
            np.array(owner, dtype=np.int32),
        )


def _counts(messages: Messages, subscriptions: Subscriptions) -> tuple[Ints, tuple[Ints, Ints]]:
    """Return all keywords, and in how many messages and subscriptions each is."""
    high = np.unique(np.concatenate([messages.high, subscriptions.high]))
    counts = [
        np.bincount(np.searchsorted(high, block.high[block.words]), minlength=len(high))
        for block in (messages, subscriptions)
    ]
    return high, (counts[0], counts[1])


def _divide(parts: Ranks, cost: Floats, start: int, stop: int, leaves: tuple[int, int]) -> None:
    """Write the partition of consecutive keywords."""
    first, last = leaves
    if last - first == 1 or stop - start == 0:
        parts[start:stop] = first
        return
    middle = (first + last) // 2
    share = (middle - first) / (last - first)
    below = np.concatenate([[0.0], np.cumsum(cost[start:stop])])
    line = start + int(np.argmin(np.abs(below - share * below[-1])))
    _divide(parts, cost, start, line, (first, middle))
    _divide(parts, cost, line, stop, (middle, last))
