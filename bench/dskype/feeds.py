"""Write the workload of the suite skype as files of the feeds, for the suite dskype."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.skype.workload import SkypeWorkload
from feeds.schemas import MESSAGES, PUBLISH, SUBSCRIBE, SUBSCRIPTIONS, TOP_K
from index.batches import Floats, KeywordLists
from safe_region.earth.frame import Area, Frame
from safe_region.scoring.idf import IdfTable

_FILE_ROWS = 50_000
_METRES_PER_DEGREE = 111_194.9
_MARGIN_M = 20_000.0
"""Drawn messages may lie outside the square around all places."""


class FeedFiles:
    """Files of the feeds, below a folder.

    Parameters
    ----------
    folder
        A new folder.
    workload
        Messages and subscriptions of the files. Keywords are written as decimal numbers.
    """

    def __init__(self, folder: Path, workload: SkypeWorkload) -> None:
        self.folder = folder
        self.workload = workload
        half_deg = (workload.square.half_m + _MARGIN_M) / _METRES_PER_DEGREE
        self.area = Area(-half_deg, -half_deg, half_deg, half_deg)
        self._frame = Frame.of(self.area)
        for name in ("messages", "subscriptions"):
            (folder / name).mkdir(parents=True)
        weights = {str(word): float(one) for word, one in enumerate(workload.weights.tolist())}
        (folder / "idf.json").write_text(IdfTable(weights).as_json())

    def write_window(self) -> None:
        """Write the messages that fill the window."""
        window = self.workload.parameters.window
        for number, start in enumerate(range(0, window, _FILE_ROWS)):
            self.write_messages(start, min(window, start + _FILE_ROWS), f"a-{number:06d}")

    def write_subscriptions(self) -> None:
        """Write all subscriptions."""
        count = self.workload.parameters.subscriptions
        for number, start in enumerate(range(0, count, _FILE_ROWS)):
            self._write_subscriptions(start, min(count, start + _FILE_ROWS), f"{number:06d}")

    @contextmanager
    def without_subscriptions(self) -> Iterator[None]:
        """Replace the folder of subscriptions by an empty one within the block."""
        folder, away = self.folder / "subscriptions", self.folder / "away"
        folder.rename(away)
        folder.mkdir()
        try:
            yield
        finally:
            folder.rmdir()
            away.rename(folder)

    def write_batch(self, number: int, batch: int) -> bool:
        """Write the file of a batch by its number; return whether any messages were left for it."""
        parameters = self.workload.parameters
        end = parameters.window + parameters.messages
        start = parameters.window + number * batch
        if start < end:
            self.write_messages(start, min(start + batch, end), f"b-{number:06d}")
        return start < end

    def write_at_pace(self, first: int, rate: float, batch: int, stop: Event) -> None:
        """Write messages at a rate, a file a batch, until none are left or `stop` is set."""
        end = self.workload.parameters.window + self.workload.parameters.messages
        began_s = time.monotonic()
        for number, start in enumerate(range(first, end, batch)):
            if stop.wait(max(0.0, began_s + (start + batch - first) / rate - time.monotonic())):
                return
            self.write_messages(start, min(end, start + batch), f"c-{number:06d}")

    def write_messages(self, start: int, stop: int, name: str) -> None:
        """Write consecutive messages."""
        messages, count = self.workload.messages, stop - start
        lon, lat = self._degrees(messages.x_m[start:stop], messages.y_m[start:stop])
        columns = {
            "action": pa.array([PUBLISH] * count),
            "object_id": pa.array(messages.ids[start:stop]),
            "time_ms": pa.array(self.workload.created_ms[start:stop]),
            "lon": lon,
            "lat": lat,
            "keywords": _texts(messages.keywords, start, stop),
            "ttl_ms": pa.nulls(count, pa.int64()),
            "payload": pa.nulls(count, pa.binary()),
        }
        temporary = self.folder / f".{name}"
        pq.write_table(pa.table(columns, MESSAGES), temporary)
        temporary.rename(self.folder / "messages" / f"{name}.parquet")

    def _write_subscriptions(self, start: int, stop: int, name: str) -> None:
        workload, count = self.workload, stop - start
        lon, lat = self._degrees(workload.x_m[start:stop], workload.y_m[start:stop])
        columns = {
            "action": pa.array([SUBSCRIBE] * count),
            "subscription_id": pa.array(np.arange(start, stop)),
            "time_ms": pa.array(np.zeros(count, dtype=np.int64)),
            "kind": pa.array([TOP_K] * count),
            "keywords": _texts(workload.interests.keywords, start, stop),
            "k": pa.array(np.full(count, workload.parameters.k, dtype=np.int32)),
            "alpha": pa.array(workload.alpha[start:stop]),
            "similarity": pa.array(["tfidf"] * count),
            "lon": lon,
            "lat": lat,
            "expression": pa.nulls(count, pa.string()),
            "radius_m": pa.nulls(count, pa.float64()),
            "bounds": pa.nulls(count, pa.list_(pa.float64())),
        }
        path = self.folder / "subscriptions" / f"{name}.parquet"
        pq.write_table(pa.table(columns, SUBSCRIPTIONS), path)

    def _degrees(self, x_m: Floats, y_m: Floats) -> tuple[pa.Array, pa.Array]:
        square = self.workload.square
        lon = (x_m - square.x_m) / self._frame.x_m_per_deg
        lat = (y_m - square.y_m) / self._frame.y_m_per_deg
        return pa.array(lon), pa.array(lat)


def _texts(lists: KeywordLists, start: int, stop: int) -> pa.Array:
    offsets = lists.offsets[start : stop + 1]
    words = pa.array(lists.ids[offsets[0] : offsets[-1]]).cast(pa.string())
    return pa.ListArray.from_arrays(pa.array((offsets - offsets[0]).astype(np.int32)), words)
