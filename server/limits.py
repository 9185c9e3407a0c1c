"""Every bound of the server on data from others: what is valid (`nearcast.limits`), and capacities."""

from __future__ import annotations

from dataclasses import dataclass

from nearcast import limits

KEEPALIVE_MS = 240_000
"""Interval of keepalive pings on a quiet connection.

A device's own pings, every third of a lease of ten minutes, come first: a silent phone wakes its radio
for these alone.
"""

_KEEPALIVE_TIMEOUT_MS = 10_000


def keepalive_timeout_ms(keepalive_ms: int) -> int:
    """Return how long a keepalive ping may stay without a response."""
    return min(keepalive_ms, _KEEPALIVE_TIMEOUT_MS)


def dead_connection_ms(keepalive_ms: int) -> int:
    """Return the time until a dead connection is closed: one ping, and its timeout."""
    return keepalive_ms + keepalive_timeout_ms(keepalive_ms)


@dataclass(frozen=True, slots=True)
class Limits(limits.Limits):
    """Inclusive limits, those on the server's own resources included."""

    outbox_max: int = 256
    """Deltas waiting for a slow device; beyond, they coalesce into snapshots of the latest state."""
    outbox_bytes_max: int = 1024 * 1024
    """Bytes of deltas waiting for a slow device, roughly."""
    slice_bytes_max: int = 32 * 1024
    """Size of the snapshots made at a time, some milliseconds; the last may exceed it."""
    retained_max: int = 64
    """Deltas kept for a resume; beyond, a detached device is parked.

    It then resumes with snapshots, which are smaller by then.
    """
    retained_bytes_max: int = 256 * 1024
    """Bytes of deltas kept for a resume, roughly."""
    answers_max: int = 10_000
    """Responses waiting to be written on a stream; beyond, it is not read until some have been."""
    late_ms: int = 1_000
    """Deltas that wait longer before they are written are counted as late."""
    answer_ms_max: int = 10_000
    """Time for a device to respond to a location request; beyond, it is detached and parked."""
    take_over_ms: int = 10_000
    """How long an instance that took the place of another one cannot be replaced itself.

    It doubles each time that another one replaces it within as long again: two that both insist do not
    replace each other for ever.
    """
    take_over_ms_max: int = 3_600_000
    """Maximum of `take_over_ms` after doubling."""
    dead_connection_ms: int = dead_connection_ms(KEEPALIVE_MS)
    """Time until a dead connection is closed; set from the keepalive."""
    queue_max: int = 100_000
    """Commands waiting for the engine; beyond, streams are not read until it has caught up."""
    batch_max: int = 2_048
    """Commands taken at a time: enough for an efficient batch, a quarter of a second of re-anchors."""
    batch_rows_max: int = 10_000
    """Rows after which a batch takes no further command: a few milliseconds of writing."""
    sink_max: int = 1_000_000
    """Changes of objects that wait to be written to the sink; beyond, publications are refused."""
    publisher_objects_max: int = 1_000_000
    """Live objects of one publisher; 0 for no limit."""
    publisher_bytes_max: int = 1024 * 1024 * 1024
    """Bytes of the payloads of one publisher's live objects; 0 for no limit."""
    tenant_objects_max: int = 0
    """Live objects of one tenant; 0 for no limit."""
    tenant_bytes_max: int = 0
    """Bytes of the payloads of one tenant's live objects; 0 for no limit."""
    tenant_subscriptions_max: int = 0
    """Subscriptions of all devices of one tenant; 0 for no limit."""
    watchers_max: int = 16
    """Streams of Watch of all callers; beyond, calls are refused."""
    tenant_watchers_max: int = 4
    """Streams of Watch of one tenant other than the default one."""
    watch_devices_max: int = 20_000
    """Devices that have rows in the frames of a watcher."""
    watch_objects_max: int = 50_000
    """Objects that have rows in the frames of a watcher."""
    watch_cells_max: int = 16_384
    """Cells of a watcher's grid."""
    streams_max: int = 200_000
    """Open calls and streams of all callers; beyond, calls are refused."""
    connections_max: int = 16_384
    """Connections of all callers; beyond, they are closed."""
    message_bytes_max: int = 4 * 1024 * 1024
    """Size of one message, of any method: larger requests are split."""
    fleet_bytes_max: int = 1024 * 1024
    """Size of a gateway's message for its devices, and of a request to retract."""
    request_bytes_max: int = 64 * 1024
    """Size of a device's message, and of a search. An expression of 64 clauses has some 40 KiB."""
