"""The job: reads feeds and writes changes of results, as a query of Spark Structured Streaming.

    messages      ─▶ route ─┐
                            ├─▶ by partition: apply to its engine ─▶ changes ─▶ a folder a batch
    subscriptions ─▶ place ─┘

If subscriptions have replicas, the replicas receive the messages first and add the subscriptions that
each message may affect, as pairs. The feedback of the owners is a source of the next batch
(`streaming.feedback`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from feeds.cluster import is_local
from feeds.hosts.preflight import check_hosts
from feeds.redis import RedisAddress
from feeds.redis.source import RedisSource
from feeds.schemas import BATCH_MS, SOURCE, WITHOUT_PAYLOADS
from feeds.storage import Stored, Where
from safe_region.jit.ahead import Report
from streaming.claim import Claim
from streaming.distribution import has_replicas
from streaming.feedback.exchange import Exchange
from streaming.outputs import bind_outputs
from streaming.parameters import StreamParameters
from streaming.plan import Plan
from streaming.planning import planned, struct_of
from streaming.result.manifest import feedback_files
from streaming.result.sink import Batch, Sink
from streaming.tasks.answers import ANSWERS_DDL
from streaming.tasks.processor import PartitionProcessor
from streaming.tasks.replicating import ReplicaProcessor
from streaming.tasks.routing import ROUTED_DDL, messages_router, subscriptions_router
from streaming.warmup import compile_on_hosts, ready_kernels

_SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # The store writes blocks and reads few of them: its caches need not be large.
    "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage": "true",
    "spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB": "256",
    "spark.sql.streaming.minBatchesToRetain": "10",
    # Spark reads state in blocks of megabytes and sends them to Python one by one.
    "spark.sql.execution.arrow.transformWithStateInPySpark.maxStateRecordsPerBatch": "1",
    # An engine takes all rows of a batch at once.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    "spark.sql.adaptive.enabled": "false",
}

_STARTS = 5
"""The number of times that a query is started before its error is final."""
_SLOW = "Python worker failed to connect back"
"""Is in Spark's error when Python starts too slowly."""
_POLL_S = 0.05


def start(
    parameters: StreamParameters,
    spark: SparkSession,
    on_batch: Callable[[Batch], None] = lambda _batch: None,
    on_compiling: Report = lambda _done, _total: None,
    claim: Claim | None = None,
    on_notice: Callable[[str], None] = lambda _text: None,
) -> StreamingQuery:
    """Start the job or resume it; return the query once its first batch is planned, or it waits for rows.

    The caller waits for the query, or stops it.

    Parameters
    ----------
    parameters
        The parameters of the job.
    spark
        The session.
    on_batch
        Called after each batch, in a thread of Spark.
    on_compiling
        Called with the number of kernels that are compiled, if any are missing on this machine.
    claim
        Taken after all other checks have passed.
    on_notice
        Called with a sentence if the query has to be started again.

    Raises
    ------
    ParameterError
        If a folder that the job reads does not exist.
    PlanError
        If the job was started with other settings, or an output belongs to another job.
    IdfError
        If the file of weights cannot be used.
    ClusterError
        If a host of a cluster cannot do its part.
    """
    plan = _ready(parameters, spark, on_compiling)
    # Spark logs the time of a batch when it starts the batch, so a repeated batch has the same time.
    rows = _feed(parameters, "messages", spark).withColumn(BATCH_MS, F.unix_millis(F.current_timestamp()))
    messages = rows.mapInArrow(messages_router(plan), ROUTED_DDL)
    out = Stored(spark, parameters.out, is_shared=True)
    checkpoint = Stored(spark, parameters.checkpoint)
    claim, exchange = claim or Claim(checkpoint), None
    claim.take()
    if has_replicas(plan.mechanism):
        exchange = Exchange(checkpoint / "feedback", plan.keys)
        exchange.resume(feedback_files(out))
        messages = (
            messages.unionByName(exchange.stream(spark))
            .groupBy("key")
            .transformWithState(ReplicaProcessor(plan, parameters.memory), ROUTED_DDL, "Append", "None")
        )
    subscriptions = _feed(parameters, "subscriptions", spark)
    answers = (
        messages.unionByName(subscriptions.mapInArrow(subscriptions_router(plan), ROUTED_DDL))
        .groupBy("key")
        .transformWithState(PartitionProcessor(plan, parameters.memory), ANSWERS_DDL, "Append", "None")
    )
    writer = (
        answers.writeStream.queryName("nearcast")
        .option("checkpointLocation", f"{checkpoint}/spark")
        .outputMode("append")
    )
    if parameters.once:
        writer = writer.trigger(availableNow=True)
    elif parameters.every_ms is not None:
        writer = writer.trigger(processingTime=f"{parameters.every_ms} milliseconds")
    sink = Sink(out, claim, on_batch, exchange, parameters.updates)
    return _started(writer, sink, on_notice)


