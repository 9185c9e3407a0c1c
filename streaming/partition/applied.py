"""What became of a batch at a partition, and what replicas have found for it."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

from index.batches import Ints
from streaming.arrays.blocks import Messages, Subscriptions
from streaming.arrays.changes import Changes

Log = TypeVar("Log", Messages, Subscriptions)


class Counts(NamedTuple):
    """What became of a batch."""

    published: int = 0
    duplicates: int = 0
    """Messages whose object is known."""
    expired: int = 0
    """Messages that came after their expiry, or behind the window."""
    retracted: int = 0
    """Messages that were alive, or came in this batch."""
    unknown: int = 0
    """What was to be taken back, and was not there yet."""
    started: int = 0
    ended: int = 0
    evaluated: int = 0
    """Subscriptions that replicas may have passed over."""
    refilled: int = 0
    """Results that were built anew from the window: their buffer had too little."""


class Applied(NamedTuple):
    """A batch that was applied."""

    changes: Changes
    counts: Counts
    messages: Messages | None
    """What has taken a place in the window, and behind it what was taken back."""
    subscriptions: Subscriptions | None
    """Who has begun and ended."""


class Found(NamedTuple):
    """What replicas have found: pairs of an object and a subscription it may concern."""

    object_id: Ints
    handle: Ints


class Done(NamedTuple, Generic[Log]):
    """What became of a block, and what is to be logged of it."""

    counts: Counts
    log: Log
