"""What the cost model of cSkyband takes from the past: how often theta is reached, what comes and goes.

Of a subscription (skype.txt section 6.2): prob(theta), the share of messages that are at least as good as
theta. The window that a buffer was built from says n / |W| for the n-th; how many of the messages that
have come since reached that theta corrects it, so messages of the next time are taken to be as those of
the last. Of all (section 6.3): how many messages come for each that goes, lately.

Operations: O(1) a match, a message that goes, and a buffer that is built. 20 bytes a subscription.
"""

from __future__ import annotations

import numpy as np

from index.batches import Floats, Ints
from index.tables.growth import longer
from index.tables.slots import Slots

_PRIOR = 4.0
"""Matches that are taken to have been as expected, so that few messages say little."""
_FACTOR_MAX = 8.0
_RATIO_MAX = 2.0
_REMEMBERED = 10_000
"""So many of the last messages make the ratio of those that come and go."""


class History:
    """What was seen of all subscriptions, by their slots."""

    def __init__(self) -> None:
        self._arrived = 0
        """Messages so far."""
        self._come = self._gone = float(_REMEMBERED)
        """The same lately, and those that went."""
        self._matched: Ints = np.zeros(16, dtype=np.int64)
        """Messages that have reached theta since the buffer was built."""
        self._since: Ints = np.zeros(16, dtype=np.int64)
        """How many had arrived when it was built."""
        self._probability: Floats = np.zeros(16)
        """What prob(theta) was taken to be then; 0 if nothing is known."""

    def note_arrivals(self, count: int, owners: Slots) -> None:
        """Note messages, and whose theta they have reached, a slot for each match."""
        self._arrived += count
        self._come, self._gone = _faded(self._come + count, self._gone)
        self._reserve(owners)
        np.add.at(self._matched, owners, 1)

    def note_gone(self, count: int) -> None:
        """Note messages that have left the window or ended."""
        self._come, self._gone = _faded(self._come, self._gone + count)

    def note_built(self, slots: Slots, held: Ints, window: int) -> None:
        """Note that buffers were built of the `held` best of so many messages."""
        self._reserve(slots)
        self._matched[slots] = 0
        self._since[slots] = self._arrived
        self._probability[slots] = held / max(1, window)

    def forget(self, slots: Slots) -> None:
        """Forget subscriptions; others will have their slots."""
        self._reserve(slots)
        self._probability[slots] = 0.0

    def factors(self, slots: Slots) -> Floats:
        """Return how much more often than the window says messages have reached theta; 1 if unknown."""
        self._reserve(slots)
        expected = self._probability[slots] * (self._arrived - self._since[slots])
        found: Floats = (self._matched[slots] + _PRIOR) / (expected + _PRIOR)
        found[self._probability[slots] == 0.0] = 1.0
        return np.clip(found, 1.0 / _FACTOR_MAX, _FACTOR_MAX)

    @property
    def ratio(self) -> float:
        """How many messages come for each that goes."""
        return float(np.clip(self._come / self._gone, 1.0 / _RATIO_MAX, _RATIO_MAX))

    def _reserve(self, slots: Slots) -> None:
        size = int(slots.max(initial=-1)) + 1
        self._matched = longer(self._matched, size)
        self._since = longer(self._since, size)
        self._probability = longer(self._probability, size)


def _faded(come: float, gone: float) -> tuple[float, float]:
    """Let the older of what was counted count less."""
    kept = min(1.0, 2 * _REMEMBERED / (come + gone))
    return come * kept, gone * kept
