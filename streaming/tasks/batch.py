"""The rows of a batch that a partition receives, and the memory that it may need for them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

from streaming.arrays.blocks import Messages, Subscriptions
from streaming.tasks.routing import FOUND, MESSAGES, SUBSCRIPTIONS
from streaming.tasks.shared_window import MessageBatch

_BUFFERED_BYTES, _SUBSCRIPTION_BYTES = 50, 3_500
"""Memory of a message and of a subscription in a partition, somewhat more than is usual."""


class Batch(NamedTuple):
    """The rows of a batch."""

    blocks: list[tuple[str, bytes]]
    messages: MessageBatch | None
    subscriptions: Subscriptions | None

    @classmethod
    def of(cls, blocks: list[tuple[str, bytes]]) -> Batch:
        """Read the blocks of a batch."""
        own = [one for one in blocks if one[0] == MESSAGES]
        messages = [Messages.unpack(block) for _, block in own]
        subscriptions = [Subscriptions.unpack(block) for kind, block in blocks if kind == SUBSCRIPTIONS]
        return cls(
            blocks,
            MessageBatch(Messages.join(messages), digest_of(own)) if own else None,
            Subscriptions.join(subscriptions) if subscriptions else None,
        )

    @property
    def digest(self) -> bytes:
        """The digest of the rows on which the response depends.

        The pairs of replicas may differ in a batch that is repeated; the response does not.
        """
        return digest_of([one for one in self.blocks if one[0] != FOUND])

    @property
    def growth_bytes(self) -> int:
        """The bytes by which the index of a partition may grow."""
        return growth_bytes(self.subscriptions) + (
            0 if self.messages is None else _BUFFERED_BYTES * len(self.messages.messages)
        )


def growth_bytes(subscriptions: Subscriptions | None) -> int:
    """Return the bytes by which an index may grow with these subscriptions."""
    return 0 if subscriptions is None else _SUBSCRIPTION_BYTES * len(subscriptions)


def digest_of(blocks: Iterable[tuple[str, bytes]]) -> bytes:
    """Return the digest of blocks in this order."""
    digest = hashlib.blake2b(digest_size=16)
    for kind, block in blocks:
        digest.update(f"{kind} {len(block)} ".encode())
        digest.update(block)
    return digest.digest()
