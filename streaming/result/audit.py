"""The audit: compares the job's results after a batch with the results that follow from the definition.

The definition is `safe_region.oracle`; the manifest of a batch names its rows. The audit shares no code
with the partitions except the schemas of the feeds. The set of messages that count follows from all
messages together, so the audit does not repeat the batches.
"""

from __future__ import annotations

import heapq
import json
import math
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from feeds.redis import RedisAddress
from feeds.redis.address import Span, is_redis
from feeds.redis.streams import Streams
from feeds.schemas import (
    BOOLEAN,
    EXPIRE,
    FEEDS,
    KEYS,
    RETRACT,
    SUBSCRIBE,
    SUBSCRIPTIONS,
    WITHOUT_PAYLOADS,
)
from feeds.storage import Stored, Where, open_resolved
from nearcast.expressions import clauses_of
from safe_region import oracle
from safe_region.earth.frame import Frame
from safe_region.oracle import OracleClause, OracleObject, OracleRange, OracleSubscription
from safe_region.oracle.plane import OracleCircle, OracleRectangle
from safe_region.scoring.formulas import score_of
from safe_region.scoring.keywords import normalised_keyword
from streaming.planning import read_plan, struct_of
from streaming.result.lists import lists
from streaming.result.manifest import REFUSED, ResultError, batches, folder_of, read_batch
from streaming.tasks.routing import read_weights, shown_row
from streaming.window_size import WindowSize

_FOR_EVER_MS = 1 << 62
_SCORE_ERROR_MAX = 1e-9
_OWN_ID = KEYS["subscriptions"]
_GLOB = re.compile(r"[][*?{}\\]")
"""Characters that have a meaning in paths for Spark."""

Feed = Mapping[str, Any]
"""A row of a feed."""


