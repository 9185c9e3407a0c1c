"""The contract of the mechanisms of distribution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from index.batches import Floats, Ints
from streaming.arrays.blocks import Messages, Subscriptions

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample of the rows to be distributed; both parts may be empty.

    Parameters
    ----------
    subscriptions
        Each once, and none that has ended.
    messages
        Some of the messages of the window.
    reach_m
        The reach of each subscription: no message whose length is more affects it. None if unknown.
    """

    subscriptions: Subscriptions
    messages: Messages
    reach_m: Floats | None = None


class Distribution(Protocol):
    """Divides subscriptions among partitions. It is chosen once, from a sample, and kept with the job."""

    @property
    def partitions(self) -> int:
        """The number of partitions."""

    @classmethod
    def choose(cls, partitions: int, sample: Sample, first_level: int = 0) -> Self:
        """Choose a division. O(sample * log).

        Mechanisms that divide twice have `first_level` parts first; 0 makes both divisions alike.
        """

    def place(self, block: Subscriptions) -> Sequence[tuple[int, Subscriptions]]:
        """Return the number of each partition, and the subscriptions that it receives."""

    def route(self, block: Messages) -> Sequence[tuple[int, Ints | None]]:
        """Return the partitions, and the rows that each receives; None for all rows."""

    def encoded(self) -> Any:  # noqa: ANN401
        """Return the distribution in a form for JSON."""

    @classmethod
    def decoded(cls, partitions: int, kept: Any) -> Self:  # noqa: ANN401
        """Return the distribution from its encoded form."""