def _started(writer: DataStreamWriter, sink: Sink, on_notice: Callable[[str], None]) -> StreamingQuery:
    """Start a query, and start it again if Python took longer to start than Spark waits, which is 10 s.

    Spark starts Python processes on the driver's host (`createSimpleWorker` of `PythonWorkerFactory`):
    one for each Python source, and one for each operator with state when it plans the first batch. The
    limit cannot be set.
    """
    is_planned = threading.Event()

    def write(answers: DataFrame, number: int) -> None:
        is_planned.set()
        sink(answers, number)

    writer = writer.foreachBatch(write)
    for attempt in range(_STARTS):
        query = writer.start()
        while query.isActive and not is_planned.wait(_POLL_S):
            if query.status["message"].startswith("Waiting"):
                break
        if attempt == _STARTS - 1 or _SLOW not in str(query.exception()):
            break
        on_notice("Python took longer than 10 s to start; the query is started again")
    return query


def _ready(parameters: StreamParameters, spark: SparkSession, on_compiling: Report) -> Plan:
    """Return the plan, once this machine and all hosts have everything that the plan needs."""
    prepare(spark)
    parameters.require_folders(spark)
    spark.conf.set("spark.sql.shuffle.partitions", str(parameters.partitions))
    is_cluster = not is_local(str(spark.sparkContext.master))
    if is_cluster:
        read = [where for _, where in parameters.feeds if not isinstance(where, RedisAddress)]
        written = [parameters.out, parameters.checkpoint]
        Stored(spark, parameters.checkpoint).make_folder()  # for this user only
        check_hosts(spark, read=read, written=written, memory=parameters.memory)
    plan = planned(parameters, spark)
    bind_outputs(parameters, spark)
    ready_kernels(plan, on_compiling)
    if is_cluster:
        compile_on_hosts(spark, plan)
    return plan


def prepare(spark: SparkSession) -> None:
    """Set the options of the session that a job needs."""
    for name, value in _SETTINGS.items():
        spark.conf.set(name, value)


def _feed(parameters: StreamParameters, name: str, spark: SparkSession) -> DataFrame:
    """Return a feed as a stream: its columns without payloads, and the source of each row."""
    where: Where | RedisAddress = getattr(parameters, name)
    if isinstance(where, RedisAddress):
        spark.dataSource.register(RedisSource)
        options = {
            "address": str(where),
            "feed": name,
            "entries_per_batch": str(parameters.files_per_batch),
        }
        return spark.readStream.format(RedisSource.name()).options(**options).load()
    reader = spark.readStream.schema(struct_of(WITHOUT_PAYLOADS[name])).option(
        "maxFilesPerTrigger", parameters.files_per_batch
    )
    files = reader.format(parameters.format).load(str(where))
    return files.select("*", F.col("_metadata.file_path").alias(SOURCE))


@contextmanager
def stopped(query: StreamingQuery) -> Iterator[StreamingQuery]:
    """Stop a query at the end."""
    try:
        yield query
    finally:
        query.stop()
