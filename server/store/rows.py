"""Rows as they are stored: columns in their order, with their checksums."""

from __future__ import annotations

import json
from collections.abc import Mapping

from cluster.entries import Cursor
from nearcast.canonical import Window
from server.model import LiveObject
from server.store.areas import encoded_area
from server.store.checksums import last_seen_checksum, object_checksum, subscription_checksum
from server.store.mutations import DeleteObject, Happened, PutObject, PutSubscription, WindowClaim

_encoded = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def happened(number: int, one: PutObject | DeleteObject, time_ms: int) -> Happened:
    """Return the change for the sink about an object."""
    if isinstance(one, DeleteObject):
        action = "expire" if one.has_expired else "retract"
        return Happened(number, action, one.object_id, time_ms, "", b"")
    item = one.item
    about = _encoded([item.lon, item.lat, item.keywords, item.expiry_ms - item.created_ms])
    return Happened(number, "publish", item.object_id, item.created_ms, about, item.payload)


def cursor_text(cursor: Cursor) -> str:
    """Return a cursor of the source as it is stored."""
    return f"{cursor.entry_count} {cursor.offset}"


def cursor_from(text: str) -> Cursor:
    """Return the cursor in a text of `cursor_text`."""
    count, _, offset = text.partition(" ")
    return Cursor(offset, int(count))


def windows_text(claims: Mapping[str, WindowClaim]) -> str:
    """Return the windows in use in a cluster as they are stored."""
    return _encoded(
        {
            node: [one.time_ms, [[window.duration_ms, window.count] for window in one.windows]]
            for node, one in claims.items()
        }
    )


def windows_from(text: str) -> dict[str, WindowClaim]:
    """Return the windows in a text of `windows_text`."""
    return {
        node: WindowClaim(time_ms, tuple(Window(*one) for one in windows))
        for node, (time_ms, windows) in json.loads(text).items()
    }


def object_values(item: LiveObject) -> tuple[object, ...]:
    """Return the row of an object."""
    words = _encoded(item.keywords)
    times = (item.created_ms, item.expiry_ms)
    place = (item.lon, item.lat)
    values = (*place, words, *times, item.payload, item.key, encoded_area(item.area), item.owner)
    return (item.object_id, object_checksum(item.object_id, *values), *values)


def subscription_values(put: PutSubscription, time_ms: int) -> tuple[object, ...]:
    """Return the row of a subscription whose device was seen at `time_ms`."""
    values = (put.device_id, put.subscription_id, put.kind, put.spec, put.name)
    last_seen = (time_ms, last_seen_checksum(put.device_id, time_ms))
    return (*values[:2], subscription_checksum(*values), *values[2:], *last_seen)
