"""What the server counts: what became of every delta, who was parked and why, what was refused and why.

Plain integers in one place; whoever does something counts it. `named` gives them names, which are those
of `ControlService.Status` and never change their meaning (docs/protocol.md).

Of the deltas in outboxes it is always true that

    queued = sent + coalesced + dropped + those that wait
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields
from enum import Enum

from server.errors import Reason
from server.measures import Measures


class ParkReason(Enum):
    """Why the subscriptions of a device are not evaluated until its next hello."""

    AWAY = "AWAY"
    """It was away and has missed more than is kept."""
    SILENT = "SILENT"
    """It was asked where it is and did not answer in time."""
    LEASE_EXPIRED = "LEASE_EXPIRED"
    """It said nothing for longer than its lease."""


class Feed(Enum):
    """A side of the bridge."""

    SOURCE = "SOURCE"
    SINK = "SINK"


_TIMES = ("first_hello_ms", "last_snapshot_ms")
_PRESENT = ("devices", "bridge_failing", "sink_waiting", "kernels_compiled", "measures", "serving_ms")
"""What is not counted but is so now."""


@dataclass(slots=True)
class Counters:
    """How often things have happened since the server began, and how many devices are in which state."""

    hellos: int = 0
    """Hellos received, of devices whose token is known."""
    deltas_queued: int = 0
    """Put in an outbox; one that is sent again counts again."""
    deltas_resent: int = 0
    """Of those, differences that a device asked for when it came back."""
    deltas_sent: int = 0
    """Written to their stream."""
    deltas_late: int = 0
    """Of those, the ones that had waited longer than `Limits.late_ms`."""
    deltas_coalesced: int = 0
    """Replaced by a snapshot, because the device was too slow."""
    deltas_dropped: int = 0
    """Lost with their stream. The device gets them again, or a snapshot, when it comes back."""
    snapshots_sent: int = 0
    """Of the deltas sent, those that begin anew."""
    reports_accepted: int = 0
    """Reports that were taken note of; the latest position of each device is evaluated."""
    reports_superseded: int = 0
    """Reports that gave way in the queue to the next one of their device, whose answer is theirs."""
    reports_repeated: int = 0
    """Reports that came again, or after a later one, and were passed over."""
    requests_unparsable: int = 0
    """Requests, of whatever method, that are no message of its type. Their calls are refused."""
    objects_published: int = 0
    """Objects that were accepted, replacements included."""
    objects_gone: int = 0
    """Objects that expired, were taken back or were replaced."""
    source_refused: int = 0
    """Rows of the source that are no objects that the server accepts."""
    source_unreadable: int = 0
    """Files and entries of the source that cannot be read, and were set aside or passed over."""
    bridge_failures: Counter[Feed] = field(default_factory=Counter)
    """Attempts to read the source or to write the sink that failed."""
    devices_forgotten: int = 0
    """Devices whose subscriptions were ended because they had not been seen for too long."""
    devices_deleted: int = 0
    """Devices of which all that was kept was deleted because somebody asked for it."""
    parked: Counter[ParkReason] = field(default_factory=Counter)
    rejected: Counter[Reason] = field(default_factory=Counter)
    devices: Counter[Enum] = field(default_factory=Counter)
    """Sessions by their state."""
    bridge_failing: Counter[Feed] = field(default_factory=Counter)
    """Streams of the source, and the sink, of which the last attempt has failed."""
    sink_waiting: int = 0
    """Changes that wait to be written to the sink."""
    kernels_compiled: int = 0
    """Kernels that had to be compiled before the server could serve."""
    serving_ms: int = 0
    """Since when the server serves, in steady time, as the two below."""
    first_hello_ms: int = 0
    """When the first hello was received; 0 if none was."""
    last_snapshot_ms: int = 0
    """When the last snapshot was written; 0 if none was."""
    measures: Measures = field(default_factory=Measures)
    """How long things take."""

    def count_hello(self, steady_ms: int) -> None:
        """Note that a hello was received."""
        self.hellos += 1
        self.first_hello_ms = self.first_hello_ms or steady_ms

    def times(self) -> dict[str, int]:
        """Return when the first and the last of something happened, in ms since the server serves."""
        found = {one: getattr(self, one) for one in _TIMES}
        return {name: max(1, at_ms - self.serving_ms) if at_ms else 0 for name, at_ms in found.items()}

    def named(self) -> dict[str, int]:
        """Return all that only grows, by name."""
        found = {one.name: getattr(self, one.name) for one in fields(self)}
        for name in (*_PRESENT, *_TIMES):
            del found[name]
        parked, rejected = found.pop("parked"), found.pop("rejected")
        failures = found.pop("bridge_failures")
        found |= {f"bridge_failures.{one.name}": failures[one] for one in Feed}
        found |= {f"parked.{reason.name}": parked[reason] for reason in ParkReason}
        found |= {f"rejected.{reason.name}": rejected[reason] for reason in Reason if reason}
        return found
