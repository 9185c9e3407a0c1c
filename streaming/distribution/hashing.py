"""By the subscription's number: partitions have as many each, and are sent everything (section 7.3.1)."""

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
    """See `Distribution`."""

    partitions: int

    @classmethod
    def choose(cls, partitions: int, sample: Sample, first_level: int = 0) -> Self:  # noqa: ARG003
        """Return the only choice there is."""
        return cls(partitions)

    def place(self, block: Subscriptions) -> Sequence[tuple[int, Subscriptions]]:
        """Return what each partition is told of subscriptions."""
        owners = block.subscription_id % self.partitions
        return [(one, block.part(np.flatnonzero(owners == one))) for one in np.unique(owners).tolist()]

    def route(self, block: Messages) -> Sequence[tuple[int, Ints | None]]:  # noqa: ARG002
        """Send everything to everybody."""
        return [(one, None) for one in range(self.partitions)]

    def encoded(self) -> Any:  # noqa: ANN401
        """Return nothing: the number of partitions says it all."""
        return None

    @classmethod
    def decoded(cls, partitions: int, kept: Any) -> Self:  # noqa: ANN401, ARG003
        """Return what was encoded."""
        return cls(partitions)
