"""Planning of a job: the plan of a new job is chosen from its parameters and a sample of the feeds."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from feeds.redis import RedisAddress
from feeds.redis.streams import Streams
from feeds.schemas import BOOLEAN, KEYS, TOP_K, WITHOUT_PAYLOADS
from feeds.storage import Stored
from safe_region.scoring.idf import IdfTable
from streaming.arrays.blocks import Messages, Subscriptions
from streaming.arrays.reading import read_messages, read_subscriptions
from streaming.distribution import MECHANISMS, Sample, has_replicas, needs_reaches, needs_sample
from streaming.parameters import StreamParameters
from streaming.partition.reaches import with_reaches
from streaming.plan import Plan, PlanError
from streaming.tasks.log import compacted
from streaming.tasks.processor import release
from streaming.tasks.routing import weights

PLAN, REBALANCING = "plan.json", "rebalancing.json"
"""Files of the checkpoint; the second one exists while the job is being rebalanced."""
SPARK, COMMITS = "spark", "commits"
"""The folder of the checkpoint that Spark writes, and its log of batches that are complete."""
SAMPLED = 100_000
"""The number of rows of each feed that a mechanism reads."""


def read_plan(checkpoint: Stored) -> Plan:
    """Return the plan of a job that has started.

    Raises
    ------
    PlanError
        If there is no plan, or it has another version.
    """
    file = checkpoint / PLAN
    if not file.exists():
        raise PlanError(f"{checkpoint} is not the checkpoint of a job: it lacks {PLAN}")
    return Plan.from_json(file.read(), file)


def write_plan(checkpoint: Stored, plan: Plan) -> None:
    """Write a plan atomically, readable by this user only."""
    (checkpoint / PLAN).replace(plan.as_json())


def last_of(log: Stored) -> int:
    """Return the number of the last batch in a log of Spark; -1 if there is none."""
    return max((int(name) for name in log.names() if name.isdecimal()), default=-1)


def require_no_batches(checkpoint: Stored) -> None:
    """Require that a checkpoint without a plan has no batches: a new plan would not fit their state.

    Raises
    ------
    PlanError
        If it has any.
    """
    last = last_of(checkpoint / SPARK / COMMITS)
    if last >= 0:
        raise PlanError(
            f"{checkpoint} has batches up to {last}, but lacks {PLAN}: restore this file, or start the "
            "job again with another checkpoint and another folder of results"
        )


def planned(parameters: StreamParameters, spark: SparkSession) -> Plan:
    """Return the plan of the job; make the plan if the job is new.

    Raises
    ------
    PlanError
        If the job was started with other settings, a rebalancing has not finished, or the checkpoint
        has batches and no plan.
    """
    checkpoint = Stored(spark, parameters.checkpoint)
    chosen = chosen_of(parameters, checkpoint)
    if (checkpoint / PLAN).exists():
        if rebalancing(checkpoint, spark, parameters.memory) is not None:
            raise PlanError("a rebalancing is incomplete; start the job again with --rebalance")
        plan = read_plan(checkpoint)
        plan.require_same(**chosen)
        return settled(checkpoint, plan, spark)
    require_no_batches(checkpoint)
    keys = keys_of(parameters.partitions, spark)
    draft = Plan("", distribution=None, keys=keys, **chosen)
    sample = sample_of(parameters, draft, spark)
    distribution = MECHANISMS[parameters.mechanism].choose(
        parameters.partitions, sample, parameters.first_level
    )
    plan = Plan.begin(distribution, keys=keys, **chosen)
    write_plan(checkpoint, plan)
    return plan


def chosen_of(parameters: StreamParameters, checkpoint: Stored) -> dict[str, Any]:
    """Return the settings of the plan that come from the parameters."""
    return {
        "area": parameters.area,
        "window": parameters.window,
        "mechanism": parameters.mechanism,
        "partitions": parameters.partitions,
        "first_level": parameters.first_level,
        "subscription_index": parameters.subscription_index,
        "clause_index": parameters.clause_index,
        "stationary_buffer": parameters.stationary_buffer,
        "idf": _kept_idf(parameters, checkpoint),
        "ahead_ms": parameters.ahead_ms,
    }


def state_of(checkpoint: Stored, name: str, spark: SparkSession) -> DataFrame:
    """Return a named state variable of the owners from Spark's state, as of the last batch."""
    reader = spark.read.format("statestore").option("path", f"{checkpoint}/{SPARK}")
    # Spark numbers operators from the sink: replicas, which come earlier in the query, have 1.
    return reader.option("operatorId", 0).option("stateVarName", name).load()


