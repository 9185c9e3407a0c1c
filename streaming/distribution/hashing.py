"""By subscription number: partitions have equally many, and receive all messages (section 7.3.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from index.batches import Ints
from streaming.arrays.blocks import Messages, Subscriptions
from streaming.distribution.contract import Sample


@dataclass(frozen=True, slots=True)
class Hashing:
    """A `Distribution` by number."""

    partitions: int

    @classmethod
    def choose(cls, partitions: int, sample: Sample, first_level: int = 0) -> Self:  # noqa: ARG003
        """Return the only choice."""
        return cls(partitions)

    def place(self, block: Subscriptions) -> Sequence[tuple[int, Subscriptions]]:
        """Return the number of each partition, and its subscriptions."""
        owners = block.subscription_id % self.partitions
        return [(one, block.part(np.flatnonzero(owners == one))) for one in np.unique(owners).tolist()]

    def route(self, block: Messages) -> Sequence[tuple[int, Ints | None]]:  # noqa: ARG002
        """Send all messages to all partitions."""
        return [(one, None) for one in range(self.partitions)]

    def encoded(self) -> Any:  # noqa: ANN401
        """Return None: the number of partitions is enough."""
        return None

    @classmethod
    def decoded(cls, partitions: int, kept: Any) -> Self:  # noqa: ANN401, ARG003
        """Return the distribution from its encoded form."""
        return cls(partitions)
