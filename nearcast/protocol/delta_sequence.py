"""Versions of a device's sequence of deltas: applied, announced and acknowledged."""

from __future__ import annotations

from nearcast.errors import NearcastError

_ACK_EVERY = 32
"""Deltas between separate acks: often enough for a short resume, at negligible cost."""


class DeltaSequence:
    """The last applied version. Each delta has the next version."""

    def __init__(self) -> None:
        self.version = 0
        """Version of the last applied delta."""
        self.epoch = 0
        """The server's number of the sequence; 0 before the first welcome."""
        self._promised = 0
        self._acked = 0

    @property
    def is_complete(self) -> bool:
        """Whether all deltas that the last welcome announced have arrived."""
        return self.version >= self._promised

    def welcome(self, version: int, epoch: int, *, resumed: bool, is_empty: bool) -> None:
        """Record the version that a welcome announces. If no delta will follow, it counts as applied."""
        self._promised = version
        self.epoch = epoch
        if not resumed and is_empty:
            self.version = version

    def take(self, version: int, *, is_snapshot: bool) -> bool:
        """Record the version of a delta; return whether to apply the delta.

        Raises
        ------
        NearcastError
            If a delta is missing: the device has to resume.
        """
        if version <= self.version:
            return False  # a duplicate
        if version != self.version + 1 and not is_snapshot:
            raise NearcastError(f"delta {version} follows {self.version}: the stream lost messages")
        self.version = version
        return True

    @property
    def is_ack_due(self) -> bool:
        """Whether enough deltas have arrived since the last message to send a separate ack."""
        return self.version - self._acked >= _ACK_EVERY

    def acknowledged(self) -> int:
        """Return the version to acknowledge, and record it as acknowledged."""
        self._acked = self.version
        return self.version
