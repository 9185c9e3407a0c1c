"""The job: feeds in, changes of results out, as a query of Spark Structured Streaming.

    messages      ─▶ route ─┐
                            ├─▶ by partition: apply to its engine ─▶ changes ─▶ a folder a batch
    subscriptions ─▶ place ─┘

Where subscriptions have replicas, messages go a second way besides: to those that they may concern, and
from there to the owners, as pairs.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from feeds.redis import RedisAddress
from feeds.redis.source import RedisSource
from feeds.redis.streams import Streams
from feeds.schemas import FEEDS, KEYS
from safe_region.idf import IdfTable
from safe_region.jit.ahead import Report
from streaming.arrays.reading import read_messages, read_subscriptions
from streaming.distribution import MECHANISMS, Sample
from streaming.distribution.keywords import Replicated
from streaming.parameters import StreamParameters
from streaming.plan import Plan
from streaming.result.sink import Batch, sink
from streaming.tasks.matching import matcher
from streaming.tasks.processor import ANSWERS_DDL, PartitionProcessor
from streaming.tasks.routing import ROUTED_DDL, messages_router, spreader, subscriptions_router, weights
from streaming.warmup import ready_kernels

_SAMPLED = 100_000
"""Rows of each feed that a mechanism looks at."""

_SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # It writes blocks and reads few: its caches need not be large.
    "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage": "true",
    "spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB": "256",
    "spark.sql.streaming.minBatchesToRetain": "10",
    # State is read in blocks of megabytes, which are sent to Python one by one.
    "spark.sql.execution.arrow.transformWithStateInPySpark.maxStateRecordsPerBatch": "1",
    # Engines take what a batch brings at once.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    "spark.sql.adaptive.enabled": "false",
}


def start(
    parameters: StreamParameters,
    spark: SparkSession,
    on_batch: Callable[[Batch], None] = lambda _batch: None,
    on_compiling: Report = lambda _done, _total: None,
) -> StreamingQuery:
    """Begin the job, or go on with it; return the query, which the caller waits for or stops.

    Parameters
    ----------
    parameters
        What it is told.
    spark
        The session.
    on_batch
        Is called after each batch, in a thread of Spark's.
    on_compiling
        Is told how many kernels are compiled, if any are missing on this machine.

    Raises
    ------
    PlanError
        If the job began otherwise.
    IdfError
        If the file of weights cannot be used.
    """
    for name, value in _SETTINGS.items():
        spark.conf.set(name, value)
    spark.conf.set("spark.sql.shuffle.partitions", str(parameters.partitions))
    plan = planned(parameters, spark)
    ready_kernels(plan, on_compiling)
    feeds = [
        _feed(parameters, "messages", spark).mapInArrow(messages_router(plan), ROUTED_DDL),
        _feed(parameters, "subscriptions", spark).mapInArrow(subscriptions_router(plan), ROUTED_DDL),
    ]
    mechanism = plan.make_distribution()
    if isinstance(mechanism, Replicated):
        spread = _feed(parameters, "messages", spark).mapInArrow(spreader(plan, mechanism), ROUTED_DDL)
        found = spread.repartition(parameters.partitions, "key").mapInArrow(
            matcher(plan, parameters.memory), ROUTED_DDL
        )
        feeds.append(found)
    answers = (
        reduce(DataFrame.unionByName, feeds)
        .groupBy("key")
        .transformWithState(PartitionProcessor(plan, parameters.memory), ANSWERS_DDL, "Append", "None")
    )
    writer = (
        answers.writeStream.queryName("nearcast")
        .option("checkpointLocation", str(parameters.checkpoint / "spark"))
        .outputMode("append")
        .foreachBatch(sink(parameters, on_batch))
    )
    return (writer.trigger(availableNow=True) if parameters.once else writer).start()


def planned(parameters: StreamParameters, spark: SparkSession) -> Plan:
    """Return the job's plan; make it, if the job is new."""
    path = parameters.checkpoint / "plan.json"
    chosen: dict[str, Any] = {
        "area": parameters.area,
        "window": parameters.window,
        "mechanism": parameters.mechanism,
        "partitions": parameters.partitions,
        "subscription_index": parameters.subscription_index,
        "clause_index": parameters.clause_index,
        "idf": _kept_idf(parameters),
    }
    if path.exists():
        plan = Plan.read(path)
        plan.require_same(**chosen)
        return plan
    keys = _keys(parameters.partitions, spark)
    draft = Plan("", distribution=None, keys=keys, **chosen)
    distribution = MECHANISMS[parameters.mechanism].choose(
        parameters.partitions, _sample(parameters, draft, spark)
    )
    plan = Plan.begin(distribution, keys=keys, **chosen)
    plan.write(path)
    return plan


