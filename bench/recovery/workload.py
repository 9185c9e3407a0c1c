"""The workload of the suite recovery: a store as a killed server leaves it."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

import numpy as np

from bench.datasets import Subscriptions, distinct_subscriptions, keyword_sets, source
from bench.parts import object_part
from bench.recovery.experiments import RecoveryParameters
from engine import EngineOptions
from index.batches import ObjectBatch
from index.catalogue import (
    DEFAULT_OBJECT_INDEX,
    DEFAULT_SUBSCRIPTION_INDEX,
    OBJECT_INDEXES,
    SUBSCRIPTION_INDEXES,
)
from index.square import Square
from safe_region.earth.frame import Area, Frame
from server.command import Hello
from server.core.specs.top_k import TopKKind
from server.model import LiveObject, Place, TopK
from server.session import Outbox
from server.store import SqliteStore
from server.store.mutations import PutObject, PutSubscription

CHUNK = 1_000
"""Rows a commit: the batch of a busy server."""
_NONCE = bytes(16)
_NOW_MS = 1_000
_EXPIRY_MS = 10**12
_MARGIN_DEG = 0.01


class RecoveryWorkload:
    """Rows that are written and must be recovered.

    Parameters
    ----------
    parameters
        Size and shape.
    """

    def __init__(self, parameters: RecoveryParameters) -> None:
        self.parameters = parameters
        chance = np.random.default_rng([parameters.seed, 31])
        data = source(parameters.data)
        self._similarity = parameters.text_similarity
        self.subscriptions: Subscriptions = distinct_subscriptions(
            data, parameters.subscriptions, parameters.k_max, self._similarity, chance
        )
        drawn = data.objects(parameters.objects, 1, chance)
        self.frame = _frame_about(drawn)
        # Coordinates of objects after their degrees were written to the store and read from it.
        self._lon = self.frame.lon0_deg + drawn.x_m / self.frame.x_m_per_deg
        self._lat = self.frame.lat0_deg + drawn.y_m / self.frame.y_m_per_deg
        self.objects = ObjectBatch(
            drawn.ids,
            (self._lon - self.frame.lon0_deg) * self.frame.x_m_per_deg,
            (self._lat - self.frame.lat0_deg) * self.frame.y_m_per_deg,
            drawn.keywords,
        )

    def fill(self, store: SqliteStore) -> Iterator[tuple[str, int, int, float]]:
        """Fill a store; yield the stage, rows written, rows in all and seconds spent in commits."""
        chance = random.Random(self.parameters.seed)
        spent = 0.0
        total = self.parameters.objects
        for first in range(0, total, CHUNK):
            rows = self.object_rows(first, min(first + CHUNK, total), chance)
            began = time.perf_counter()
            store.commit(rows, _NOW_MS)
            spent += time.perf_counter() - began
            yield "objects", first + len(rows), total, spent
        spent = 0.0
        total = self.parameters.subscriptions
        words = keyword_sets(self.subscriptions.interests.keywords)
        for first in range(0, total, CHUNK):
            started = [
                self._subscription_row(row, words[row].tolist())
                for row in range(first, min(first + CHUNK, total))
            ]
            began = time.perf_counter()
            store.commit(started, _NOW_MS)
            spent += time.perf_counter() - began
            yield "subscriptions", first + len(started), total, spent

    def object_rows(self, first: int, end: int, chance: random.Random) -> list[PutObject]:
        """Return rows of some objects, to be committed."""
        some = object_part(self.objects, first, end)
        words = keyword_sets(some.keywords)
        columns = (some.ids.tolist(), self._lon[first:end].tolist(), self._lat[first:end].tolist(), words)
        return [
            PutObject(
                LiveObject(
                    object_id,
                    lon,
                    lat,
                    self.frame.project(lon, lat),
                    named(numbers.tolist()),
                    _NOW_MS,
                    _EXPIRY_MS,
                    chance.randbytes(self.parameters.payload_bytes),
                    "",
                )
            )
            for object_id, lon, lat, numbers in zip(*columns, strict=True)
        ]

    def _subscription_row(self, row: int, words: list[int]) -> PutSubscription:
        drawn = self.subscriptions
        alpha, k = float(drawn.alpha[row]), int(drawn.k[row])
        spec = TopK(named(words), k, alpha, self._similarity)
        # In the order of their names, so that handles are rows + 1.
        return PutSubscription(_device_id(row), 1, TopKKind.number, TopKKind.encoded(spec))

    def hello(self, row: int, stream: Outbox) -> Hello:
        """Return the hello of the device of a subscription that reconnects."""
        drawn, frame = self.subscriptions, self.frame
        lon, lat = frame.unproject(float(drawn.x_m[row]), float(drawn.y_m[row]))
        return Hello(stream, _device_id(row), _NONCE, 0, Place(lon, lat))


def _device_id(row: int) -> str:
    return f"device-{row:08d}"


def named(words: list[int]) -> tuple[str, ...]:
    """Return words for keyword ids."""
    return tuple(sorted(map(str, words)))


def _frame_about(objects: ObjectBatch) -> Frame:
    """Return a frame centred on the equator that covers all objects."""
    unit = Frame.of(Area(-1.0, -1.0, 1.0, 1.0))
    east = float(np.abs(objects.x_m).max()) / unit.x_m_per_deg + _MARGIN_DEG
    north = float(np.abs(objects.y_m).max()) / unit.y_m_per_deg + _MARGIN_DEG
    return Frame.of(Area(-east, -north, east, north))


def options_of(frame: Frame) -> EngineOptions:
    """Return the default options of the server's engine."""
    low = frame.project(frame.area.lon_min, frame.area.lat_min)
    square = Square(0.0, 0.0, max(-low.x_m, -low.y_m))
    index = SUBSCRIPTION_INDEXES[DEFAULT_SUBSCRIPTION_INDEX]
    return EngineOptions(
        None, OBJECT_INDEXES[DEFAULT_OBJECT_INDEX], subscription_index=lambda: index(square)
    )
