"""The outcome of a batch at a partition, and the pairs that replicas have found for it."""

from __future__ import annotations

from typing import NamedTuple

from index.batches import Ints
from streaming.arrays.blocks import Messages, Subscriptions
from streaming.arrays.changes import Changes


class Counts(NamedTuple):
    """The outcome of the rows of a batch."""

    published: int = 0
    duplicates: int = 0
    """Messages whose object is known."""
    expired: int = 0
    """Messages that arrived after their expiry, or behind the window."""
    retracted: int = 0
    """Retracted messages that were alive, or arrived in this batch."""
    unknown: int = 0
    """Retractions of messages that have not arrived yet."""
    started: int = 0
    ended: int = 0
    evaluated: int = 0
    """Subscriptions that were evaluated because replicas may have missed them."""
    refilled: int = 0
    """Results that were recomputed from the window because their buffer had too few objects."""


class Applied(NamedTuple):
    """A batch that was applied."""

    changes: Changes
    counts: Counts
    messages: Messages | None
    """The messages that have taken a place in the window, followed by the retractions."""
    subscriptions: Subscriptions | None
    """The subscriptions that have started and ended."""


class Found(NamedTuple):
    """The result of replicas: pairs of an object and a subscription that it may affect."""

    object_id: Ints
    handle: Ints
