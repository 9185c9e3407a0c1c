"""Keywords divided among partitions, in the order of frequency (skype.txt section 7.3.3, Algorithm 4).

A part's cost is the number of subscriptions that have one of its keywords times the fraction of messages
that do (Equation 16): both are sizes of unions, not sums over keywords. A line divides a part where the
costs of both sides differ least. Deviations from the paper: one is added to each count, so that parts
without messages or subscriptions divide as well; a number of partitions that is no power of two divides
unevenly, with costs in proportion to the partitions of each side; keywords that the sample does not have,
the rarest of all, are divided by their digests.

Operations: choose O(keywords of the sample * log(partitions)) and a sort, look up O(log(vocabulary)) a
keyword.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from index.batches import Ints
from streaming.arrays.blocks import Block
from streaming.distribution.contract import Flags, Sample
from streaming.distribution.division_kernels import Ranks, count_unions

UNKNOWN = -1
"""The rank of a keyword that the sample does not have: it is rarer than all others."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The keywords of a sample, ordered by frequency.

    Parameters
    ----------
    high
        The first halves of their digests, increasing.
    rank
        The rank of each; 0 is the rarest.
    """

    high: Ints
    rank: Ranks

    def __len__(self) -> int:
        return len(self.high)

    @classmethod
    def of(cls, sample: Sample) -> Self:
        """Return the keywords of a sample; O(keywords * log)."""
        blocks = sample.messages, sample.subscriptions
        found = np.concatenate([block.high[block.words] for block in blocks])
        high, counts = np.unique(found, return_counts=True)
        rank = np.empty(len(high), dtype=np.int32)
        rank[np.lexsort((high, counts))] = np.arange(len(high))
        return cls(high, rank)

    def ranks(self, high: Ints) -> Ranks:
        """Return the rank of each keyword, or `UNKNOWN`."""
        if not len(self.high):
            return np.full(len(high), UNKNOWN, dtype=np.int32)
        places = np.minimum(np.searchsorted(self.high, high), len(self.high) - 1)
        return np.where(self.high[places] == high, self.rank[places], UNKNOWN).astype(np.int32)

    def encoded(self) -> Any:  # noqa: ANN401
        """Return the vocabulary in a form for JSON: digests, the rarest first."""
        return self.high[np.argsort(self.rank)].tolist()

    @classmethod
    def decoded(cls, kept: Any) -> Self:  # noqa: ANN401
        """Return the vocabulary from its encoded form."""
        by_rank = np.array(kept, dtype=np.int64)
        order = np.argsort(by_rank)
        return cls(by_rank[order], order.astype(np.int32))


@dataclass(frozen=True, slots=True)
class WordDivision:
    """The partition of each keyword of a vocabulary.

    Parameters
    ----------
    starts
        The first rank of each partition, not decreasing; the first one is 0.
    """

    starts: tuple[int, ...]

    @property
    def partitions(self) -> int:
        """The number of partitions."""
        return len(self.starts)

    def parts(self, ranks: Ranks, high: Ints) -> Ranks:
        """Return the partition of each keyword, by its rank and the first half of its digest."""
        known = np.searchsorted(np.array(self.starts[1:], dtype=np.int64), ranks, side="right")
        return np.where(ranks == UNKNOWN, high % self.partitions, known).astype(np.int32)

    @classmethod
    def choose(
        cls, partitions: int, vocabulary: Vocabulary, sample: Sample, is_used: Flags | None = None
    ) -> Self:
        """Divide a vocabulary by the costs of a sample (Algorithm 4).

        Parameters
        ----------
        partitions
            The number of parts.
        vocabulary
            Has all keywords of the sample.
        sample
            The sample in which costs are counted.
        is_used
            Whether a subscription is placed by each of its keywords; None for all of them.
        """
        every = slice(None) if is_used is None else is_used
        interval = _Interval(
            0,
            len(vocabulary),
            _Lists.of(vocabulary, sample.subscriptions, every),
            _Lists.of(vocabulary, sample.messages, slice(None)),
        )
        starts = [0] * partitions
        _divide(starts, interval, 0, partitions)
        return cls(tuple(starts))


@dataclass(slots=True)
class _Lists:
    """Keyword lists as pairs of a rank and the list that has it, by rank.

    Parameters
    ----------
    ranks, owners
        The pairs.
    seen
        For the kernel: by list.
    mark
        The greatest value in `seen`.
    """

    ranks: Ranks
    owners: Ints
    seen: Ints
    mark: int = 0

    @classmethod
    def of(cls, vocabulary: Vocabulary, block: Block, chosen: Flags | slice) -> Self:
        """Return the lists of a block, with some of their keywords."""
        ranks = vocabulary.ranks(block.high)[block.words][chosen]
        owners = np.repeat(np.arange(len(block)), np.diff(block.offsets))[chosen]
        order = np.argsort(ranks, kind="stable")
        return cls(ranks[order], owners[order], np.zeros(len(block), dtype=np.int64))

    def unions(self, low: int, high: int) -> tuple[Ints, Ints]:
        """Return for each line in an interval the numbers of lists with a keyword below and above."""
        start, stop = np.searchsorted(self.ranks, (low, high)).tolist()
        left, right = (np.zeros(high - low + 1, dtype=np.int64) for _ in range(2))
        mark = self.mark + 1
        self.mark += 2
        count_unions(self.ranks[start:stop], self.owners[start:stop], low, self.seen, mark, left, right)
        return left, right


@dataclass(frozen=True, slots=True)
class _Interval:
    """Consecutive ranks, from `low` to below `high`, and the lists that have them."""

    low: int
    high: int
    wanted: _Lists
    sent: _Lists

    def line(self, share: float) -> int:
        """Return the rank that divides the interval; the lower side is to have `share` of the cost."""
        if self.high - self.low < 2:  # noqa: PLR2004 - nothing to divide
            return self.high
        wanted, sent = (lists.unions(self.low, self.high) for lists in (self.wanted, self.sent))
        left, right = ((1.0 + wanted[side]) * (1.0 + sent[side]) for side in range(2))
        difference = np.abs(left * (1.0 - share) - right * share)
        return self.low + 1 + int(np.argmin(difference[1:-1]))


def _divide(starts: list[int], interval: _Interval, first: int, last: int) -> None:
    """Write where the partitions from `first` to below `last` start, which share an interval."""
    starts[first] = interval.low
    if last - first == 1:
        return
    middle = (first + last) // 2
    line = interval.line((middle - first) / (last - first))
    lists = interval.wanted, interval.sent
    _divide(starts, _Interval(interval.low, line, *lists), first, middle)
    _divide(starts, _Interval(line, interval.high, *lists), middle, last)
