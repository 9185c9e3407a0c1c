"""The outbox of one stream, shared by the devices that it carries, in the order of the events.

The transport waits for `on_ready`, takes the waiting events, writes them, and calls `wrote`. Adding an
event does not wait for the transport.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from identity.principal import ANYBODY, Principal
from server.counters import Counters
from server.session.events import Event, SnapshotDue, VersionedDelta

_Session = TypeVar("_Session")
"""A device's session: an outbox carries it and does not use it."""

NEVER_LATE_MS = 2**62
_NOTHING: deque[Any] = deque()
"""The shared empty outbox of idle connections; a separate one takes 760 bytes."""


def _nobody() -> None:
    """Do nothing, as the default of `on_ready`."""


class Queued(Generic[_Session]):
    """An event that waits to be sent; `event` is None once it was coalesced or dropped."""

    __slots__ = ("device_id", "event", "queued_ms", "session")

    def __init__(self, session: _Session | None, device_id: str, event: Event, queued_ms: int) -> None:
        self.session = session
        self.device_id = device_id
        self.event: Event | None = event
        self.queued_ms = queued_ms


class SessionOutbox(Generic[_Session]):
    """The outbox of a stream.

    The sessions bound the number of deltas by coalescing them. The reader of the device's commands bounds
    the responses to them (`answers_count`): it pauses while too many have not been written.

    Parameters
    ----------
    on_ready
        Called when an event is added to an empty outbox.
    counters
        Count the fates of deltas.
    clock
        Monotonic milliseconds.
    late_ms
        Deltas that wait longer are counted as late.
    principal
        The principal of the stream.
    """

    __slots__ = (
        "__weakref__",
        "_answers_taken",
        "_behind",
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
        # Deltas that were taken and not yet written: when they were queued, and whether they are
        # snapshots.
        self.queued_count = 0
        self.taken_count = 0
        self.written_count = 0
        self.answers_count = 0
        """Number of events without a version that were not written yet."""
        self._answers_taken = 0
        self._behind: Queued[_Session] | None = None
        """The last marker that was put back."""
        self.closed = False
        self.devices: dict[str, _Session] = {}
        self.timed_report: tuple[str, int, int] | None = None
        """The report whose response time is measured, if any: device, sequence, time read in ns."""

    def __len__(self) -> int:
        return len(self._outbox)

    @property
    def delta_count(self) -> int:
        """The number of deltas that wait. O(events that wait)."""
        return sum(isinstance(item.event, VersionedDelta) for item in self._outbox)

    @property
    def is_behind(self) -> bool:
        """Whether a device gets snapshots in slices, and some of them are still to be made."""
        return bool(self._outbox) and self._outbox[0] is self._behind

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
        """Pop the oldest item. If it has an event, the caller writes it, and then calls `wrote`."""
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
        """Put back the marker that was taken last: it is to become more snapshots."""
        self._behind = marker
        if self._outbox:
            self._outbox.appendleft(marker)
        else:
            self._outbox = deque((marker,))
        self.taken_count -= 1

    def take_early(self, item: Queued[_Session]) -> Event | None:
        """Take an event without a version from further back in the queue, and empty its item."""
        event = item.event
        item.event = None
        self._answers_taken += event is not None
        return event

    def take_snapshots(self, marker: Queued[_Session], count: int) -> None:
        """Record that a marker became `count` snapshots, which are to be written."""
        self._counters.deltas_queued += count
        self._writing += [(marker.queued_ms, True)] * count

    def wrote(self) -> None:
        """Record that all items taken have been written."""
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
        """Drop the events that were not written, and accept no more."""
        if self.closed:
            return
        self.closed = True
        self._counters.deltas_dropped += self.delta_count + len(self._writing)
        self._writing.clear()
        self._outbox, self._behind = _NOTHING, None
        self.taken_count = self.written_count = self.queued_count
        self.answers_count = self._answers_taken = 0
        self._on_ready()
        self._on_ready = _nobody  # the callback may refer to this connection: avoid a cycle
