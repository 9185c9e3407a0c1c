"""By keywords: a message goes to the partitions that have one of its own (skype.txt 7.3.3 and 7.3.4).

A subscription has an owner, by its number, and replicas on the partitions that have one of its keywords
(`Keyword`), or of its loose prefix (`Prefix`). Only replicas are sent messages to match; owners have the
window, and the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from index.batches import Ints
from streaming.blocks import Messages, Subscriptions
from streaming.distribution.contract import Sample
from streaming.distribution.hashing import Hashing
from streaming.distribution.words import WordPartition

PARTITIONS_MAX = 62
"""Replicas are bits of an int64."""


@dataclass(frozen=True, slots=True)
class Keyword:
    """See `Distribution`."""

    partitions: int
    words: WordPartition

    uses_prefix: ClassVar[bool] = False

    @classmethod
    def choose(cls, partitions: int, sample: Sample) -> Self:
        """Divide the keywords of a sample."""
        return cls(partitions, WordPartition.choose(partitions, sample))

    def place(self, block: Subscriptions) -> Sequence[tuple[int, Subscriptions]]:
        """Tell owners of their subscriptions."""
        return Hashing(self.partitions).place(block)

    def route(self, block: Messages) -> Sequence[tuple[int, Ints | None]]:
        """Send everything to every owner, for its window."""
        return Hashing(self.partitions).route(block)

    def spread(self, block: Messages) -> Sequence[tuple[int, Ints]]:
        """Return which replicas are to match which rows."""
        owner, _ = self.words.look_up(block.high)
        rows = np.repeat(np.arange(len(block)), np.diff(block.offsets))
        pairs = np.unique(owner[block.words].astype(np.int64) * max(1, len(block)) + rows)
        owners, rows = np.divmod(pairs, max(1, len(block)))
        return [(one, rows[owners == one]) for one in np.unique(owners).tolist()]

    def encoded(self) -> Any:  # noqa: ANN401
        """Return the division of keywords."""
        return self.words.encoded()

    @classmethod
    def decoded(cls, partitions: int, kept: Any) -> Self:  # noqa: ANN401
        """Return what was encoded."""
        return cls(partitions, WordPartition.decoded(partitions, kept))


@dataclass(frozen=True, slots=True)
class Prefix(Keyword):
    """See `Distribution`."""

    uses_prefix: ClassVar[bool] = True
