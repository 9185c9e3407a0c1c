"""Record the past for the cost model of cSkyband: matches of theta, arrivals and departures.

For each subscription (skype.txt section 6.2): prob(theta), the fraction of messages that are at least as
good as theta. The window from which a buffer was built gives n / |W| for the n-th. The number of messages
that have reached that theta since then corrects it, so the next messages are assumed to be like the last
ones. For all subscriptions without a window: the recent number of arriving messages for each departing
one. In a window, as many are assumed to leave as arrive. (Section 6.3 estimates the ratio for windows of
time.)

Operations: O(1) a match, a departing message, and a buffer that is built. 20 bytes a subscription.
"""

from __future__ import annotations

import numpy as np

from index.batches import Floats, Ints
from index.tables.growth import longer
from index.tables.slots import Slots

_PRIOR = 4.0
"""Matches that are assumed to have been as expected, so that a few messages have little effect."""
_FACTOR_MAX = 8.0
_RATIO_MAX = 2.0
_REMEMBERED = 10_000
"""This many of the last messages determine the ratio of arrivals and departures."""


class History:
    """The record of all subscriptions, by their slots."""

    def __init__(self) -> None:
        self._arrived = 0
        """Messages so far."""
        self._come = self._gone = float(_REMEMBERED)
        """Recent arrivals and departures."""
        self._matched: Ints = np.zeros(16, dtype=np.int64)
        """Messages that have reached theta since the buffer was built."""
        self._since: Ints = np.zeros(16, dtype=np.int64)
        """The number of messages that had arrived when it was built."""
        self._probability: Floats = np.zeros(16)
        """The assumed prob(theta) at that time; 0 if nothing is known."""

    def note_arrivals(self, count: int, owners: Slots) -> None:
        """Record messages, and the subscriptions of which they reached theta, a slot for each match."""
        self._arrived += count
        self._come, self._gone = _faded(self._come + count, self._gone)
        self._reserve(owners)
        np.add.at(self._matched, owners, 1)

    def note_gone(self, count: int) -> None:
        """Record messages that have expired or were removed."""
        self._come, self._gone = _faded(self._come, self._gone + count)

    def note_built(self, slots: Slots, held: Ints, window: Ints) -> None:
        """Record that buffers were built of the `held` best of `window` messages, each of its own."""
        self._reserve(slots)
        self._matched[slots] = 0
        self._since[slots] = self._arrived
        self._probability[slots] = held / np.maximum(1, window)

    def forget(self, slots: Slots) -> None:
        """Clear subscriptions; others will get their slots."""
        self._reserve(slots)
        self._probability[slots] = 0.0

    def factors(self, slots: Slots) -> Floats:
        """Return how much more often messages reached theta than the window predicts; 1 if unknown."""
        self._reserve(slots)
        expected = self._probability[slots] * (self._arrived - self._since[slots])
        found: Floats = (self._matched[slots] + _PRIOR) / (expected + _PRIOR)
        found[self._probability[slots] == 0.0] = 1.0
        return np.clip(found, 1.0 / _FACTOR_MAX, _FACTOR_MAX)

    @property
    def ratio(self) -> float:
        """Return the number of arriving messages for each departing one, where there are no windows."""
        return float(np.clip(self._come / self._gone, 1.0 / _RATIO_MAX, _RATIO_MAX))

    def _reserve(self, slots: Slots) -> None:
        size = int(slots.max(initial=-1)) + 1
        self._matched = longer(self._matched, size)
        self._since = longer(self._since, size)
        self._probability = longer(self._probability, size)


def _faded(come: float, gone: float) -> tuple[float, float]:
    """Reduce the weight of older counts."""
    kept = min(1.0, 2 * _REMEMBERED / (come + gone))
    return come * kept, gone * kept