class Definition:
    """The results that follow from the definition, over all rows so far.

    The window has the last messages published, in the order of (time, id), including expired and
    retracted ones. A message in the window counts if it was not retracted, before or after its arrival,
    and its lifetime is not over by the latest time.

    Parameters
    ----------
    frame
        The projection of the area.
    window
        Which messages count.
    weigh
        Returns the weight of a keyword.
    """

    def __init__(self, frame: Frame, window: WindowSize, weigh: Callable[[str], float]) -> None:
        self._frame, self._window, self._weigh = frame, window, weigh
        self._objects: dict[int, OracleObject] = {}
        self._retracted: set[int] = set()
        self.subscriptions: dict[int, Feed] = {}
        self.now_ms = 0

    def apply(self, subscriptions: Iterable[Feed], messages: Iterable[Feed]) -> None:
        """Add rows; later batches of subscriptions replace earlier ones, messages have no order."""
        for row in sorted(subscriptions, key=lambda row: row["time_ms"]):
            self.subscriptions.pop(row["subscription_id"], None)
            if row["action"] == SUBSCRIBE:
                self.subscriptions[row["subscription_id"]] = row
        for row in sorted(messages, key=lambda row: row["time_ms"]):
            if row["action"] == EXPIRE:
                continue
            self.now_ms = max(self.now_ms, row["time_ms"])
            if row["action"] == RETRACT:
                self._retracted.add(row["object_id"])
            elif row["object_id"] not in self._objects:  # a source may deliver twice
                self._objects[row["object_id"]] = self._object(row)

    def _object(self, row: Feed) -> OracleObject:
        x_m, y_m = self._frame.project(row["lon"], row["lat"])
        words = frozenset(map(normalised_keyword, row["keywords"]))
        ttl_ms = row["ttl_ms"] if row["ttl_ms"] is not None else _FOR_EVER_MS
        return OracleObject(row["object_id"], x_m, y_m, words, row["time_ms"], row["time_ms"] + ttl_ms)

    def results(self, subscription_ids: Iterable[int]) -> dict[int, dict[int, float]]:
        """Return the results of some subscriptions, with scores; empty for those that do not exist.

        O(messages log messages), and O(objects that share a keyword) each.
        """
        alive: dict[str, list[OracleObject]] = {}
        for item in self._in_window():
            if item.object_id not in self._retracted and item.expiry_ms > self.now_ms:
                for word in item.keywords:
                    alive.setdefault(word, []).append(item)
        found: dict[int, dict[int, float]] = {}
        for one in subscription_ids:
            row = self.subscriptions.get(one)
            found[one] = {} if row is None else self._result(row, alive)
        return found

    def _in_window(self) -> list[OracleObject]:
        """Return the last messages that were published."""
        count, duration_ms = self._window.count, self._window.duration_ms
        if count:
            return heapq.nlargest(
                count, self._objects.values(), key=lambda item: (item.created_ms, item.object_id)
            )
        return [one for one in self._objects.values() if one.created_ms > self.now_ms - duration_ms]

    def _result(self, row: Feed, alive: Mapping[str, list[OracleObject]]) -> dict[int, float]:
        if row["kind"] == BOOLEAN:
            return self._matches(row, alive)
        words = frozenset(map(normalised_keyword, row["keywords"]))
        wanted = OracleSubscription(words, row["k"], row["alpha"], row["similarity"], self._weigh)
        x_m, y_m = self._frame.project(row["lon"], row["lat"])
        having = {item.object_id: item for word in words for item in alive.get(word, ())}
        best = oracle.top_k(wanted, x_m, y_m, self._frame.maxdist_m, having.values(), self.now_ms)
        longest_m = self._frame.maxdist_m
        return {one.object_id: score_of(one.length_m, row["alpha"], longest_m) for one in best}

    def _matches(self, row: Feed, alive: Mapping[str, list[OracleObject]]) -> dict[int, float]:
        """Return the matches of a boolean subscription, with the score 0."""
        clauses = [
            OracleClause(frozenset(one.required), frozenset(one.excluded))
            for one in clauses_of(row["expression"])
        ]
        if row["bounds"] is None:
            x_m, y_m = self._frame.project(row["lon"], row["lat"])
            where: Any = OracleCircle(row["radius_m"], (x_m, y_m))
        else:
            west, south, east, north = row["bounds"]
            where = OracleRectangle(*self._frame.project(west, south), *self._frame.project(east, north))
        wanted = OracleRange(tuple(clauses), where)
        having = {
            item.object_id: item
            for one in clauses
            for word in one.required
            for item in alive.get(word, ())
        }
        found = oracle.matching(wanted, 0.0, 0.0, having.values(), self.now_ms)
        return {match.object_id: 0.0 for match in found}


class Audit(NamedTuple):
    """The findings of an audit."""

    lists: int
    mismatches: list[str]


def audit(checkpoint: Where, out: Where, spark: SparkSession, sample: int, seed: int = 1) -> Audit:
    """Compare a sample of the results after the last batch with the definition.

    The job may be running: batches that it completes meanwhile do not count.

    Parameters
    ----------
    checkpoint, out
        The folders of the job.
    spark
        The session.
    sample
        The number of subscriptions, at most.
    seed
        The seed of the sample.

    Raises
    ------
    PlanError, ResultError
        If there is no job, or manifests of it were removed.
    """
    plan, folder = read_plan(Stored(spark, checkpoint)), Stored(spark, out)
    weigh = read_weights(plan.idf).weight if plan.idf else lambda _word: 1.0
    definition = Definition(plan.frame, plan.window, weigh)
    numbers = batches(folder)
    if numbers[0] > 0:
        raise ResultError(f"an audit reads all batches, and those before {numbers[0]} were removed")
    found = [read_batch(folder, batch) for batch in numbers]
    ids = _subscription_ids(found, spark)
    chosen = sorted(random.Random(seed).sample(ids, min(sample, len(ids))))
    for batch in found:
        refused = _refused(folder, batch, spark)
        rows = {
            name: [row for row in _rows(batch, name, chosen, spark) if shown_row(row) not in refused]
            for name in FEEDS
        }
        definition.apply(rows["subscriptions"], rows["messages"])
    expected = definition.results(chosen)
    held: dict[int, dict[int, float]] = {one: {} for one in chosen}
    for row in lists(out, spark, found[-1]["batch"], chosen).collect():
        held[row.subscription_id][row.object_id] = row.score
    mismatches = [
        f"subscription {one}: has {_shown(held[one])}, must have {_shown(expected[one])}"
        for one in chosen
        if not _are_same(held[one], expected[one])
    ]
    return Audit(len(chosen), mismatches)


