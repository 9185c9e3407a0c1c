"""Deltas kept for a device that may resume, bounded in count and in bytes.

Operations: O(1) per delta kept, O(kept) to remove one and for a resume. They are lists, since a million
devices keep a few each: an empty `deque` is ten times as large.
"""

from __future__ import annotations

from collections.abc import Iterator

from server.limits import Limits
from server.session.events import VersionedDelta


class ReplayBuffer:
    """The deltas of versions in (`floor`, latest].

    Parameters
    ----------
    floor
        The version after which everything is kept.
    """

    __slots__ = ("_bytes", "_deltas", "floor")

    def __init__(self, floor: int) -> None:
        self.floor = floor
        self._deltas: list[VersionedDelta] = []
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._deltas)

    def keep(self, delta: VersionedDelta) -> None:
        """Append a delta."""
        self._deltas.append(delta)
        self._bytes += delta.size_bytes

    def is_beyond(self, limits: Limits) -> bool:
        """Return whether the buffer exceeds the limits."""
        return len(self._deltas) > limits.retained_max or self._bytes > limits.retained_bytes_max

    def forget_oldest(self) -> None:
        """Remove the oldest delta: a device that has not applied it cannot resume."""
        delta = self._deltas.pop(0)
        self._bytes -= delta.size_bytes
        self.floor = delta.version

    def forget_until(self, version: int) -> None:
        """Remove deltas up to a version, since the device has applied them."""
        while self._deltas and self._deltas[0].version <= version:
            self.forget_oldest()

    def since(self, version: int) -> Iterator[VersionedDelta]:
        """Yield the deltas after a version, oldest first."""
        return (delta for delta in self._deltas if delta.version > version)