def _kept_idf(parameters: StreamParameters) -> str:
    """Keep a file of weights with the job, under a name that says what is in it; return its path."""
    if parameters.idf is None:
        return ""
    data = parameters.idf.read_bytes()
    IdfTable.read(parameters.idf)
    kept = parameters.checkpoint / f"idf-{hashlib.sha256(data).hexdigest()[:16]}.json"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        fresh = kept.with_suffix(".fresh")
        shutil.copyfile(parameters.idf, fresh)
        fresh.rename(kept)
    return str(kept.absolute())


def _keys(partitions: int, spark: SparkSession) -> tuple[int, ...]:
    """Return for each partition the least number that Spark sends to a task of its own."""
    number = F.col("id").cast("int")
    task = F.pmod(F.hash(number), F.lit(partitions))
    # As many numbers as there are coupons to collect, many times over.
    count = 40 * partitions * (1 + partitions.bit_length())
    rows = spark.range(count).groupBy(task.alias("task")).agg(F.min(number).alias("key")).collect()
    found = {row.task: row.key for row in rows}
    return tuple(found[one] for one in range(partitions))


def _feed(parameters: StreamParameters, name: str, spark: SparkSession) -> DataFrame:
    """Return a feed as a stream."""
    where: Path | RedisAddress = getattr(parameters, name)
    if isinstance(where, RedisAddress):
        spark.dataSource.register(RedisSource)
        options = {
            "address": str(where),
            "feed": name,
            "entries_per_batch": str(parameters.files_per_batch),
        }
        return spark.readStream.format(RedisSource.name()).options(**options).load()
    reader = spark.readStream.schema(struct_of(FEEDS[name])).option(
        "maxFilesPerTrigger", parameters.files_per_batch
    )
    return reader.format(parameters.format).load(str(where))


def struct_of(schema: pa.Schema) -> StructType:
    """Return the columns of a feed as Spark names them."""
    return from_arrow_schema(schema)


def _sample(parameters: StreamParameters, plan: Plan, spark: SparkSession) -> Sample:
    """Return the first rows of what lies in the feeds."""
    weigh = weights(plan.idf)
    batches: list[pa.RecordBatch] = []
    for name, where in parameters.feeds:
        if isinstance(where, RedisAddress):
            rows = Streams(where, FEEDS[name], KEYS[name]).first(_SAMPLED)
        else:
            reader = spark.read.schema(struct_of(FEEDS[name])).format(parameters.format)
            rows = reader.load(str(where)).limit(_SAMPLED).toArrow().cast(FEEDS[name])
        batch = rows.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], FEEDS[name])]
        batches.append(batch[0])
    messages, subscriptions = batches
    return Sample(
        read_subscriptions(subscriptions, plan.frame, weigh)[0],
        read_messages(messages, plan.frame, weigh)[0],
    )


@contextmanager
def stopped(query: StreamingQuery) -> Iterator[StreamingQuery]:
    """Stop a query at the end."""
    try:
        yield query
    finally:
        query.stop()