def _are_same(held: Mapping[int, float], expected: Mapping[int, float]) -> bool:
    """Whether results have the same objects, with the same scores except for rounding."""
    return held.keys() == expected.keys() and all(
        math.isclose(score, expected[one], rel_tol=0.0, abs_tol=_SCORE_ERROR_MAX)
        for one, score in held.items()
    )


def _shown(scores: Mapping[int, float]) -> str:
    return "{" + ", ".join(f"{one}: {score:.9g}" for one, score in sorted(scores.items())) + "}"


def _subscription_ids(found: Iterable[Mapping[str, Any]], spark: SparkSession) -> list[int]:
    """Return the ids of all present and former subscriptions of some batches, in order."""
    schema = pa.schema([SUBSCRIPTIONS.field(_OWN_ID)])
    tables = [table for batch in found for table in _tables(batch, "subscriptions", schema, spark)]
    distinct = pc.unique(pa.concat_tables([schema.empty_table(), *tables])[_OWN_ID])
    return sorted(one for one in distinct.to_pylist() if one is not None)


def _rows(
    batch: Mapping[str, Any], feed: str, subscription_ids: Sequence[int], spark: SparkSession
) -> Iterator[Feed]:
    """Yield the rows of a feed in a batch; of subscriptions, only those in `subscription_ids`."""
    wanted = pa.array(subscription_ids, pa.int64())
    for table in _tables(batch, feed, WITHOUT_PAYLOADS[feed], spark):
        if feed == "subscriptions":
            yield from table.filter(pc.is_in(table[_OWN_ID], value_set=wanted)).to_pylist()
        else:
            yield from table.to_pylist()


def _refused(out: Stored, batch: Mapping[str, Any], spark: SparkSession) -> set[str]:
    """Return the invalid rows of a batch."""
    if not batch.get("refused", 0):
        return set()
    own = folder_of(batch["batch"], batch["driver"])
    lines = spark.read.text(f"{out}/{REFUSED}/{own}").collect()
    return {json.dumps(json.loads(line.value)["row"]) for line in lines}


def _tables(
    batch: Mapping[str, Any], feed: str, schema: pa.Schema, spark: SparkSession
) -> Iterator[pa.Table]:
    """Yield the columns of a schema of the rows of a feed in a batch.

    Spark reads JSON, as in the job: of a line that is not right it may read some of the values.
    """
    json_files = []
    for where in batch["files"][feed]:
        path = unquote(where)  # Hadoop's paths are not encoded, unlike the URIs that a batch lists
        if is_redis(where):
            yield _of_redis(Span.parse(where), KEYS[feed], schema)
        elif path.endswith(".parquet"):
            yield _of_parquet(Stored(spark, path).resolved(), schema)
        else:
            json_files.append(_GLOB.sub(r"\\\g<0>", path))
    if json_files:
        yield spark.read.schema(struct_of(schema)).json(json_files).toArrow().cast(schema)


def _of_parquet(where: str, schema: pa.Schema) -> pa.Table:
    system, path = open_resolved(where)
    return pq.read_table(path, filesystem=system, schema=schema)


def _of_redis(span: Span, key: str, schema: pa.Schema) -> pa.Table:
    streams = Streams(RedisAddress(span.server, span.stream.rpartition(":")[0]), schema, key)
    try:
        return pa.Table.from_batches(streams.read(span), schema)
    finally:
        streams.close()
