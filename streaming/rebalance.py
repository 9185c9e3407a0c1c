"""Rebalancing: an existing job continues with other partitions, or with another mechanism or index.

Between two starts, the log of each partition is read from Spark's state. Subscriptions are divided
again, by statistics of the live ones, and set aside. Spark itself redistributes its state among another
number of tasks. New partitions have their own keys; with the first batch they start with the state set
aside, and the old ones end. Results do not change: changes that were sent before remain valid.

A file marks the rebalancing as in progress until it is complete. If the process is killed meanwhile, the
next run repeats the rebalancing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from feeds.storage import Stored
from streaming.arrays.blocks import Messages, Subscriptions
from streaming.claim import Claim
from streaming.distribution import MECHANISMS, Distribution, Sample, has_replicas, needs_reaches
from streaming.job import prepare, start
from streaming.parameters import StreamParameters
from streaming.partition.reaches import with_reaches
from streaming.plan import REBALANCED, Plan, PlanError
from streaming.planning import (
    COMMITS,
    PLAN,
    REBALANCING,
    SAMPLED,
    SPARK,
    chosen_of,
    end_rebalancing,
    keys_of,
    last_of,
    read_plan,
    rebalancing,
    require_no_batches,
    settled,
    state_of,
    write_plan,
)
from streaming.result.sink import Batch
from streaming.tasks.log import chunks, compacted
from streaming.tasks.rebalanced_state import HEAD, MESSAGES, SUBSCRIPTIONS

_ALIVE = pa.schema([("count", pa.int64()), ("block", pa.binary())])
_ALIVE_DDL = "count long, block binary"
_DIVIDED = pa.schema([("partition", pa.int32()), ("count", pa.int64()), ("block", pa.binary())])
_DIVIDED_DDL = "partition int, count long, block binary"
_OFFSETS = "offsets"
"""Spark's log of batches that were started."""
_SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"


class Rebalanced(NamedTuple):
    """The result of a rebalancing."""

    before: int
    """The number of partitions before and after."""
    after: int
    subscriptions: int


def rebalance(
    parameters: StreamParameters,
    spark: SparkSession,
    on_batch: Callable[[Batch], None] = lambda _batch: None,
    claim: Claim | None = None,
) -> Rebalanced | None:
    """Rebalance a job that is not running; return None if there is nothing to do.

    That is so if the job has not started, or has not read anything since it was rebalanced in this way.

    Parameters
    ----------
    parameters
        The parameters with which the job is to continue.
    spark
        The session.
    on_batch
        Called with each batch that was not complete: the job first reads all present rows.
    claim
        Taken after the parameters have been checked: a driver that runs the job ends.

    Raises
    ------
    PlanError
        If a setting that cannot change differs, another rebalancing was not finished, or the checkpoint
        has batches and no plan.
    TakenOverError
        If another driver takes the job over before the new plan is written.
    """
    checkpoint = Stored(spark, parameters.checkpoint)
    if not (checkpoint / PLAN).exists():
        require_no_batches(checkpoint)
        return None
    before, chosen = read_plan(checkpoint), chosen_of(parameters, checkpoint)
    before.require_same(**{name: value for name, value in chosen.items() if name not in REBALANCED})
    _require_same_kind(before.mechanism, parameters.mechanism)
    same = {name: getattr(before, name) for name in REBALANCED}
    wanted = {name: chosen[name] for name in REBALANCED}
    pending = rebalancing(checkpoint, spark, parameters.memory)
    if pending not in (None, wanted):
        settings = ", ".join(f"{name} {value}" for name, value in pending.items())
        raise PlanError(f"a rebalancing is incomplete; its target was {settings}")
    # From here on the driver that had the job completes no batch.
    claim = claim or Claim(checkpoint)
    claim.take()
    own = checkpoint / SPARK
    if _is_pending(own, before):
        (checkpoint / REBALANCING).remove()  # of an attempt beside an older driver that started a batch
        present = parameters.changed(once=True, every_ms=None, **same)
        start(present, spark, on_batch, claim=claim).awaitTermination()
    claim.require()
    if last_of(own / COMMITS) < 0:
        (checkpoint / PLAN).remove()
        return None
    if settled(checkpoint, before, spark).moved:
        if wanted == same:
            return None
        raise PlanError(
            "the job has not read any messages since the last rebalancing; run it before "
            "you rebalance it again"
        )
    prepare(spark)
    claim.require()
    (checkpoint / REBALANCING).replace(json.dumps({"run": before.run, **wanted}).encode())
    folder = checkpoint / f"moved-{before.run}"
    draft = replace(before, **chosen, distribution=None)
    count = _put_aside(checkpoint, before, folder, spark)
    distribution = _divide(draft, folder, spark)
    claim.require()
    if _tasks(own, last_of(own / COMMITS)) != draft.partitions:
        manager = spark._streamingCheckpointManager  # noqa: SLF001 - documented, and not public yet
        manager.repartition(str(own), draft.partitions)
    keys = keys_of(draft.partitions, spark, above=max(before.keys))
    moved = folder.resolved()
    claim.require()
    write_plan(
        checkpoint, Plan.begin(distribution, keys=keys, moved=moved, retired=before.keys, **chosen)
    )
    end_rebalancing(checkpoint, before.run, spark, parameters.memory)
    return Rebalanced(before.partitions, draft.partitions, count)


