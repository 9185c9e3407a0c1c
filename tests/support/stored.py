"""What a store holds, row by row, as it was committed."""

from __future__ import annotations

import json

from safe_region.earth.frame import Frame
from server.model import LiveObject
from server.store.mutations import PutSubscription, Recovered

encoded = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
"""As kinds write their specs."""


def objects_of(found: Recovered, frame: Frame) -> tuple[LiveObject, ...]:
    rows = []
    for part in found.objects:
        columns = zip(
            part.ids.tolist(),
            part.lon.tolist(),
            part.lat.tolist(),
            part.keywords,
            part.created_ms.tolist(),
            part.expiry_ms.tolist(),
            part.payloads,
            part.keys,
            map(part.areas.get, part.ids.tolist()),
            strict=True,
        )
        rows += [
            LiveObject(object_id, lon, lat, frame.project(lon, lat), tuple(words), *others)
            for object_id, lon, lat, words, *others in columns
        ]
    return tuple(rows)


def ids_of(found: Recovered) -> list[int]:
    return [object_id for part in found.objects for object_id in part.ids.tolist()]


def subscriptions_of(found: Recovered) -> tuple[PutSubscription, ...]:
    rows = []
    for part in found.subscriptions:
        numbers, kinds = part.subscription_ids.tolist(), part.kinds.tolist()
        columns = zip(part.device_ids, numbers, kinds, map(encoded, part.specs), part.names, strict=True)
        rows += [PutSubscription(*columns_of_one) for columns_of_one in columns]
    return tuple(rows)
