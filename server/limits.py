"""Every bound the server keeps on what others send or make it hold. Published in the welcome."""

from __future__ import annotations

from dataclasses import dataclass

KEEPALIVE_MS = 240_000
"""Between signs of life on a quiet connection. A device's own pings, every third of a lease of ten
minutes, come first: a silent phone wakes its radio for these alone."""

_KEEPALIVE_TIMEOUT_MS = 10_000


def keepalive_timeout_ms(keepalive_ms: int) -> int:
    """Return how long a sign of life of a connection may stay without a response."""
    return min(keepalive_ms, _KEEPALIVE_TIMEOUT_MS)


def dead_connection_ms(keepalive_ms: int) -> int:
    """Return after how long a connection that is dead has been closed: one ping, and its timeout."""
    return keepalive_ms + keepalive_timeout_ms(keepalive_ms)


@dataclass(frozen=True, slots=True)
class Limits:
    """Inclusive limits. Those marked * are told to every device."""

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
    """Required and excluded by all clauses of a device's boolean subscriptions together. Not told: a
    refusal names it. Two subscriptions of 64 clauses with all that each may have reach it."""
    range_m_max: float = 50_000.0
    """* Radius or half an extent of a range."""
    vertices_max: int = 512
    """* Of a polygon, those of its holes included."""
    holes_max: int = 16
    """Of a polygon. Not told: a refusal names it. Holes are compared with each other."""
    area_vertices_max: int = 64
    """* Of an object's area."""
    window_ms_max: int = 366 * 24 * 3600 * 1000
    """* Of a window of so much time."""
    window_count_max: int = 100_000_000
    """* Of a window of so many objects."""
    windows_max: int = 64
    """* Different windows that all subscriptions together have: each is looked after as objects come."""
    device_windows_max: int = 8
    """The same of one device."""
    tenant_windows_max: int = 64
    """The same of one tenant; set from how many tenants there are."""
    distance_scale_m_max: float = 20_037_508.0
    """* Of a top-k subscription: half the equator, beyond which no two places are apart."""
    matches_max: int = 1000
    """* Objects in the result of a boolean subscription; beyond, those nearest are sent."""
    outbox_max: int = 256
    """Deltas waiting for a slow device; beyond, they coalesce into snapshots of the latest state."""
    outbox_bytes_max: int = 1024 * 1024
    """The same in bytes, roughly."""
    slice_bytes_max: int = 256 * 1024
    """Of snapshots that are made at a time, some milliseconds; the last may go beyond."""
    retained_max: int = 64
    """Deltas kept for a resume; beyond, a detached device is parked and resumes with snapshots, which are
    smaller by then."""
    retained_bytes_max: int = 256 * 1024
    """The same in bytes, roughly."""
    answers_max: int = 10_000
    """Answers waiting to be written on a stream; beyond, it is not read until some have been."""
    late_ms: int = 1_000
    """Deltas that wait longer before they are written are counted as late."""
    answer_ms_max: int = 10_000
    """How long a device may take to say where it is; beyond, it is detached and parked."""
    take_over_ms: int = 10_000
    """How long an instance of a device that took the place of another one cannot be replaced itself. It
    doubles each time that another one replaces it within as long again: two that both insist do not push
    each other out for ever."""
    take_over_ms_max: int = 3_600_000
    """The same at most."""
    dead_connection_ms: int = dead_connection_ms(KEEPALIVE_MS)
    """After how long a connection that is dead has been closed; set from the keepalive."""
    queue_max: int = 100_000
    """Commands waiting for the engine; beyond, streams are not read until it has caught up."""
    batch_max: int = 2_048
    """Commands taken in one go: as many as make a batch worth it, a quarter of a second of re-anchors."""
    batch_rows_max: int = 10_000
    """Rows after which a batch takes no further command: a few milliseconds of writing."""
    sink_max: int = 1_000_000
    """Changes of objects that wait to be written to the sink; beyond, publications are refused."""
    publisher_objects_max: int = 1_000_000
    """Live objects of one publisher; 0 for any number."""
    publisher_bytes_max: int = 1024 * 1024 * 1024
    """Bytes of their payloads; 0 for any number."""
    tenant_objects_max: int = 0
    """Live objects of one tenant; 0 for any number."""
    tenant_bytes_max: int = 0
    """Bytes of their payloads; 0 for any number."""
    tenant_subscriptions_max: int = 0
    """Subscriptions of all devices of one tenant; 0 for any number."""
    streams_max: int = 200_000
    """Calls and streams that are open, of all callers; beyond, calls are refused."""
    connections_max: int = 16_384
    """Connections of all callers; beyond, they are closed."""
    message_bytes_max: int = 4 * 1024 * 1024
    """Of one message, of whatever method: what needs more goes in several."""
    fleet_bytes_max: int = 1024 * 1024
    """Of what a gateway says for its devices at once, and of a request to retract."""
    request_bytes_max: int = 64 * 1024
    """Of what a device says, and of a search. An expression of 64 clauses has some 40 KiB."""
