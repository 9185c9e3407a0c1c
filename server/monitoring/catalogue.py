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
    "hellos": Metric("Hellos received from authenticated devices."),
    "reports_accepted": Metric("Reports accepted."),
    "reports_superseded": Metric("Reports replaced in the queue by a later report of their device."),
    "reports_repeated": Metric("Repeated or late reports, which were ignored."),
    "deltas_queued": Metric("Deltas put into outboxes."),
    "deltas_resent": Metric("Deltas sent again after a reconnect, of the deltas queued."),
    "deltas_sent": Metric("Deltas written to streams."),
    "deltas_late": Metric("Deltas that waited longer than late_ms, of the deltas sent."),
    "snapshots_sent": Metric("Snapshots, of the deltas sent."),
    "deltas_coalesced": Metric("Deltas replaced by a snapshot because their device was too slow."),
    "deltas_dropped": Metric(
        "Deltas lost with their stream; the device receives them when it reconnects."
    ),
    "objects_published": Metric("Objects accepted, including replacements."),
    "objects_gone": Metric("Objects that expired, were retracted or were replaced."),
    "requests_unparsable": Metric("Requests that could not be parsed."),
    "source_refused": Metric("Rows of the source that are not valid objects."),
    "source_unreadable": Metric("Files and entries of the source that were set aside or skipped."),
    "bridge_failures": Metric("Failed attempts to read the source or to write the sink.", "feed"),
    "devices_forgotten": Metric("Devices deleted because they were not seen for too long."),
    "devices_deleted": Metric("Devices deleted on request."),
    "parked": Metric("Devices parked.", "reason"),
    "rejected": Metric("Commands and calls refused.", "reason"),
}
"""Metrics that only grow, by the name in `Status`."""

GAUGES = {
    "devices": Metric("Devices by state; devices that are CATCHING_UP read too slowly.", "state"),
    "subscriptions": Metric("Subscriptions, including parked ones."),
    "subscriptions_by_kind": Metric("Subscriptions, including parked ones.", "kind"),
    "objects": Metric("Live objects."),
    "streams": Metric("Streams of devices and fleets."),
    "commands_waiting": Metric("Commands that were read and not yet processed."),
    "tenants_paced": Metric("Tenants that are slowed down, because others wait for the server."),
    "cluster_nodes": Metric("Nodes of the cluster, as this node knows them; 0 for a server by itself."),
    "cluster_slots": Metric("Slots of devices that this node of a cluster serves, of 1,024."),
    "cluster_lease_valid": Metric("Whether the lease of this node is valid: 1 or 0."),
    "cluster_rules": Metric("Version of the rules of applying the log that is in force."),
    "cluster_source": Metric("Whether this node reads the source of the cluster: 1 or 0."),
    "cluster_sink": Metric("Whether this node writes to the sink of the cluster: 1 or 0."),
    "cluster_log_offset": Metric("Offset in the log up to which this node has applied it."),
    "cluster_stored_offset": Metric(
        "Offset in the log up to which the store of this node has it; the log keeps what comes after."
    ),
    "cluster_log_lag_ms": Metric("Time by which the clock of this node is ahead of the log."),
    "cluster_devices_lagging": Metric(
        "Attached devices whose results lag behind the log of the cluster."
    ),
    "events_waiting": Metric("Events in outboxes."),
    "late_mutations_waiting": Metric("Rows that wait to be written and that no command waits for."),
    "sink_waiting": Metric("Changes of objects that wait to be written to the sink."),
    "bridge_failing": Metric("Streams of the source, and the sink, with a failed last attempt.", "feed"),
    "memory_bytes": Metric("Size of the engine's arrays.", "part"),
    "store_bytes": Metric("Size of the store on disk.", "file"),
    "kernels_compiled": Metric("Kernels that had to be compiled before the server could serve."),
    "kernels_missing": Metric("Kernels still to be compiled before the server can serve."),
    "kernels_compiled_late": Metric(
        "Kernels compiled since the server started to serve; each blocked the event loop."
    ),
    "idf_generation": Metric("Generation of the latest table of keyword weights; 0 for none."),
    "idf_coming_into_force": Metric("Whether a table of keyword weights is coming into force: 1 or 0."),
    "first_hello_ms": Metric("Time from the start of serving to the first hello; 0 without a hello."),
    "last_snapshot_ms": Metric("Time from the start of serving to the last snapshot written."),
}
"""Metrics of the present state, by the name in `Status`."""

MEASURES = {
    "report_latency_us": Metric(
        "Time from reading a report to writing its response, for one report at a time on each stream."
    ),
    "delta_delay_ms": Metric("Time that deltas waited in outboxes."),
    "publication_us": Metric(
        "Time from reading a publish request until its objects are on disk and matched."
    ),
    "commit_us": Metric("Duration of commits of the store."),
    "commit_rows": Metric("Rows per commit."),
    "retrieval_us": Metric("Duration of object look-ups for a batch of evaluations, in a thread."),
    "slice_us": Metric("CPU time of uninterrupted slices of the event loop for commands."),
    "evaluation_us": Metric("Duration of batches of evaluations on the event loop."),
    "evaluation_subscriptions": Metric("Subscriptions per batch of evaluations."),
}
"""Distributions since the server started, by the name in `Status`."""

SILENCE = "silence_ms"
SILENCE_HELP = "Current distribution of the times since attached devices were last seen."
