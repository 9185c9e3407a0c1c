"""Leases: the server knows that a silent device is alive without knowing its position.

Any message of a device renews its lease; a device that sends nothing for a whole lease is given up.

Operations: renewing O(1) per message (`Session.last_seen_ms`); the rest O(log n), once per lease and
device. Design: a heap with at most one entry per device, due when its lease would have ended as of the
last check. When an entry is due and the device has sent a message since, the entry returns to the heap
for the rest of the time.
"""

from __future__ import annotations

import heapq

from server.session import Session

_NEVER_MS = 2**62


class Leases:
    """The leases of all attached devices.

    Parameters
    ----------
    lease_ms
        How long a device may send nothing; 0 for no limit.
    """

    def __init__(self, lease_ms: int) -> None:
        self.lease_ms = lease_ms
        self.due_ms = _NEVER_MS
        """The earliest possible end of a lease; before it, `expired` finds none."""
        self._due: list[tuple[int, int, Session]] = []
        self.pushed_count = 0
        """How many entries were ever pushed; it orders two entries of the same time."""

    def __len__(self) -> int:
        return len(self._due)

    def begin(self, session: Session, now_ms: int) -> None:
        """Start the lease of a device that has attached."""
        session.last_seen_ms = now_ms
        if self.lease_ms and not session.is_leased:
            session.is_leased = True
            self._push(session)

    def expired(self, now_ms: int) -> list[Session]:
        """Return attached devices that have been silent for too long; their leases have ended."""
        found = []
        while self._due and self._due[0][0] <= now_ms:
            _, _, session = heapq.heappop(self._due)
            if session.outbox is not None and session.last_seen_ms + self.lease_ms > now_ms:
                self._push(session)
                continue
            session.is_leased = False
            if session.outbox is not None:
                found.append(session)
        self.due_ms = self._due[0][0] if self._due else _NEVER_MS
        return found

    def _push(self, session: Session) -> None:
        self.pushed_count += 1
        heapq.heappush(self._due, (session.last_seen_ms + self.lease_ms, self.pushed_count, session))
        self.due_ms = self._due[0][0]
