"""A device's place in its sequence of deltas: what it has applied, was promised, and has acknowledged."""

from __future__ import annotations

from nearcast.errors import NearcastError

_ACK_EVERY = 32
"""Deltas between acks of their own: often enough for a short resume, rare enough to cost nothing."""


class DeltaSequence:
    """The version applied; every delta has the next."""

    def __init__(self) -> None:
        self.version = 0
        """The last one applied."""
        self.epoch = 0
        """Which sequence it belongs to, as the server has named it; 0 before the first welcome."""
        self._promised = 0
        self._acked = 0

    @property
    def is_complete(self) -> bool:
        """Whether all that the last welcome announced has arrived."""
        return self.version >= self._promised

    def welcome(self, version: int, epoch: int, *, resumed: bool, is_empty: bool) -> None:
        """Take over what a welcome announces. Where nothing will follow, that is the state at once."""
        self._promised = version
        self.epoch = epoch
        if not resumed and is_empty:
            self.version = version

    def take(self, version: int, *, is_snapshot: bool) -> bool:
        """Take over a delta's version; return whether it is to be applied.

        Raises
        ------
        NearcastError
            If one is missing: the stream has to be resumed.
        """
        if version <= self.version:
            return False  # a duplicate
        if version != self.version + 1 and not is_snapshot:
            raise NearcastError(f"delta {version} follows {self.version}: the stream has lost something")
        self.version = version
        return True

    @property
    def is_ack_due(self) -> bool:
        """Whether so much has arrived since the last message that an ack of its own is worth it."""
        return self.version - self._acked >= _ACK_EVERY

    def acknowledged(self) -> int:
        """Return the version to tell the server, which now knows it."""
        self._acked = self.version
        return self.version
