"""The counters of the server: the fates of deltas, and the reasons of parking and refusals.

Plain integers in one place; the code of each event increments them. `named` gives them the names of
`ControlService.Status`, which never change their meaning (docs/protocol.md).

For the deltas in outboxes this is always true:

    queued = sent + coalesced + dropped + waiting
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields
from enum import Enum

from nearcast.errors import Reason
from server.measures import Measures


class ParkReason(Enum):
    """Why the subscriptions of a device are not evaluated until its next hello."""

    AWAY = "AWAY"
    """The device was disconnected and has missed more than is kept."""
    SILENT = "SILENT"
    """The device did not respond to a location request in time."""
    LEASE_EXPIRED = "LEASE_EXPIRED"
    """The device sent nothing for longer than its lease."""


class Feed(Enum):
    """A side of the bridge."""

    SOURCE = "SOURCE"
    SINK = "SINK"


_TIMES = ("first_hello_ms", "last_snapshot_ms")
_PRESENT = (
    "devices",
    "bridge_failing",
    "sink_waiting",
    "kernels_compiled",
    "kernels_missing",
    "measures",
    "serving_ms",
)
"""Gauges of the present state."""


@dataclass(slots=True)
class Counters:
    """The numbers of events since the server started, and of devices in each state."""

    hellos: int = 0
    """Hellos received, of devices whose token is known."""
    deltas_queued: int = 0
    """Put in an outbox; a delta that is sent again counts again."""
    deltas_resent: int = 0
    """Of those, deltas that a device requested when it reconnected."""
    deltas_sent: int = 0
    """Written to their stream."""
    deltas_late: int = 0
    """Of those, deltas that had waited longer than `Limits.late_ms`."""
    deltas_coalesced: int = 0
    """Replaced by a snapshot, because the device was too slow."""
    deltas_dropped: int = 0
    """Lost with their stream. The device gets them again, or a snapshot, when it reconnects."""
    snapshots_sent: int = 0
    """Of the deltas sent, the snapshots."""
    reports_accepted: int = 0
    """Reports that were recorded; the latest position of each device is evaluated."""
    reports_superseded: int = 0
    """Reports that gave way in the queue to the next one of their device, and share its response."""
    reports_repeated: int = 0
    """Reports that came again, or after a later one, and were ignored."""
    requests_unparsable: int = 0
    """Requests of any method that are no message of its type. Their calls are refused."""
    objects_published: int = 0
    """Objects that were accepted, replacements included."""
    objects_gone: int = 0
    """Objects that expired, were retracted or were replaced."""
    source_refused: int = 0
    """Rows of the source that are not valid objects."""
    source_unreadable: int = 0
    """Files and entries of the source that cannot be read, and were set aside or skipped."""
    bridge_failures: Counter[Feed] = field(default_factory=Counter)
    """Attempts to read the source or to write the sink that failed."""
    devices_forgotten: int = 0
    """Devices whose subscriptions were ended because they had not been seen for too long."""
    devices_deleted: int = 0
    """Devices whose data was deleted on request."""
    parked: Counter[ParkReason] = field(default_factory=Counter)
    rejected: Counter[Reason] = field(default_factory=Counter)
    devices: Counter[Enum] = field(default_factory=Counter)
    """Sessions by their state."""
    bridge_failing: Counter[Feed] = field(default_factory=Counter)
    """Streams of the source, and the sink, whose last attempt has failed."""
    sink_waiting: int = 0
    """Changes that wait to be written to the sink."""
    kernels_compiled: int = 0
    """Kernels that had to be compiled before the server could serve."""
    kernels_missing: int = 0
    """Kernels that are still to be compiled before the server can serve."""
    serving_ms: int = 0
    """The time at which serving started, on the steady clock, as the two below."""
    first_hello_ms: int = 0
    """The time of the first hello; 0 if there was none."""
    last_snapshot_ms: int = 0
    """The time at which the last snapshot was written; 0 if none was."""
    measures: Measures = field(default_factory=Measures)
    """Distributions of durations and sizes."""

    def count_hello(self, steady_ms: int) -> None:
        """Count a hello."""
        self.hellos += 1
        self.first_hello_ms = self.first_hello_ms or steady_ms

    def times(self) -> dict[str, int]:
        """Return the times of the first hello and the last snapshot, in ms since serving started."""
        found = {one: getattr(self, one) for one in _TIMES}
        return {name: max(1, at_ms - self.serving_ms) if at_ms else 0 for name, at_ms in found.items()}

    def named(self) -> dict[str, int]:
        """Return all values that only grow, by name."""
        found = {one.name: getattr(self, one.name) for one in fields(self)}
        for name in (*_PRESENT, *_TIMES):
            del found[name]
        parked, rejected = found.pop("parked"), found.pop("rejected")
        failures = found.pop("bridge_failures")
        found |= {f"bridge_failures.{one.name}": failures[one] for one in Feed}
        found |= {f"parked.{reason.name}": parked[reason] for reason in ParkReason}
        found |= {f"rejected.{reason.name}": rejected[reason] for reason in Reason if reason}
        return found
