"""How long reports take: from when one was read until its answer was written.

One report at a time is followed on each stream: nearly all of a device that has a stream of its own, a
sample of those of a fleet. A report that gives way to a later one of its device is answered by the answer
to that. One that is refused, or whose device leaves the stream, is followed no further.

Operations: O(1) a report; O(events) a write on a stream of which one is followed.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter_ns

from server.command import Report
from server.distribution import Distribution
from server.session import Event, Outbox
from server.session.events import VersionedDelta

_NS_PER_US = 1_000


def follow(report: Report) -> None:
    """Note when a report was read, unless one of its stream is followed already."""
    outbox, session = report.outbox, report.session
    if outbox.timed_report is None and session is not None and report.sequence > session.report_sequence:
        outbox.timed_report = (report.device_id, report.sequence, perf_counter_ns())


def note_written(outbox: Outbox, events: Sequence[tuple[str, Event]], latency_us: Distribution) -> None:
    """Note how long the report took that is followed, if its answer is among what was written."""
    if outbox.timed_report is None:
        return
    followed_id, sequence, read_ns = outbox.timed_report
    for device_id, event in events:
        if (
            isinstance(event, VersionedDelta)
            and event.report_sequence >= sequence
            and device_id == followed_id
        ):
            latency_us.note((perf_counter_ns() - read_ns) // _NS_PER_US)
            outbox.timed_report = None
            return
    if followed_id not in outbox.devices:
        outbox.timed_report = None
