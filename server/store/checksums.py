"""Checksums of rows: a CRC-32 of the values, independent of their storage. 1 us per row."""

from __future__ import annotations

import struct
from zlib import crc32

_OBJECT = struct.Struct("<qddqq")
_GENERATION = struct.Struct("<q")
_SINK = struct.Struct("<qqq")
_OUTCOME = struct.Struct("<qq")
_SUBSCRIPTION = struct.Struct("<qq")


def meta_checksum(name: str, value: str) -> int:
    """Return the checksum of a setting of the store."""
    return crc32(f"{name}\0{value}".encode())


def object_checksum(  # noqa: PLR0913 - a row, in the order of its columns
    object_id: int,
    lon: float,
    lat: float,
    keywords: str,
    created_ms: int,
    expiry_ms: int,
    payload: bytes,
    object_key: str,
    area: bytes,
    owner: str,
) -> int:
    """Return the checksum of an object; keywords and area as they are stored."""
    # SQLite stores -0.0 as 0.
    numbers = _OBJECT.pack(object_id, lon + 0.0, lat + 0.0, created_ms, expiry_ms)
    texts = f"{keywords}\0{object_key}\0{owner}"
    return crc32(payload, crc32(area, crc32(texts.encode(), crc32(numbers))))


def subscription_checksum(device_id: str, subscription_id: int, kind: int, spec: str, name: str) -> int:
    """Return the checksum of a subscription; its spec as it is stored."""
    texts = f"{spec}\0{device_id}\0{name}"
    return crc32(texts.encode(), crc32(_SUBSCRIPTION.pack(subscription_id, kind)))


def idf_checksum(generation: int, weights: bytes) -> int:
    """Return the checksum of a table of weights, as it is stored."""
    return crc32(weights, crc32(_GENERATION.pack(generation)))


def sink_checksum(
    number: int, action: str, object_id: int, time_ms: int, about: str, payload: bytes
) -> int:
    """Return the checksum of a change for the sink."""
    numbers = _SINK.pack(number, object_id, time_ms)
    return crc32(payload, crc32(f"{action}\0{about}".encode(), crc32(numbers)))


def outcome_checksum(number: int, request_id: bytes, time_ms: int, reply: str) -> int:
    """Return the checksum of the outcome of a request in the log."""
    return crc32(request_id, crc32(reply.encode(), crc32(_OUTCOME.pack(number, time_ms))))


def last_seen_checksum(device_id: str, last_seen_ms: int) -> int:
    """Return the checksum of the time at which a device was last seen."""
    return crc32(f"{device_id}\0{last_seen_ms}".encode())
