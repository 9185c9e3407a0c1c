"""Random feeds."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from feeds.schemas import BOOLEAN, END, FEEDS, PUBLISH, RETRACT, SUBSCRIBE, TOP_K
from safe_region.earth.frame import Area, Frame

AREA = Area(12.0, 55.0, 12.2, 55.1)
FRAME = Frame.of(AREA)
_TICK_NS = 10_000_000
"""The clock of files does not go by less."""
WORDS = [f"word{i}" for i in range(12)]


class RandomFeed:
    """Rows of the two feeds, batch by batch.

    Parameters
    ----------
    seed
        Another seed, other rows.
    weights
        Of words, for tf-idf; those it does not name weigh 1.
    booleans
        Whether some subscriptions are boolean.
    """

    def __init__(
        self, seed: int, weights: dict[str, float] | None = None, *, booleans: bool = False
    ) -> None:
        self.booleans = booleans
        self.chance = random.Random(seed)
        self.weights = weights or {}
        self.time_ms = 1_700_000_000_000
        self.published: list[int] = []
        self.delivered: list[dict[str, object]] = []
        self.late: list[dict[str, object]] = []
        self.subscribed: list[int] = []
        self.written_ns = 0

    def message(self, object_id: int) -> dict[str, object]:
        chance = self.chance
        return {
            "action": PUBLISH,
            "object_id": object_id,
            "time_ms": self.time_ms + chance.randint(0, 1000),
            "lon": chance.choice((12.05, 12.1, chance.uniform(AREA.lon_min, AREA.lon_max))),
            "lat": chance.choice((55.02, 55.07, chance.uniform(AREA.lat_min, AREA.lat_max))),
            "keywords": chance.sample(WORDS, chance.randint(1, 4)),
            "ttl_ms": chance.choice((None, None, None, 200, 1500, 5000)),
            "payload": None,
        }

    def subscription(self, subscription_id: int) -> dict[str, object]:
        if self.booleans and self.chance.random() < 0.4:
            return self.boolean(subscription_id)
        chance = self.chance
        similarities = ["jaccard", "dice", "cosine", "tfidf"]
        return {
            "action": SUBSCRIBE,
            "subscription_id": subscription_id,
            "time_ms": self.time_ms,
            "kind": TOP_K,
            "keywords": chance.sample(WORDS, chance.randint(1, 3)),
            "k": chance.randint(1, 6),
            "alpha": chance.choice((0.1, 0.5, 0.9)),
            "similarity": chance.choice(similarities),
            "lon": chance.choice((12.05, chance.uniform(AREA.lon_min, AREA.lon_max))),
            "lat": chance.choice((55.02, chance.uniform(AREA.lat_min, AREA.lat_max))),
        }

    def boolean(self, subscription_id: int) -> dict[str, object]:
        chance = self.chance
        one, other, third = chance.sample(WORDS, 3)
        forms = (one, f"{one} AND NOT {other}", f"{one} OR {other} AND {third}", f"{one} OR {other}")
        lon, lat = chance.uniform(AREA.lon_min, AREA.lon_max), chance.uniform(AREA.lat_min, AREA.lat_max)
        where: dict[str, object] = {"lon": lon, "lat": lat, "radius_m": chance.uniform(500.0, 6_000.0)}
        if chance.random() < 0.5:
            where = {"bounds": [lon - 0.03, lat - 0.02, lon + 0.04, lat + 0.03]}
        return {
            "action": SUBSCRIBE,
            "subscription_id": subscription_id,
            "time_ms": self.time_ms,
            "kind": BOOLEAN,
            "expression": chance.choice(forms),
            **dict.fromkeys(("radius_m", "bounds")),
            **where,
        }

    def write(self, folder: Path, number: int, subscriptions: int, messages: int) -> None:
        """Write a file of each feed."""
        for name, rows in (
            ("subscriptions", self.subscriptions(subscriptions)),
            ("messages", self.messages(messages)),
        ):
            (folder / name).mkdir(parents=True, exist_ok=True)
            # Whole or not at all: a job may be reading.
            hidden = folder / name / f".{number:03d}.parquet"
            pq.write_table(pa.Table.from_pylist(rows, FEEDS[name]), hidden)
            # Spark reads files in the order of their times, of which two of one tick would be the same.
            self.written_ns = max(time.time_ns(), self.written_ns + _TICK_NS)
            os.utime(hidden, ns=(self.written_ns, self.written_ns))
            hidden.rename(folder / name / f"{number:03d}.parquet")

    def messages(self, count: int) -> list[dict[str, object]]:
        """Return messages: some come twice or late, some are taken back, maybe before they come."""
        chance = self.chance
        self.time_ms += 1000
        fresh = range(len(self.published), len(self.published) + count)
        rows = [self.message(one * 7 + 3) for one in fresh]
        rows += [dict(row) for row in rows if chance.random() < 0.1]
        rows += chance.sample(self.delivered, min(len(self.delivered), count // 16))
        self.published += [one * 7 + 3 for one in fresh]
        for _ in range(count // 8):
            gone = chance.choice((chance.choice(self.published), 5))
            rows.append(_row(RETRACT, "object_id", gone, self.time_ms + chance.randint(0, 1000)))
        for row in self.late[: count // 16]:
            rows.append(_row(RETRACT, "object_id", row["object_id"], row["time_ms"]))
        chance.shuffle(rows)
        rows, self.late = rows[count // 10 :] + self.late, rows[: count // 10]
        self.delivered = (self.delivered + rows)[-400:]
        return rows

    def subscriptions(self, count: int) -> list[dict[str, object]]:
        """Return some that begin, some anew under the same number, some that end."""
        chance = self.chance
        rows = []
        for _ in range(count):
            if self.subscribed and chance.random() < 0.2:
                one = chance.choice(self.subscribed)
                if chance.random() < 0.5:
                    rows.append(_row(END, "subscription_id", one, self.time_ms))
                    continue
            else:
                one = len(self.subscribed) * 5
                self.subscribed.append(one)
            rows.append(self.subscription(one))
        # Two of one number and time in a batch would be two answers to one question.
        return list({row["subscription_id"]: row for row in rows}.values())


def _row(action: str, column: str, number: object, time_ms: object) -> dict[str, object]:
    return {"action": action, column: number, "time_ms": time_ms}
