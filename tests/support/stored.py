"""What a store holds, row by row, as it was committed."""

from __future__ import annotations

from safe_region.anchored import RegionMode
from safe_region.frame import Frame
from safe_region.scoring import Similarity
from server.model import LiveObject, TopK
from server.store.mutations import PutSubscription, Recovered


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
        columns = zip(
            part.device_ids,
            part.subscription_ids.tolist(),
            part.keywords,
            part.k.tolist(),
            part.alpha.tolist(),
            part.similarity.tolist(),
            part.region.tolist(),
            strict=True,
        )
        for device_id, number, words, k, alpha, similarity, region in columns:
            spec = TopK(tuple(words), k, alpha, Similarity(similarity), RegionMode(region))
            rows.append(PutSubscription(device_id, number, spec))
    return tuple(rows)
