"""The audit: what results must be after a batch, from the definition, and what the job says they are.

The definition is `safe_region.oracle`; which rows a batch had, Spark's own log of its sources says. It
shares no code with the partitions but the schemas of the feeds.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.json as pa_json
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from feeds.schemas import FEEDS, PUBLISH, RETRACT, SUBSCRIBE
from safe_region import oracle
from safe_region.frame import Frame
from safe_region.idf import IdfTable
from safe_region.keywords import normalised_keyword
from safe_region.oracle import OracleObject, OracleSubscription
from streaming.lists import last_batch, lists
from streaming.plan import Plan
from streaming.routing import shown_row
from streaming.sink import batch_name, read_batch
from streaming.window import WindowSize

_FOR_EVER_MS = 1 << 62

Feed = Mapping[str, Any]
"""A row of a feed."""


class Definition:
    """What results are, batch by batch, from the definition.

    Parameters
    ----------
    frame
        The projection of the area.
    window
        Which messages count.
    weigh
        What keywords weigh.
    """

    def __init__(self, frame: Frame, window: WindowSize, weigh: Callable[[str], float]) -> None:
        self._frame, self._window, self._weigh = frame, window, weigh
        self._objects: dict[int, OracleObject] = {}
        self._retracted: set[int] = set()
        self._object_of: list[int] = []
        self.subscriptions: dict[int, Feed] = {}
        self.now_ms = 0

    def apply(self, subscriptions: Iterable[Feed], messages: Iterable[Feed]) -> None:
        """Take a batch."""
        for row in sorted(subscriptions, key=lambda row: row["time_ms"]):
            self.subscriptions.pop(row["subscription_id"], None)
            if row["action"] == SUBSCRIBE:
                self.subscriptions[row["subscription_id"]] = row
        given = list(messages)
        if not given:
            return
        self.now_ms = max(self.now_ms, *(row["time_ms"] for row in given))
        retracted = {row["object_id"] for row in given if row["action"] == RETRACT}
        self._retracted |= retracted & self._objects.keys()
        published = [row for row in given if row["action"] == PUBLISH]
        for row in sorted(published, key=lambda row: (row["time_ms"], row["object_id"])):
            if row["object_id"] not in self._objects and row["object_id"] not in retracted:
                self._publish(row)

    def _publish(self, row: Feed) -> None:
        time_ms: int = row["time_ms"]
        ttl_ms = row["ttl_ms"] if row["ttl_ms"] is not None else _FOR_EVER_MS
        expiry_ms = time_ms + min(ttl_ms, self._window.duration_ms or _FOR_EVER_MS)
        if expiry_ms > self.now_ms:
            x_m, y_m = self._frame.project(row["lon"], row["lat"])
            words = frozenset(map(normalised_keyword, row["keywords"]))
            number = len(self._object_of)
            self._objects[row["object_id"]] = OracleObject(number, x_m, y_m, words, time_ms, expiry_ms)
            self._object_of.append(row["object_id"])

    def results(self, subscription_ids: Iterable[int]) -> dict[int, set[int]]:
        """Return what is in the results of some subscriptions. O(window) each."""
        first = max(0, len(self._object_of) - self._window.count) if self._window.count else 0
        alive = [
            item
            for one, item in self._objects.items()
            if item.object_id >= first and one not in self._retracted and item.expiry_ms > self.now_ms
        ]
        found = {}
        for one in subscription_ids:
            row = self.subscriptions[one]
            words = frozenset(map(normalised_keyword, row["keywords"]))
            wanted = OracleSubscription(words, row["k"], row["alpha"], row["similarity"], self._weigh)
            x_m, y_m = self._frame.project(row["lon"], row["lat"])
            best = oracle.top_k(wanted, x_m, y_m, self._frame.maxdist_m, alive, self.now_ms)
            found[one] = {self._object_of[match.object_id] for match in best}
        return found


class Audit(NamedTuple):
    """What an audit has found."""

    lists: int
    mismatches: list[str]


def audit(checkpoint: Path, out: Path, spark: SparkSession, sample: int, seed: int = 1) -> Audit:
    """Compare some of the present results with the definition.

    Parameters
    ----------
    checkpoint, out
        The job's.
    spark
        The session.
    sample
        How many subscriptions, at most.
    seed
        Which ones.

    Raises
    ------
    PlanError, ResultError
        If there is no job.
    """
    plan = Plan.read(checkpoint / "plan.json")
    table = lists(out, spark)
    number = last_batch(out)
    weigh = IdfTable.read(Path(plan.idf)).weight if plan.idf else lambda _word: 1.0
    definition = Definition(plan.frame, plan.window, weigh)
    for batch in range(number + 1):
        refused = _refused(out, batch)
        messages, subscriptions = (
            [
                row
                for path in paths
                for row in read_feed(Path(path), FEEDS[name])
                if shown_row(row) not in refused
            ]
            for name, paths in read_batch(out, batch)["files"].items()
        )
        definition.apply(subscriptions, messages)
    ids = sorted(definition.subscriptions)
    chosen = sorted(random.Random(seed).sample(ids, min(sample, len(ids))))
    expected = definition.results(chosen)
    rows = table.where(table.subscription_id.isin(chosen)).collect()
    held: dict[int, set[int]] = {one: set() for one in chosen}
    for row in rows:
        held[row.subscription_id].add(row.object_id)
    strangers = table.select("subscription_id").distinct().toArrow()["subscription_id"].to_pylist()
    mismatches = [
        f"subscription {one}: has {sorted(held[one])}, must have {sorted(expected[one])}"
        for one in chosen
        if held[one] != expected[one]
    ]
    gone = sorted(set(strangers) - set(ids))
    mismatches += [f"subscription {one} has ended, and has a result" for one in gone]
    return Audit(len(chosen), mismatches)


def _refused(out: Path, batch: int) -> set[str]:
    """Return the rows of a batch that were wrong."""
    path = out / "refused" / f"{batch_name(batch)}.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return {json.dumps(json.loads(line)["row"]) for line in lines}


def read_feed(path: Path, schema: pa.Schema) -> list[dict[str, Any]]:
    """Return the rows of a file of a feed."""
    if path.suffix == ".parquet":
        return pq.read_table(path, schema=schema).to_pylist()  # type: ignore[no-any-return]
    options = pa_json.ParseOptions(explicit_schema=schema)
    return pa_json.read_json(path, parse_options=options).to_pylist()  # type: ignore[no-any-return]