def _require_same_kind(before: str, after: str) -> None:
    """Require that both mechanisms have replicas, or neither: boolean subscriptions need one without."""
    allowed = [name for name in MECHANISMS if has_replicas(name) == has_replicas(before)]
    if after not in allowed:
        raise PlanError(
            f"mechanism is {after}, must be one of {', '.join(allowed)}, because it was {before}"
        )


# -- Spark's checkpoint --------------------------------------------------------------------------


def _is_pending(checkpoint: Stored, plan: Plan) -> bool:
    """Whether a batch of this plan was started that is not complete.

    A batch with which Spark redistributes its state has another number of tasks; Spark completes it.
    """
    last = last_of(checkpoint / _OFFSETS)
    return last > last_of(checkpoint / COMMITS) and _tasks(checkpoint, last) == plan.partitions


def _tasks(checkpoint: Stored, batch: int) -> int:
    """Return how many tasks the state is divided among in a batch."""
    file = checkpoint / _OFFSETS / str(batch)
    return int(json.loads(file.read().splitlines()[1])["conf"][_SHUFFLE_PARTITIONS])


# -- the logs of partitions ----------------------------------------------------------------------


def _put_aside(checkpoint: Stored, before: Plan, folder: Stored, spark: SparkSession) -> int:
    """Write the window, which each partition has logged, and the live subscriptions; count these."""

    def state(name: str) -> DataFrame:
        return state_of(checkpoint, name, spark)

    first = F.col("key.key") == before.keys[0]
    rows = (
        state("messages")
        .where(first)
        .select("user_map_key.version", "user_map_value.*")
        .join(state("spans").where(first).select("user_map_key.version", "user_map_value.*"), "version")
    )
    rows.write.mode("overwrite").parquet(f"{folder}/{MESSAGES}")
    head = state("head").where(first).select("value.*").collect()[0]
    numbers = {"now_ms": head.now_ms, "next_number": head.next_number}
    (folder / HEAD).replace(json.dumps(numbers).encode())

    logged = state("subscriptions").where(F.col("key.key").isin(list(before.keys)))
    blocks = logged.select("key.key", "user_map_key.version", "user_map_value.block").groupBy("key")
    blocks.applyInArrow(_alive, _ALIVE_DDL).write.mode("overwrite").parquet(f"{folder}/alive")
    return _count(_alive_of(folder, spark))


def _alive(table: pa.Table) -> pa.Table:
    """Return the live subscriptions after the whole log of a partition."""
    ordered = table.sort_by("version")["block"].to_pylist()
    alive = compacted([Subscriptions.unpack(block) for block in ordered])
    rows = [{"count": len(one), "block": one.pack()} for one in chunks(alive)]
    return pa.Table.from_pylist(rows, _ALIVE)


def _count(alive: DataFrame) -> int:
    return alive.agg(F.sum("count")).collect()[0][0] or 0


def _alive_of(folder: Stored, spark: SparkSession) -> DataFrame:
    return spark.read.schema(_ALIVE_DDL).parquet(f"{folder}/alive")


def _divide(draft: Plan, folder: Stored, spark: SparkSession) -> Distribution:
    """Write the live subscriptions by new partition; return the distribution."""
    alive = _alive_of(folder, spark)
    sample, share = _sample(folder, alive, spark)
    if needs_reaches(draft.mechanism):
        sample = with_reaches(sample, draft.engine_options(), share)
    distribution = MECHANISMS[draft.mechanism].choose(draft.partitions, sample, draft.first_level)
    divided = alive.select("block").mapInArrow(_divider(distribution), _DIVIDED_DDL)
    divided.write.mode("overwrite").partitionBy("partition").parquet(f"{folder}/{SUBSCRIPTIONS}")
    (folder / "alive").remove()
    return distribution


def _sample(folder: Stored, alive: DataFrame, spark: SparkSession) -> tuple[Sample, float]:
    """Return a sample of the subscriptions, the last messages, and their fraction of the window."""
    share = min(1.0, SAMPLED / max(1, _count(alive)))
    blocks = alive.select("block").mapInArrow(_sampler(share), "block binary").collect()
    next_number = json.loads((folder / HEAD).read())["next_number"]
    window = spark.read.parquet(f"{folder}/{MESSAGES}")
    recent = window.where(F.col("next_number") > next_number - SAMPLED).select("block").collect()
    sample = Sample(
        Subscriptions.join([Subscriptions.unpack(bytes(row.block)) for row in blocks]),
        Messages.join([Messages.unpack(bytes(row.block)) for row in recent]),
    )
    return sample, len(recent) / max(1, window.count())


def _sampler(share: float) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def sampled(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for block in batch["block"]:
                rows = Subscriptions.unpack(block.as_py())
                chosen = np.random.default_rng(len(rows)).random(len(rows)) < share
                yield pa.record_batch([[rows.part(np.flatnonzero(chosen)).lean().pack()]], ["block"])

    return sampled


def _divider(
    distribution: Distribution,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def divide(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for block in batch["block"]:
                for partition, subscriptions in distribution.place(Subscriptions.unpack(block.as_py())):
                    own = subscriptions.part(np.flatnonzero(subscriptions.is_end == 0))
                    if len(own):
                        columns = [[partition], [len(own)], [own.lean().pack()]]
                        yield pa.record_batch(columns, schema=_DIVIDED)

    return divide
