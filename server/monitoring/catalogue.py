"""The metrics: names, helps and labels. Prometheus gets the values that `Status` has under a name.

A dotted name, `parked.AWAY`, is a metric with a label. Labels have only the values of enumerations of the
program, so that the number of series does not depend on the number of devices.
"""

from __future__ import annotations

from typing import NamedTuple

PREFIX = "nearcast_"


class Metric(NamedTuple):
    """One metric.

    Parameters
    ----------
    help_text
        Its description.
    label
        The label that distinguishes its series; empty if there is one series.
    """

    help_text: str
    label: str = ""


COUNTERS = {
    "hellos": Metric("Hellos received, of devices that were let in."),
    "reports_accepted": Metric("Reports that were taken note of."),
    "reports_superseded": Metric("Reports that gave way, in the queue, to the next one of their device."),
    "reports_repeated": Metric("Reports that came again or late and were passed over."),
    "deltas_queued": Metric("Deltas put into outboxes."),
    "deltas_resent": Metric("Of those, the ones that devices had missed and asked for."),
    "deltas_sent": Metric("Deltas written to their streams."),
    "deltas_late": Metric("Of those, the ones that had waited longer than late_ms."),
    "snapshots_sent": Metric("Of the deltas sent, those that begin anew."),
    "deltas_coalesced": Metric("Deltas replaced by a snapshot, since their device was too slow."),
    "deltas_dropped": Metric("Deltas lost with their stream; the device gets them when it comes back."),
    "objects_published": Metric("Objects accepted, replacements included."),
    "objects_gone": Metric("Objects that expired, were taken back or were replaced."),
    "requests_unparsable": Metric("Requests that are no message of their type."),
    "source_refused": Metric("Rows of the source that are no objects that the server accepts."),
    "source_unreadable": Metric("Files and entries of the source that were set aside or passed over."),
    "bridge_failures": Metric("Attempts to read the source or to write the sink that failed.", "feed"),
    "devices_forgotten": Metric("Devices that were not seen for too long."),
    "devices_deleted": Metric("Devices of which all that was kept was deleted on request."),
    "parked": Metric("Devices that were parked.", "reason"),
    "rejected": Metric("Commands and calls that were refused.", "reason"),
}
"""Metrics that only grow, by the name in `Status`."""

GAUGES = {
    "devices": Metric("Devices; CATCHING_UP are those that read too slowly.", "state"),
    "subscriptions": Metric("Subscriptions, parked ones included."),
    "subscriptions_by_kind": Metric("Subscriptions, parked ones included.", "kind"),
    "objects": Metric("Live objects."),
    "streams": Metric("Streams of devices and fleets."),
    "commands_waiting": Metric("Commands that were read and not yet carried out."),
    "events_waiting": Metric("Events in outboxes."),
    "late_mutations_waiting": Metric("Rows to be written that nobody waits for."),
    "sink_waiting": Metric("Changes of objects that wait to be written to the sink."),
    "bridge_failing": Metric("Streams of the source, and the sink, that are tried again.", "feed"),
    "memory_bytes": Metric("Size of the engine's arrays.", "part"),
    "store_bytes": Metric("Size of the store on disk.", "file"),
    "kernels_compiled": Metric("Kernels that had to be compiled before the server could serve."),
    "kernels_compiled_late": Metric("Kernels compiled since: each of them held everybody up."),
    "idf_generation": Metric("The latest table of weights of keywords; 0 for none."),
    "idf_coming_into_force": Metric("Whether a table of weights is coming into force."),
    "first_hello_ms": Metric("From when the server began to serve to the first hello; 0 if none came."),
    "last_snapshot_ms": Metric("The same to the last snapshot that was written."),
}
"""Metrics of the present state, by the name in `Status`."""

MEASURES = {
    "report_latency_us": Metric(
        "From reading a report to writing its answer; of one a stream at a time."
    ),
    "delta_delay_ms": Metric("How long deltas waited in outboxes."),
    "publication_us": Metric("From reading a publish request to its objects being on disk and matched."),
    "commit_us": Metric("Commits of the store."),
    "commit_rows": Metric("Rows of a commit."),
    "retrieval_us": Metric("Looking up objects for a batch of evaluations, in a thread."),
    "slice_us": Metric("What the event loop computes for commands at a stretch, in CPU time."),
    "evaluation_us": Metric("Batches of evaluations, on the event loop."),
    "evaluation_subscriptions": Metric("Subscriptions of a batch of evaluations."),
}
"""Distributions since the server started, by the name in `Status`."""

SILENCE = "silence_ms"
SILENCE_HELP = "How long ago attached devices were last seen; a distribution of now."
