"""Random feeds, and what results should be, from the definition."""

from __future__ import annotations

import random

from feeds.schemas import END, PUBLISH, RETRACT, SUBSCRIBE, TOP_K
from safe_region import oracle
from safe_region.frame import Area, Frame
from safe_region.oracle import OracleObject, OracleSubscription

AREA = Area(12.0, 55.0, 12.2, 55.1)
FRAME = Frame.of(AREA)
WORDS = [f"word{i}" for i in range(12)]


class RandomFeed:
    """Rows of the two feeds, batch by batch.

    Parameters
    ----------
    seed
        Another seed, other rows.
    weights
        Of words, for tf-idf; those it does not name weigh 1.
    """

    def __init__(self, seed: int, weights: dict[str, float] | None = None) -> None:
        self.chance = random.Random(seed)
        self.weights = weights or {}
        self.time_ms = 1_700_000_000_000
        self.published: list[int] = []
        self.subscribed: list[int] = []

    def message(self, object_id: int) -> dict[str, object]:
        chance = self.chance
        return {
            "action": PUBLISH,
            "object_id": object_id,
            "time_ms": self.time_ms + chance.randint(0, 1000),
            "lon": chance.choice((12.05, 12.1, chance.uniform(AREA.lon_min, AREA.lon_max))),
            "lat": chance.choice((55.02, 55.07, chance.uniform(AREA.lat_min, AREA.lat_max))),
            "keywords": chance.sample(WORDS, chance.randint(1, 4)),
            "ttl_ms": chance.choice((None, None, 1500, 5000)),
            "payload": None,
        }

    def subscription(self, subscription_id: int) -> dict[str, object]:
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

    def messages(self, count: int) -> list[dict[str, object]]:
        """Return messages, of which some come twice, and some are taken back."""
        chance = self.chance
        self.time_ms += 1000
        fresh = range(len(self.published), len(self.published) + count)
        rows = [self.message(one * 7 + 3) for one in fresh]
        rows += [dict(row) for row in rows if chance.random() < 0.1]
        self.published += [one * 7 + 3 for one in fresh]
        for _ in range(count // 8):
            gone = chance.choice((chance.choice(self.published), 5))
            rows.append(_row(RETRACT, "object_id", gone, self.time_ms + chance.randint(0, 1000)))
        chance.shuffle(rows)
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


def _row(action: str, column: str, number: int, time_ms: int) -> dict[str, object]:
    return {"action": action, column: number, "time_ms": time_ms}


class Expected:
    """What results are after each batch, from the definition.

    Parameters
    ----------
    count, duration_ms
        The window.
    weights
        Of words.
    """

    def __init__(self, count: int, duration_ms: int, weights: dict[str, float]) -> None:
        self._count, self._duration_ms, self._weights = count, duration_ms, weights
        self._objects: dict[int, OracleObject] = {}
        self._gone: set[int] = set()
        self._numbers = 0
        self._object_of: dict[int, int] = {}
        self._subscriptions: dict[int, dict[str, object]] = {}
        self.now_ms = 0

    def apply(self, subscriptions: list[dict], messages: list[dict]) -> None:
        for row in subscriptions:
            if row["action"] == END:
                self._subscriptions.pop(row["subscription_id"], None)
            else:
                self._subscriptions[row["subscription_id"]] = row
        if not messages:
            return
        self.now_ms = max(self.now_ms, *(row["time_ms"] for row in messages))
        retracted = {row["object_id"] for row in messages if row["action"] == RETRACT}
        self._gone |= retracted & self._objects.keys()
        published = [row for row in messages if row["action"] == PUBLISH]
        for row in sorted(published, key=lambda row: (row["time_ms"], row["object_id"])):
            self._publish(row, retracted)

    def _publish(self, row: dict, retracted: set[int]) -> None:
        one = row["object_id"]
        ends = [2**62]
        ends += [row["time_ms"] + row["ttl_ms"]] if row["ttl_ms"] is not None else []
        ends += [row["time_ms"] + self._duration_ms] if self._duration_ms else []
        if one in self._objects or one in retracted or min(ends) <= self.now_ms:
            return
        x_m, y_m = FRAME.project(row["lon"], row["lat"])
        words = frozenset(row["keywords"])
        self._objects[one] = OracleObject(self._numbers, x_m, y_m, words, row["time_ms"], min(ends))
        self._object_of[self._numbers] = one
        self._numbers += 1

    def lists(self) -> dict[int, set[int]]:
        """Return the objects in each result."""
        first = self._numbers - self._count if self._count else 0
        alive = [
            item
            for one, item in self._objects.items()
            if one not in self._gone and item.object_id >= first and item.expiry_ms > self.now_ms
        ]
        found = {}
        for number, row in self._subscriptions.items():
            wanted = OracleSubscription(
                frozenset(row["keywords"]),
                row["k"],
                row["alpha"],
                row["similarity"],
                lambda word: self._weights.get(word, 1.0),
            )
            x_m, y_m = FRAME.project(row["lon"], row["lat"])
            best = oracle.top_k(wanted, x_m, y_m, FRAME.maxdist_m, alive, self.now_ms)
            found[number] = {self._object_of[one.object_id] for one in best}
        return found
