"""One stream's outbox, shared by the devices that it carries, in the order in which things happened.

The transport waits for `on_ready`, takes what there is, writes it, and says so; nobody waits for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from server.session.events import Event

if TYPE_CHECKING:
    from server.session.session import Session


class Queued:
    """An event waiting to be sent; `event` is None once it was coalesced away."""

    __slots__ = ("device_id", "event", "session")

    def __init__(self, session: Session | None, device_id: str, event: Event) -> None:
        self.session = session
        self.device_id = device_id
        self.event: Event | None = event


class Connection:
    """A stream's outbox.

    Parameters
    ----------
    on_ready
        Called when something is put into an empty outbox.
    """

    def __init__(self, on_ready: Callable[[], None] = lambda: None) -> None:
        self._on_ready = on_ready
        self._outbox: deque[Queued] = deque()
        self.queued_count = 0
        self.taken_count = 0
        self.written_count = 0
        self.closed = False
        self.devices: dict[str, Session] = {}

    def __len__(self) -> int:
        return len(self._outbox)

    def put(self, session: Session | None, device_id: str, event: Event) -> Queued:
        """Append an event. O(1)."""
        item = Queued(session, device_id, event)
        if not self.closed:
            self.queued_count += 1
            self._outbox.append(item)
            if len(self._outbox) == 1:
                self._on_ready()
        return item

    def pop(self) -> Queued:
        """Take the oldest event."""
        self.taken_count += 1
        return self._outbox.popleft()

    def close(self) -> None:
        """Forget what was not sent; nothing can be put any more."""
        self.closed = True
        self._outbox.clear()
        self.taken_count = self.written_count = self.queued_count
        self._on_ready()
