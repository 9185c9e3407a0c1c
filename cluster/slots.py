"""Slots: the devices of a cluster in 1,024 parts, each of which one node serves at a time.

A device belongs to the slot of its id. A hash of slot and node decides which node is preferred
(rendezvous hashing): all nodes agree without a table, and if a node joins or leaves, only its slots move.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection

SLOTS = 1_024

_BYTES = 8


def slot_of(device_id: str) -> int:
    """Return the slot of a device, whose id is qualified by its tenant. O(length)."""
    return _hash(device_id.encode()) % SLOTS


def preferred(slot: int, nodes: Collection[str]) -> str:
    """Return the node that serves a slot while these nodes are there; empty for no nodes. O(nodes)."""
    return max(nodes, key=lambda node: (_weight(slot, node), node), default="")


def _weight(slot: int, node: str) -> int:
    return _hash(f"{slot}/{node}".encode())


def _hash(data: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(data, digest_size=_BYTES).digest(), "little")
