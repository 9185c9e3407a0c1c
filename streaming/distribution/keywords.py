"""By keywords: the partitions with one of its keywords receive a message (skype.txt 7.3.3, 7.3.4).

A subscription has an owner, by its number, and replicas on the partitions that have one of its keywords
(`Keyword`), or of its loose prefix (`Prefix`). Only replicas receive messages to match; owners have the
window, and the results. The hybrids of section 8.2 divide twice: by place, and within each part by
keywords (`SpatialFirst`), or the other way round (`KeywordFirst`); both by the loose prefix.

The paper's loose prefix (Definition 12) ends where the sum of the weights of the keywords behind it is
too small. Here it ends where no message with only these keywords can be similar enough: by the norm of
their weights for cosine, and by their number for Jaccard and Dice. That is never later.

If the loose prefix counts, a subscription adds to the costs of a part of the keywords only if its prefix
has one of them (7.3.4). Prefixes follow from the reaches of subscriptions; if a sample has no reaches,
all keywords count.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from index.batches import Floats, Ints
from safe_region.scoring.formulas import Similarity
from streaming.arrays.blocks import Messages, Subscriptions
from streaming.distribution.contract import Flags, Sample
from streaming.distribution.division_kernels import Ranks
from streaming.distribution.hashing import Hashing
from streaming.distribution.location import Location
from streaming.distribution.prefix_kernels import find_prefixes
from streaming.distribution.words import Vocabulary, WordDivision

HYBRIDS = ("spatial-first", "keyword-first")
"""Names of the mechanisms that divide twice."""
TFIDF = int(Similarity.TFIDF)
PARTITIONS_MAX = 62
"""Replicas are bits of an int64."""


@dataclass(frozen=True, slots=True)
class Replicated(ABC):
    """A `Distribution` whose partitions have replicas, and are also owners."""

    partitions: int

    uses_prefix: ClassVar[bool] = True
    """Whether a subscription has replicas for the keywords of its loose prefix only."""

    def place(self, block: Subscriptions) -> Sequence[tuple[int, Subscriptions]]:
        """Send each subscription to its owner."""
        return Hashing(self.partitions).place(block)

    def route(self, block: Messages) -> Sequence[tuple[int, Ints | None]]:
        """Send all messages to every owner, for its window."""
        return Hashing(self.partitions).route(block)

    def spread(self, block: Messages) -> Sequence[tuple[int, Ints]]:
        """Return the partitions of replicas, and the rows that each is to match."""
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
        """Return the parts of keywords, a row for each division of keywords, and their rarity ranks."""

    @abstractmethod
    def cells(self, parts: Ranks, x_m: Floats, y_m: Floats) -> Ints:
        """Return the partition of each keyword at a place; `parts` has a column for each keyword."""

    @abstractmethod
    def sent_to(self, parts: Ranks) -> Sequence[Ranks]:
        """Return the partitions that have keywords at any place: arrays with a value for each keyword."""


@dataclass(frozen=True, slots=True)
class Keyword(Replicated):
    """By all keywords."""

    vocabulary: Vocabulary
    division: WordDivision

    uses_prefix: ClassVar[bool] = False

    @classmethod
    def choose(cls, partitions: int, sample: Sample, first_level: int = 0) -> Self:  # noqa: ARG003
        """Divide the keywords of a sample."""
        vocabulary = Vocabulary.of(sample)
        is_used = loose_prefixes(vocabulary, sample) if cls.uses_prefix else None
        return cls(partitions, vocabulary, WordDivision.choose(partitions, vocabulary, sample, is_used))

    def look_up(self, high: Ints) -> tuple[Ranks, Ranks]:
        """Return the partition of each keyword, and its rank by rarity."""
        ranks = self.vocabulary.ranks(high)
        return self.division.parts(ranks, high)[np.newaxis], ranks

    def cells(self, parts: Ranks, x_m: Floats, y_m: Floats) -> Ints:  # noqa: ARG002
        """Return the partition of each keyword."""
        found: Ints = parts[0].astype(np.int64)
        return found

    def sent_to(self, parts: Ranks) -> Sequence[Ranks]:
        """Return the partition of each keyword."""
        return [parts[0]]

    def encoded(self) -> Any:  # noqa: ANN401
        """Return the division of keywords."""
        return [self.vocabulary.encoded(), self.division.starts]

    @classmethod
    def decoded(cls, partitions: int, kept: Any) -> Self:  # noqa: ANN401
        """Return the distribution from its encoded form."""
        vocabulary, starts = kept
        return cls(partitions, Vocabulary.decoded(vocabulary), WordDivision(tuple(starts)))


@dataclass(frozen=True, slots=True)
class Prefix(Keyword):
    """By the keywords of the loose prefix."""

    uses_prefix: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class SpatialFirst(Replicated):
    """By place, then within each part by keywords."""

    tree: Location
    vocabulary: Vocabulary
    divisions: tuple[WordDivision, ...]
    """The division of each leaf."""

    @classmethod
    def choose(cls, partitions: int, sample: Sample, first_level: int = 0) -> Self:
        """Divide places, then keywords."""
        first, second = _levels(partitions, first_level)
        vocabulary, tree = Vocabulary.of(sample), Location.choose(first, sample)
        is_used = loose_prefixes(vocabulary, sample)
        subscriptions = sample.subscriptions
        leaves = tree.owners(subscriptions.x_m, subscriptions.y_m)
        leaf_of_word = np.repeat(leaves, np.diff(subscriptions.offsets))
        divisions = [
            WordDivision.choose(second, vocabulary, sample, is_used & (leaf_of_word == leaf))
            for leaf in range(first)
        ]
        return cls(partitions, tree, vocabulary, tuple(divisions))

    def look_up(self, high: Ints) -> tuple[Ranks, Ranks]:
        """Return the part of each keyword in every leaf, and its rank by rarity."""
        ranks = self.vocabulary.ranks(high)
        return np.stack([division.parts(ranks, high) for division in self.divisions]), ranks

    def cells(self, parts: Ranks, x_m: Floats, y_m: Floats) -> Ints:
        """Return the partition of each keyword in the leaf of each place."""
        leaves = self.tree.owners(x_m, y_m)
        found: Ints = leaves * self.divisions[0].partitions + parts[leaves, np.arange(len(leaves))]
        return found

    def sent_to(self, parts: Ranks) -> Sequence[Ranks]:
        """Return the partitions of keywords in all leaves."""
        return [leaf * self.divisions[0].partitions + row for leaf, row in enumerate(parts)]

    def encoded(self) -> Any:  # noqa: ANN401
        """Return both divisions."""
        starts = [division.starts for division in self.divisions]
        return [self.tree.encoded(), self.vocabulary.encoded(), starts]

    @classmethod
    def decoded(cls, partitions: int, kept: Any) -> Self:  # noqa: ANN401
        """Return the distribution from its encoded form."""
        tree, vocabulary, starts = kept
        divisions = tuple(WordDivision(tuple(row)) for row in starts)
        return cls(
            partitions, Location.decoded(len(divisions), tree), Vocabulary.decoded(vocabulary), divisions
        )


@dataclass(frozen=True, slots=True)
class KeywordFirst(Replicated):
    """By keywords, then within each part by place."""

    vocabulary: Vocabulary
    division: WordDivision
    trees: tuple[Location, ...]
    """The tree of each part."""

    @classmethod
    def choose(cls, partitions: int, sample: Sample, first_level: int = 0) -> Self:
        """Divide keywords, then the places of the subscriptions and messages that have them."""
        first, second = _levels(partitions, first_level)
        vocabulary = Vocabulary.of(sample)
        is_used = loose_prefixes(vocabulary, sample)
        division = WordDivision.choose(first, vocabulary, sample, is_used)
        every = np.ones(len(sample.messages.words), dtype=np.bool_)
        wanted = _rows_by_part(vocabulary, division, sample.subscriptions, is_used)
        sent = _rows_by_part(vocabulary, division, sample.messages, every)
        trees = [
            Location.choose(second, Sample(sample.subscriptions.part(mine), sample.messages.part(theirs)))
            for mine, theirs in zip(wanted, sent, strict=True)
        ]
        return cls(partitions, vocabulary, division, tuple(trees))

    def look_up(self, high: Ints) -> tuple[Ranks, Ranks]:
        """Return the part of each keyword, and how rare it is."""
        ranks = self.vocabulary.ranks(high)
        return self.division.parts(ranks, high)[np.newaxis], ranks

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
        trees = [tree.encoded() for tree in self.trees]
        return [self.vocabulary.encoded(), self.division.starts, trees]

    @classmethod
    def decoded(cls, partitions: int, kept: Any) -> Self:  # noqa: ANN401
        """Return the distribution from its encoded form."""
        vocabulary, starts, nodes = kept
        second = partitions // len(starts)
        trees = tuple(Location.decoded(second, tree) for tree in nodes)
        return cls(partitions, Vocabulary.decoded(vocabulary), WordDivision(tuple(starts)), trees)


def loose_prefixes(vocabulary: Vocabulary, sample: Sample) -> Flags:
    """Return which keywords of a sample's subscriptions are in their loose prefixes (Definition 12)."""
    block = sample.subscriptions
    if sample.reach_m is None:
        return np.ones(len(block.words), dtype=np.bool_)
    found = np.empty(len(block.words), dtype=np.bool_)
    is_weighted = np.repeat(block.similarity == TFIDF, np.diff(block.offsets))
    find_prefixes(
        block.offsets,
        block.words,
        np.where(is_weighted, block.square[block.words], 1.0),
        block.similarity,
        block.weight_m,
        sample.reach_m,
        vocabulary.ranks(block.high),
        found,
    )
    return found


def _rows_by_part(
    vocabulary: Vocabulary, division: WordDivision, block: Messages | Subscriptions, is_used: Flags
) -> list[Ints]:
    """Return the rows of a block that have a keyword of each part."""
    parts = division.parts(vocabulary.ranks(block.high), block.high)[block.words]
    rows = np.repeat(np.arange(len(block)), np.diff(block.offsets))
    return [np.unique(rows[is_used & (parts == part)]) for part in range(division.partitions)]


def _levels(partitions: int, first: int) -> tuple[int, int]:
    """Return the number of parts of the first division, and of each of these; 0: about as many."""
    first = first or next(one for one in range(math.isqrt(partitions), 0, -1) if partitions % one == 0)
    return first, partitions // first
