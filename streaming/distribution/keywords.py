"""By keywords: a message goes to the partitions that have one of its own (skype.txt 7.3.3 and 7.3.4).

A subscription has an owner, by its number, and replicas on the partitions that have one of its keywords
(`Keyword`), or of its loose prefix (`Prefix`). Only replicas are sent messages to match; owners have the
window, and the results. The hybrids of section 8.2 divide twice: by place, and within each part by
keywords (`SpatialFirst`), or the other way round (`KeywordFirst`); both by the loose prefix.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from index.batches import Floats, Ints
from streaming.arrays.blocks import Messages, Subscriptions
from streaming.distribution.contract import Sample
from streaming.distribution.hashing import Hashing
from streaming.distribution.location import Location
from streaming.distribution.words import Ranks, WordPartition

HYBRIDS = ("spatial-first", "keyword-first")
"""Names of those that divide twice."""
PARTITIONS_MAX = 62
"""Replicas are bits of an int64."""


@dataclass(frozen=True, slots=True)
class Replicated(ABC):
    """See `Distribution`; partitions have replicas, and are owners besides."""

    partitions: int

    uses_prefix: ClassVar[bool] = True
    """Whether a subscription has replicas for the keywords of its loose prefix only."""

    def place(self, block: Subscriptions) -> Sequence[tuple[int, Subscriptions]]:
        """Tell owners of their subscriptions."""
        return Hashing(self.partitions).place(block)

    def route(self, block: Messages) -> Sequence[tuple[int, Ints | None]]:
        """Send everything to every owner, for its window."""
        return Hashing(self.partitions).route(block)

    def spread(self, block: Messages) -> Sequence[tuple[int, Ints]]:
        """Return which replicas are to match which rows."""
        parts, _ = self.look_up(block.high)
        rows = np.repeat(np.arange(len(block)), np.diff(block.offsets))
        pairs = [
            np.unique(cells.astype(np.int64) * max(1, len(block)) + rows)
            for cells in self.sent_to(parts[:, block.words])
        ]
        owners, rows = np.divmod(np.unique(np.concatenate(pairs)), max(1, len(block)))
        return [(one, rows[owners == one]) for one in np.unique(owners).tolist()]

    @abstractmethod
    def look_up(self, high: Ints) -> tuple[Ranks, Ranks]:
        """Return parts of keywords, a row for each division of keywords, and how rare they are."""

    @abstractmethod
    def cells(self, parts: Ranks, x_m: Floats, y_m: Floats) -> Ints:
        """Return the partition of keywords, of whose parts there are columns, at places."""

    @abstractmethod
    def sent_to(self, parts: Ranks) -> Sequence[Ranks]:
        """Return the partitions that have keywords, wherever: arrays with one for each."""


@dataclass(frozen=True, slots=True)
class Keyword(Replicated):
    """By all keywords."""

    words: WordPartition

    uses_prefix: ClassVar[bool] = False

    @classmethod
    def choose(cls, partitions: int, sample: Sample, first_level: int = 0) -> Self:  # noqa: ARG003
        """Divide the keywords of a sample."""
        return cls(partitions, WordPartition.choose(partitions, sample))

    def look_up(self, high: Ints) -> tuple[Ranks, Ranks]:
        """Return the partition of each keyword, and how rare it is."""
        parts, rank = self.words.look_up(high)
        return parts[np.newaxis], rank

    def cells(self, parts: Ranks, x_m: Floats, y_m: Floats) -> Ints:  # noqa: ARG002
        """Return the partition of each keyword."""
        found: Ints = parts[0].astype(np.int64)
        return found

    def sent_to(self, parts: Ranks) -> Sequence[Ranks]:
        """Return the partition of each keyword."""
        return [parts[0]]

    def encoded(self) -> Any:  # noqa: ANN401
        """Return the division of keywords."""
        return self.words.encoded()

    @classmethod
    def decoded(cls, partitions: int, kept: Any) -> Self:  # noqa: ANN401
        """Return what was encoded."""
        return cls(partitions, WordPartition.decoded(partitions, kept))


@dataclass(frozen=True, slots=True)
class Prefix(Keyword):
    """By the keywords of the loose prefix."""

    uses_prefix: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class SpatialFirst(Replicated):
    """By place, then within each part by keywords."""

    tree: Location
    words: tuple[WordPartition, ...]
    """Of each leaf."""

    @classmethod
    def choose(cls, partitions: int, sample: Sample, first_level: int = 0) -> Self:
        """Divide places, then keywords."""
        first, second = _levels(partitions, first_level)
        tree = Location.choose(first, sample)
        owners = tree.owners(sample.subscriptions.x_m, sample.subscriptions.y_m)
        parts = [sample.subscriptions.part(np.flatnonzero(owners == one)) for one in range(first)]
        words = [WordPartition.choose(second, Sample(one, sample.messages)) for one in parts]
        return cls(partitions, tree, tuple(words))

    def look_up(self, high: Ints) -> tuple[Ranks, Ranks]:
        """Return the part of each keyword in every leaf, and how rare it is."""
        found = [one.look_up(high) for one in self.words]
        return np.stack([parts for parts, _ in found]), found[0][1]

    def cells(self, parts: Ranks, x_m: Floats, y_m: Floats) -> Ints:
        """Return the partition of each keyword in the leaf of each place."""
        leaves = self.tree.owners(x_m, y_m)
        found: Ints = leaves * self.words[0].partitions + parts[leaves, np.arange(len(leaves))]
        return found

    def sent_to(self, parts: Ranks) -> Sequence[Ranks]:
        """Return the partitions of keywords in all leaves."""
        return [leaf * self.words[0].partitions + row for leaf, row in enumerate(parts)]

    def encoded(self) -> Any:  # noqa: ANN401
        """Return both divisions."""
        return [self.tree.encoded(), [one.encoded() for one in self.words]]

    @classmethod
    def decoded(cls, partitions: int, kept: Any) -> Self:  # noqa: ANN401
        """Return what was encoded."""
        first, second = _levels(partitions, len(kept[1]))
        words = [WordPartition.decoded(second, one) for one in kept[1]]
        return cls(partitions, Location.decoded(first, kept[0]), tuple(words))


@dataclass(frozen=True, slots=True)
class KeywordFirst(Replicated):
    """By keywords, then within each part by place."""

    words: WordPartition
    trees: tuple[Location, ...]
    """Of each part."""

    @classmethod
    def choose(cls, partitions: int, sample: Sample, first_level: int = 0) -> Self:
        """Divide keywords, then places."""
        first, second = _levels(partitions, first_level)
        words = WordPartition.choose(first, sample)
        block = sample.subscriptions
        owners = np.repeat(np.arange(len(block)), np.diff(block.offsets))
        parts = words.look_up(block.high)[0][block.words] if len(block) else np.empty(0, dtype=np.int32)
        trees = [
            Location.choose(second, Sample(block.part(np.unique(owners[parts == one])), sample.messages))
            for one in range(first)
        ]
        return cls(partitions, words, tuple(trees))

    def look_up(self, high: Ints) -> tuple[Ranks, Ranks]:
        """Return the part of each keyword, and how rare it is."""
        parts, rank = self.words.look_up(high)
        return parts[np.newaxis], rank

    def cells(self, parts: Ranks, x_m: Floats, y_m: Floats) -> Ints:
        """Return the partition of each keyword at each place."""
        leaves = np.stack([tree.owners(x_m, y_m) for tree in self.trees])
        part = parts[0].astype(np.int64)
        found: Ints = part * self.trees[0].partitions + leaves[part, np.arange(len(part))]
        return found

    def sent_to(self, parts: Ranks) -> Sequence[Ranks]:
        """Return all partitions of each keyword's part."""
        count = self.trees[0].partitions
        return [(parts[0] * count + leaf).astype(np.int32) for leaf in range(count)]

    def encoded(self) -> Any:  # noqa: ANN401
        """Return both divisions."""
        return [self.words.encoded(), [one.encoded() for one in self.trees]]

    @classmethod
    def decoded(cls, partitions: int, kept: Any) -> Self:  # noqa: ANN401
        """Return what was encoded."""
        first, second = _levels(partitions, len(kept[1]))
        trees = [Location.decoded(second, one) for one in kept[1]]
        return cls(partitions, WordPartition.decoded(first, kept[0]), tuple(trees))


def _levels(partitions: int, first: int) -> tuple[int, int]:
    """Return how many parts the first division has, and how many each of them; 0: about as many."""
    first = first or next(one for one in range(math.isqrt(partitions), 0, -1) if partitions % one == 0)
    return first, partitions // first
