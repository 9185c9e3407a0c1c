"""Feeds for jobs on a cluster: words as frequent as Zipf's law says, and few retractions."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from feeds.schemas import FEEDS, PUBLISH, RETRACT, SUBSCRIBE, TOP_K
from safe_region.earth.frame import Area

AREA = Area(12.0, 55.0, 12.2, 55.1)
_WORDS = 2_000
_STEP_MS = 20
_SIMILARITIES = ("jaccard", "dice", "cosine")

Rows = list[dict[str, Any]]


class ZipfFeed:
    """Rows of the two feeds, as they come.

    Parameters
    ----------
    seed
        Another seed, other rows.
    """

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._words = [f"word{number}" for number in range(_WORDS)]
        self._shares = list(itertools.accumulate(1.0 / (1 + number) for number in range(_WORDS)))
        self._next_object = 0
        self._next_subscription = 0
        self._time_ms = 1_700_000_000_000

    def messages(self, count: int) -> Rows:
        """Return so many messages, and a few that take others back."""
        rows = [self._message() for _ in range(count)]
        for _ in range(count // 200):
            gone = self._rng.randrange(max(0, self._next_object - 10 * count), self._next_object)
            rows.append({"action": RETRACT, "object_id": gone, "time_ms": self._time_ms})
        return rows

    def subscriptions(self, count: int) -> Rows:
        """Return so many that start."""
        return [self._subscription() for _ in range(count)]

    def _message(self) -> dict[str, Any]:
        self._time_ms += _STEP_MS
        self._next_object += 1
        return {
            "action": PUBLISH,
            "object_id": self._next_object,
            "time_ms": self._time_ms,
            **self._place(),
            "keywords": self._keywords(6),
            "ttl_ms": None,
            "payload": None,
        }

    def _subscription(self) -> dict[str, Any]:
        rng = self._rng
        self._next_subscription += 1
        return {
            "action": SUBSCRIBE,
            "subscription_id": self._next_subscription,
            "time_ms": self._time_ms,
            "kind": TOP_K,
            "keywords": self._keywords(rng.randint(1, 3)),
            "k": rng.randint(1, 10),
            "alpha": rng.choice((0.2, 0.5, 0.8)),
            "similarity": rng.choice(_SIMILARITIES),
            **self._place(),
        }

    def _place(self) -> dict[str, float]:
        rng = self._rng
        lon, lat = rng.uniform(AREA.lon_min, AREA.lon_max), rng.uniform(AREA.lat_min, AREA.lat_max)
        return {"lon": lon, "lat": lat}

    def _keywords(self, count: int) -> list[str]:
        return sorted({*self._rng.choices(self._words, cum_weights=self._shares, k=count)})


def write_rows(folder: Path, number: int, feed: str, rows: Rows) -> None:
    """Write a file of a feed, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    hidden = folder / f".{number:06d}.parquet"
    pq.write_table(pa.Table.from_pylist(rows, FEEDS[feed]), hidden)
    hidden.rename(folder / f"{number:06d}.parquet")
