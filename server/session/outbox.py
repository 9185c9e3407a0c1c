"""One stream's outbox, shared by the devices that it carries, in the order in which things happened.

The transport waits for `on_ready`, takes what there is, writes it, and says so. Whoever puts something in
does not wait for that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from server.counters import Counters
from server.principal import ANYBODY, Principal
from server.session.events import Event, SnapshotDue, VersionedDelta

_Session = TypeVar("_Session")
"""A device's session: an outbox carries it and knows nothing of it."""

NEVER_LATE_MS = 2**62
_NOTHING: deque[Any] = deque()
"""The outbox of a connection that has nothing to say; one of its own takes 760 bytes."""


def _nobody() -> None:
    """Stand for who waits for an outbox when nobody does."""


class Queued(Generic[_Session]):
    """An event waiting to be sent; `event` is None once it was coalesced away or dropped."""

    __slots__ = ("device_id", "event", "queued_ms", "session")

    def __init__(self, session: _Session | None, device_id: str, event: Event, queued_ms: int) -> None:
        self.session = session
        self.device_id = device_id
        self.event: Event | None = event
        self.queued_ms = queued_ms


class SessionOutbox(Generic[_Session]):
    """A stream's outbox.

    Deltas are bounded by their sessions, which coalesce them. What answers the device's own commands
    (`answers_count`) is bounded by whoever reads those: they wait while too much has not been written.

    Parameters
    ----------
    on_ready
        Called when something is put into an empty outbox.
    counters
        Where what becomes of deltas is counted.
    clock
        Monotonic milliseconds.
    late_ms
        Deltas that wait longer are counted as late.
    principal
        Whose stream it is.
    """

    __slots__ = (
        "__weakref__",
        "_answers_taken",
        "_clock",
        "_counters",
        "_late_ms",
        "_on_ready",
        "_outbox",
        "_writing",
        "answers_count",
        "closed",
        "devices",
        "principal",
        "queued_count",
        "taken_count",
        "timed_report",
        "written_count",
    )

    def __init__(
        self,
        on_ready: Callable[[], None] = _nobody,
        counters: Counters | None = None,
        clock: Callable[[], int] = lambda: 0,
        late_ms: int = NEVER_LATE_MS,
        principal: Principal = ANYBODY,
    ) -> None:
        self.principal = principal
        self._on_ready = on_ready
        self._counters = counters or Counters()
        self._clock = clock
        self._late_ms = late_ms
        self._outbox = _NOTHING
        self._writing: list[tuple[int, bool]] = []
        # Deltas taken and not yet written: since when they waited, and whether they are snapshots.
        self.queued_count = 0
        self.taken_count = 0
        self.written_count = 0
        self.answers_count = 0
        """Events without a version that were not written yet."""
        self._answers_taken = 0
        self.closed = False
        self.devices: dict[str, _Session] = {}
        self.timed_report: tuple[str, int, int] | None = None
        """A report of which it is measured how long its answer takes, of one at a time: of which device,
        its sequence, when it was read in ns."""

    def __len__(self) -> int:
        return len(self._outbox)

    def put(self, session: _Session | None, device_id: str, event: Event) -> Queued[_Session]:
        """Append an event. O(1)."""
        item = Queued(session, device_id, event, self._clock())
        is_delta = isinstance(event, VersionedDelta)
        self._counters.deltas_queued += is_delta
        if self.closed:
            item.event = None
            self._counters.deltas_dropped += is_delta
            return item
        self.queued_count += 1
        self.answers_count += not is_delta
        if self._outbox:
            self._outbox.append(item)
        else:
            self._outbox = deque((item,))
            self._on_ready()
        return item

    def pop(self) -> Queued[_Session]:
        """Take the oldest event. Those with an event are to be written, and `wrote` called."""
        item: Queued[_Session] = self._outbox.popleft()
        if not self._outbox:
            self._outbox = _NOTHING
        self.taken_count += 1
        if isinstance(item.event, VersionedDelta):
            self._writing.append((item.queued_ms, item.event.delta.snapshot))
        elif item.event is not None and not isinstance(item.event, SnapshotDue):
            self._answers_taken += 1
        return item

    def put_back(self, marker: Queued[_Session]) -> None:
        """Put back what was taken last: it is still to become more snapshots."""
        if self._outbox:
            self._outbox.appendleft(marker)
        else:
            self._outbox = deque((marker,))
        self.taken_count -= 1

    def take_early(self, item: Queued[_Session]) -> Event | None:
        """Take an event without a version, from farther behind; it is not there any more."""
        event = item.event
        item.event = None
        self._answers_taken += event is not None
        return event

    def take_snapshots(self, marker: Queued[_Session], count: int) -> None:
        """Note that a marker became so many snapshots, which are to be written."""
        self._counters.deltas_queued += count
        self._writing += [(marker.queued_ms, True)] * count

    def wrote(self) -> None:
        """Note that everything taken has been written."""
        self.written_count = self.taken_count
        self.answers_count -= self._answers_taken
        self._answers_taken = 0
        if self._writing:
            now_ms = self._clock()
            late_ms = now_ms - self._late_ms
            counters = self._counters
            snapshots_before = counters.snapshots_sent
            counters.deltas_sent += len(self._writing)
            note_delay = counters.measures.delta_delay_ms.note
            for queued_ms, is_snapshot in self._writing:
                note_delay(now_ms - queued_ms)
                counters.deltas_late += queued_ms < late_ms
                counters.snapshots_sent += is_snapshot
            if counters.snapshots_sent > snapshots_before:
                counters.last_snapshot_ms = now_ms
            self._writing.clear()

    def close(self) -> None:
        """Forget what was not written; nothing can be put any more."""
        if self.closed:
            return
        self.closed = True
        waiting = sum(isinstance(item.event, VersionedDelta) for item in self._outbox)
        self._counters.deltas_dropped += waiting + len(self._writing)
        self._writing.clear()
        self._outbox = _NOTHING
        self.taken_count = self.written_count = self.queued_count
        self.answers_count = self._answers_taken = 0
        self._on_ready()
        self._on_ready = _nobody  # who waited may know this connection: no cycle is left behind
