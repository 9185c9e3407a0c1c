"""Limits of what is valid, for devices, server, stream job and simulator.

`nearcast.checks` applies them. `server.limits` adds the capacities of a server.
"""

from __future__ import annotations

from dataclasses import dataclass

LON_MAX_DEG = 180.0
LAT_MAX_DEG = 90.0
HEADING_MAX_DEG = 360.0
SPEED_MAX_MPS = 10_000.0
DURATION_MS_MAX = 366 * 24 * 3600 * 1000
"""Longest time to live, and longest window of time."""
DWELL_MS_MAX = 24 * 3600 * 1000
"""A day: longer than most objects live."""
EXPRESSION_LENGTH_MAX = 4096
"""Characters of the text of an expression."""
TIME_MS_MAX = 2**53 - 1
"""The latest time, which clients that count with float64 still have exactly."""
VERSION_MAX = 2**62
"""Of versions, and of the sequence numbers of reports."""
NONCE_BYTES_MAX = 64
OBJECT_ID_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Limits:
    """Inclusive limits. `device_service.proto` has those that are sent to every device."""

    object_keywords_max: int = 64
    """Keywords of an object."""
    subscription_keywords_max: int = 16
    """Keywords of a top-k subscription."""
    keyword_length_max: int = 64
    """Characters of a keyword, after normalisation."""
    k_max: int = 100
    """Objects in the result of a top-k subscription."""
    alpha_min: float = 0.001
    """Least weight of the distance. Below, a text distance of 1 outweighs a thousand diagonals."""
    alpha_max: float = 0.999
    """Largest weight of the distance."""
    ttl_ms_max: int = DURATION_MS_MAX
    """Time to live of an object."""
    payload_bytes_max: int = 16 * 1024
    """Payload of an object."""
    objects_per_request_max: int = 1000
    """Objects in a request to publish or to retract."""
    subscriptions_per_device_max: int = 64
    """Subscriptions of a device."""
    devices_per_fleet_max: int = 100_000
    """Devices on a fleet stream."""
    name_length_max: int = 128
    """Characters of device ids, names of subscriptions and keys of objects."""
    margin_m_max: float = 5000.0
    """Margin of a position."""
    clauses_max: int = 64
    """Clauses of a boolean expression."""
    clause_keywords_max: int = 16
    """Keywords that a clause requires, and keywords that it excludes."""
    clause_keywords_per_device_max: int = 4096
    """Keywords in all clauses of a device's boolean subscriptions together. Two subscriptions of 64
    clauses with the maximum of keywords reach it."""
    range_m_max: float = 50_000.0
    """Radius of a range, and half its width and height."""
    vertices_max: int = 512
    """Vertices of a polygon, including those of its holes."""
    holes_max: int = 16
    """Holes of a polygon, which are compared with each other."""
    area_vertices_max: int = 64
    """Vertices of an object's area."""
    window_ms_max: int = DURATION_MS_MAX
    """Duration of a window of time."""
    window_count_max: int = 100_000_000
    """Objects of a window of the last n."""
    windows_max: int = 64
    """Different windows of all subscriptions: each is maintained as objects come."""
    device_windows_max: int = 8
    """Different windows of one device."""
    tenant_windows_max: int = 64
    """Different windows of one tenant; set from the number of tenants."""
    distance_scale_m_max: float = 20_037_508.0
    """Distance scale of a top-k subscription: half the equator, beyond which no two places are apart."""
    matches_max: int = 1000
    """Objects in the result of a boolean subscription; beyond, the nearest are sent."""


DEFAULT_LIMITS = Limits()
"""The limits of servers, except for the margin, which is a setting."""
