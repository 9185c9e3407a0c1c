"""What comes from files and logs: entries of feeds, rows of the source, what a store keeps as text."""

from __future__ import annotations

import contextlib
import json
import zlib

import numpy as np
import pyarrow as pa

from cluster.entries import NO_CURSOR
from feeds.redis.entries import ARROW, JSON, packed, rows_of
from feeds.schemas import MESSAGES, SUBSCRIPTIONS
from safe_region.earth.frame import Area, Frame
from safe_region.earth.shapes import Bounds, Polygon
from safe_region.scoring.idf import IdfTable
from server.bridge.rows import RowValidator
from server.core.coordinator import Coordinator
from server.core.matching_service import MatchingService
from server.errors import StoreError
from server.store.areas import decoded_area, encoded_area
from server.store.mutations import SubscriptionColumns
from server.store.reading import Damage, unpacked_idf
from tests.fuzz.target import Target

_FRAME = Frame.of(Area(14.0, 35.0, 15.0, 36.0))
_KINDS = 4


def _entries():
    coordinator = Coordinator(_FRAME)
    validator = RowValidator(coordinator.limits, coordinator.frame)

    def run(data: bytes) -> None:
        entry = {JSON if data[:1] == b"{" else ARROW: data}
        rows = rows_of(entry, MESSAGES)
        assert rows.schema == MESSAGES
        assert rows_of(entry, SUBSCRIPTIONS).schema == SUBSCRIPTIONS
        command = validator.validated(rows.to_pylist()[:50], "s", NO_CURSOR, "0-1", 0).command
        assert all(one.key.startswith("source/") for one in command.objects)
        assert not coordinator.matching.objects, "nothing is carried out by reading"

    return run


def _stored():
    def run(data: bytes) -> None:
        text = data.decode("utf-8", "replace")
        with contextlib.suppress(ValueError):
            assert encoded_area(decoded_area(data)) == data
        try:
            unpacked_idf(zlib.compress(data))
            unpacked_idf(data)
        except Damage:
            pass
        try:
            spec = json.loads(text)
        except (ValueError, RecursionError):
            return
        matching = MatchingService(_FRAME)
        columns = SubscriptionColumns(
            ["d"], np.array([1]), np.array([len(data) % _KINDS], dtype=np.int64), [spec], [""]
        )
        try:
            matching.restore_subscriptions(columns)
        except StoreError:
            return
        assert matching.engine.subscription_count == 1

    return run


def _entry_seeds() -> list[bytes]:
    row = {
        "action": "publish",
        "object_id": 7,
        "time_ms": 1_000,
        "lon": 14.5,
        "lat": 35.5,
        "keywords": ["sushi", None],
        "ttl_ms": 500,
        "payload": b"p",
    }
    rows = pa.RecordBatch.from_pylist(
        [row, {"action": "retract", "object_id": 7, "time_ms": 2}], MESSAGES
    )
    text = json.dumps(row | {"payload": "cA=="})
    return [packed(rows), text.encode(), f"{text}\n{{}}\n[1]\n{text[:30]}".encode(), b"{"]


def _stored_seeds() -> list[bytes]:
    specs = (
        [["a", "b"], 3, 0.5, 1, 1, [0, 0], 0],
        [["a"], 3, 0.5, 4, 4, [600, 0], 500.5],
        [["ab"], 3, 0.0, 1, 1, [0, 0], 0],
        {"clauses": [{"required": ["a"], "excluded": ["b"]}], "circle": {"radius": 5}, "moving": True},
        {"clauses": [{"required": ["a"]}], "rectangle": [14.1, 35.1, 14.2, 35.2], "moving": False},
    )
    table = IdfTable({"a": 2.0}).as_json().encode()
    areas = (
        Bounds(14.1, 35.1, 14.2, 35.2),
        Polygon(((14.1, 35.1), (14.2, 35.1), (14.2, 35.2))),
    )
    stored = (encoded_area(one) for one in areas)
    return [*(json.dumps(one).encode() for one in specs), table, zlib.compress(table), *stored]


ENTRIES = Target("entries", _entries, _entry_seeds, ("feeds", "server.bridge"), 60_000)
STORED = Target("stored", _stored, _stored_seeds, ("server.store", "server.core.specs"), 20_000)
