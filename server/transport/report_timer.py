"""Latency of reports: from the time a report was read until its response was written.

One report at a time is timed on each stream: nearly all of a device with its own stream, a sample of
those of a fleet. The response to a later report of the device is also the response to one that gave way
to it. The timing of a report is dropped if it is refused, or if its device leaves the stream.

Operations: O(1) per report; O(events) per write on a stream with a timed report.
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
    """Start timing a report, unless another one of its stream is timed already."""
    outbox, session = report.outbox, report.session
    if outbox.timed_report is None and session is not None and report.sequence > session.report_sequence:
        outbox.timed_report = (report.device_id, report.sequence, perf_counter_ns())


def note_written(outbox: Outbox, events: Sequence[tuple[str, Event]], latency_us: Distribution) -> None:
    """Record the latency of the timed report, if its response is among the written events."""
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
