"""Checksums of rows: a CRC-32 of what a row says, whichever way the disk keeps it. 1 us a row."""

from __future__ import annotations

import sqlite3
import struct
from zlib import crc32

_OBJECT = struct.Struct("<qddqq")
_GENERATION = struct.Struct("<q")
_OUTLET = struct.Struct("<qqq")
_SUBSCRIPTION = struct.Struct("<qq")


def meta_checksum(name: str, value: str) -> int:
    """Return that of a setting of the store."""
    return crc32(f"{name}\0{value}".encode())


def object_checksum(
    object_id: int,
    lon: float,
    lat: float,
    keywords: str,
    created_ms: int,
    expiry_ms: int,
    payload: bytes,
    object_key: str,
    area: str,
    owner: str,
) -> int:
    """Return that of an object; keywords and area as they are stored.

    Without an owner it is that of version 5, and a point's is that of version 3.
    """
    # SQLite keeps -0.0 as 0. A damaged row may have an empty blob where an empty text was written.
    numbers = _OBJECT.pack(object_id, lon + 0.0, lat + 0.0, created_ms, expiry_ms)
    texts = f"{keywords}\0{object_key}"
    if owner != "":
        texts = f"{texts}\0{area}\0{owner}"
    elif area != "":
        texts = f"{texts}\0{area}"
    return crc32(payload, crc32(texts.encode(), crc32(numbers)))


def subscription_checksum(device_id: str, subscription_id: int, kind: int, spec: str, name: str) -> int:
    """Return that of a subscription; its spec as it is stored. Without a name it is that of version 4."""
    texts = f"{spec}\0{device_id}" if name == "" else f"{spec}\0{device_id}\0{name}"
    return crc32(texts.encode(), crc32(_SUBSCRIPTION.pack(subscription_id, kind)))


def idf_checksum(generation: int, weights: bytes) -> int:
    """Return that of a table of weights, as it is stored."""
    return crc32(weights, crc32(_GENERATION.pack(generation)))


def outlet_checksum(
    number: int, action: str, object_id: int, time_ms: int, said: str, payload: bytes
) -> int:
    """Return that of something to be told at the outlet."""
    numbers = _OUTLET.pack(number, object_id, time_ms)
    return crc32(payload, crc32(f"{action}\0{said}".encode(), crc32(numbers)))


def heard_checksum(device_id: str, heard_ms: int) -> int:
    """Return that of when a device was heard of last."""
    return crc32(f"{device_id}\0{heard_ms}".encode())


def add_to(database: sqlite3.Connection) -> None:
    """Let SQL use them."""
    for function in (meta_checksum, object_checksum, subscription_checksum, heard_checksum):
        count = function.__code__.co_argcount
        database.create_function(function.__name__, count, function, deterministic=True)
