"""Every bound of the server on data from others. The welcome has those that are marked * (`Limits`)."""

from __future__ import annotations

from dataclasses import dataclass

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
class Limits:
    """Inclusive limits. Limits marked * are sent to every device."""

    object_keywords_max: int = 64
    """*"""
    subscription_keywords_max: int = 16
    """*"""
    keyword_length_max: int = 64
    """* In characters, after normalisation."""
    k_max: int = 100
    """*"""
    alpha_min: float = 0.001
    """* Below, a text distance of 1 outweighs a thousand diagonals."""
    alpha_max: float = 0.999
    """*"""
    ttl_ms_max: int = 366 * 24 * 3600 * 1000
    """*"""
    payload_bytes_max: int = 16 * 1024
    """*"""
    objects_per_request_max: int = 1000
    """*"""
    subscriptions_per_device_max: int = 64
    """*"""
    devices_per_fleet_max: int = 100_000
    """*"""
    name_length_max: int = 128
    """* Of device ids and object keys, in characters."""
    margin_m_max: float = 5000.0
    """* Of a position."""
    clauses_max: int = 64
    """* Of a boolean expression."""
    clause_keywords_max: int = 16
    """* Required or excluded by one clause."""
    clause_keywords_per_device_max: int = 4096
    """Required and excluded by all clauses of a device's boolean subscriptions together.

    Not sent to devices: a refusal reports it. Two subscriptions of 64 clauses with the maximum of
    keywords reach it.
    """
    range_m_max: float = 50_000.0
    """* Radius or half an extent of a range."""
    vertices_max: int = 512
    """* Of a polygon, including those of its holes."""
    holes_max: int = 16
    """Of a polygon. Not sent to devices: a refusal reports it. Holes are compared with each other."""
    area_vertices_max: int = 64
    """* Of an object's area."""
    window_ms_max: int = 366 * 24 * 3600 * 1000
    """* Of a window of time."""
    window_count_max: int = 100_000_000
    """* Of a window of the last n objects."""
    windows_max: int = 64
    """* Different windows of all subscriptions: each is maintained as objects come."""
    device_windows_max: int = 8
    """Different windows of one device."""
    tenant_windows_max: int = 64
    """Different windows of one tenant; set from the number of tenants."""
    distance_scale_m_max: float = 20_037_508.0
    """* Of a top-k subscription: half the equator, beyond which no two places are apart."""
    matches_max: int = 1000
    """* Objects in the result of a boolean subscription; beyond, the nearest are sent."""
    outbox_max: int = 256
    """Deltas waiting for a slow device; beyond, they coalesce into snapshots of the latest state."""
    outbox_bytes_max: int = 1024 * 1024
    """The same in bytes, roughly."""
    slice_bytes_max: int = 256 * 1024
    """Size of the snapshots made at a time, some milliseconds; the last may exceed it."""
    retained_max: int = 64
    """Deltas kept for a resume; beyond, a detached device is parked.

    It then resumes with snapshots, which are smaller by then.
    """
    retained_bytes_max: int = 256 * 1024
    """The same in bytes, roughly."""
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
    """Bytes of their payloads; 0 for no limit."""
    tenant_objects_max: int = 0
    """Live objects of one tenant; 0 for no limit."""
    tenant_bytes_max: int = 0
    """Bytes of their payloads; 0 for no limit."""
    tenant_subscriptions_max: int = 0
    """Subscriptions of all devices of one tenant; 0 for no limit."""
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