def rebalancing(checkpoint: Stored, spark: SparkSession, memory: Path) -> dict[str, Any] | None:
    """Return the settings to which the job is being rebalanced; None if it is not."""
    file = checkpoint / REBALANCING
    if not file.exists():
        return None
    found: dict[str, Any] = json.loads(file.read())
    run = found.pop("run")
    if run == read_plan(checkpoint).run:
        return found
    end_rebalancing(checkpoint, run, spark, memory)
    return None


def end_rebalancing(checkpoint: Stored, run: str, spark: SparkSession, memory: Path) -> None:
    """Take the steps that are left once the new plan is written.

    The indexes of the run before are removed first: afterwards nothing has the name of their folder.
    """
    release(spark, run, memory)
    (checkpoint / REBALANCING).remove()


def settled(checkpoint: Stored, plan: Plan, spark: SparkSession) -> Plan:
    """Remove the state set aside for a rebalancing, if all partitions have started; return the plan."""
    if not plan.moved:
        return plan
    heads = state_of(checkpoint, "head", spark).select("key.key").collect()
    if {*plan.keys} - {row.key for row in heads}:
        return plan
    new_plan = replace(plan, moved="", retired=())
    write_plan(checkpoint, new_plan)
    Stored(spark, plan.moved).remove()
    return new_plan


def _kept_idf(parameters: StreamParameters, checkpoint: Stored) -> str:
    """Copy a file of weights to the checkpoint, under a name made from its digest; return its URI."""
    if parameters.idf is None:
        return ""
    data = parameters.idf.read_bytes()
    IdfTable.read(parameters.idf)
    kept = checkpoint / f"idf-{hashlib.sha256(data).hexdigest()[:16]}.json"
    if not kept.exists():
        kept.replace(data)
    return kept.resolved()


def keys_of(partitions: int, spark: SparkSession, above: int = -1) -> tuple[int, ...]:
    """Return for each partition the least number above `above` that Spark sends to a task of its own."""
    number = F.col("id").cast("int")
    task = F.pmod(F.hash(number), F.lit(partitions))
    # As many numbers as there are coupons to collect, many times over.
    count = 40 * partitions * (1 + partitions.bit_length())
    rows = (
        spark.range(above + 1, above + 1 + count)
        .groupBy(task.alias("task"))
        .agg(F.min(number).alias("key"))
        .collect()
    )
    found = {row.task: row.key for row in rows}
    return tuple(found[one] for one in range(partitions))


def sample_of(parameters: StreamParameters, plan: Plan, spark: SparkSession) -> Sample:
    """Return the first rows of the feeds; with reaches, if the mechanism needs them."""
    if not needs_sample(plan.mechanism):
        return Sample(Subscriptions.join([]), Messages.join([]))
    weigh = weights(plan.idf)
    batches: list[pa.RecordBatch] = []
    for name, where in parameters.feeds:
        schema = WITHOUT_PAYLOADS[name]
        if isinstance(where, RedisAddress):
            rows = Streams(where, schema, KEYS[name]).first(SAMPLED)
        else:
            reader = spark.read.schema(struct_of(schema)).format(parameters.format)
            rows = reader.load(str(where)).limit(SAMPLED).toArrow().cast(schema)
        batch = rows.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], schema)]
        batches.append(batch[0])
    messages, subscriptions = batches
    kinds = (TOP_K,) if has_replicas(plan.mechanism) else (TOP_K, BOOLEAN)
    sample = Sample(
        compacted([read_subscriptions(subscriptions, plan.frame, weigh, kinds)[0]]),
        read_messages(messages, plan.frame, weigh)[0],
    )
    if not needs_reaches(plan.mechanism):
        return sample
    share = min(1.0, len(sample.messages) / (plan.window.count or 1))
    return with_reaches(sample, plan.engine_options(), share)


def struct_of(schema: pa.Schema) -> StructType:
    """Return the columns of a feed as Spark names them."""
    return from_arrow_schema(schema)
