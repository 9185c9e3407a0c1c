"""What every mechanism of distribution does."""

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
    """Some of what there is to be distributed; either may be empty.

    Parameters
    ----------
    subscriptions
        Each once, and none that has ended.
    messages
        Some of the window.
    reach_m
        How far each subscription reaches: nothing whose length is more concerns it. Without, nothing is
        known of that.
    """

    subscriptions: Subscriptions
    messages: Messages
    reach_m: Floats | None = None


class Distribution(Protocol):
    """Divides subscriptions among partitions. It is chosen once, from a sample, and kept with the job."""

    @property
    def partitions(self) -> int:
        """How many there are."""

    @classmethod
    def choose(cls, partitions: int, sample: Sample, first_level: int = 0) -> Self:
        """Choose how to divide. O(sample * log).

        Mechanisms that divide twice have `first_level` parts first; 0 lets both divisions be alike.
        """

    def place(self, block: Subscriptions) -> Sequence[tuple[int, Subscriptions]]:
        """Return what each partition is told of subscriptions, with its number."""

    def route(self, block: Messages) -> Sequence[tuple[int, Ints | None]]:
        """Return which partitions are sent which rows; None for all of them."""

    def encoded(self) -> Any:  # noqa: ANN401
        """Return what JSON can keep."""

    @classmethod
    def decoded(cls, partitions: int, kept: Any) -> Self:  # noqa: ANN401
        """Return what was encoded."""
