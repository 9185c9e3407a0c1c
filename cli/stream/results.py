"""`nearcast stream lists`, `compact`, `audit`, `rebalance` and `release`: a job's results."""

from __future__ import annotations

from pathlib import Path

import click

from cli.failures import reported
from cli.spark_options import SparkChoice
from cli.stream.options import CHECKPOINT_OPTION, MEMORY_OPTION, OUT_OPTION, SPARK_OPTIONS, session


@click.command(epilog="Example: nearcast stream lists --out result --to lists.parquet")
@OUT_OPTION
@click.option(
    "--batch",
    type=int,
    help="Number of the batch after which results are listed.  [default: the last one]",
)
@click.option(
    "--to",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder for the table, Parquet; existing files are replaced.",
)
@SPARK_OPTIONS
def lists(out: Path, batch: int | None, to: Path, spark: SparkChoice) -> None:
    """Write the current results of a job: subscription, object, score."""
    from streaming.result.lists import lists as table  # noqa: PLC0415
    from streaming.result.manifest import ResultError  # noqa: PLC0415

    with reported(ResultError, OSError), session(spark) as started:
        table(out, started, batch).write.mode("overwrite").parquet(str(to))
        count = started.read.parquet(str(to)).count()
    click.echo(f"{to}: {count:,} rows")


@click.command(epilog="Example: nearcast stream compact --out result --remove-changes")
@OUT_OPTION
@click.option(
    "--remove-changes",
    is_flag=True,
    help="Also remove earlier changes, refused rows and manifests; every reader must be past them.",
)
@SPARK_OPTIONS
def compact(out: Path, spark: SparkChoice, *, remove_changes: bool) -> None:
    """Write the current results beside the changes, so that earlier changes need not be read again.

    The job may be running. `nearcast stream lists` starts from these results.
    """
    from streaming.result.lists import compact as compacted  # noqa: PLC0415
    from streaming.result.manifest import ResultError  # noqa: PLC0415

    with reported(ResultError, OSError), session(spark) as started:
        batch, count, removed = compacted(out, started, removes=remove_changes)
    click.echo(f"batch {batch}: {count:,} rows; changes of {removed:,} batches removed")


@click.command(epilog="Example: nearcast stream audit --out result --checkpoint state")
@OUT_OPTION
@CHECKPOINT_OPTION
@click.option(
    "--sample", type=int, default=200, show_default=True, help="Maximum number of results to compare."
)
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the choice of results.")
@SPARK_OPTIONS
def audit(out: Path, checkpoint: Path, sample: int, seed: int, spark: SparkChoice) -> None:
    """Compare the current results of a job with the definition, for which the feeds must exist."""
    from streaming.plan import PlanError  # noqa: PLC0415
    from streaming.result.audit import audit as audited  # noqa: PLC0415
    from streaming.result.manifest import ResultError  # noqa: PLC0415

    with reported(ResultError, PlanError, OSError), session(spark) as started:
        found = audited(checkpoint, out, started, sample, seed)
    for one in found.mismatches:
        click.echo(one)
    click.echo(f"audit: {found.lists} lists, {len(found.mismatches)} mismatches")
    if found.mismatches:
        raise click.exceptions.Exit(1)


@click.command(epilog="Example: nearcast stream rebalance --checkpoint state")
@CHECKPOINT_OPTION
@SPARK_OPTIONS
def rebalance(checkpoint: Path, spark: SparkChoice) -> None:
    """Request a running job to rebalance its current subscriptions.

    The job does it within seconds, or after its next batch if it has completed none since it was started
    or rebalanced. For another number of partitions or another mechanism, stop the job and start it with
    --rebalance.
    """
    from feeds.storage import Stored  # noqa: PLC0415
    from streaming.plan import PlanError  # noqa: PLC0415
    from streaming.service import ask_to_rebalance  # noqa: PLC0415

    with reported(PlanError, OSError), session(spark) as started:
        ask_to_rebalance(Stored(started, checkpoint))
    click.echo("requested: the job rebalances within seconds, or after its first batch")


@click.command(epilog="Example: nearcast stream release --checkpoint state")
@CHECKPOINT_OPTION
@MEMORY_OPTION
@SPARK_OPTIONS
def release(checkpoint: Path, memory: Path, spark: SparkChoice) -> None:
    """Remove the indexes of an ended job from memory. If it is started again, it rebuilds them."""
    from feeds.storage import Stored  # noqa: PLC0415
    from streaming.plan import PlanError  # noqa: PLC0415
    from streaming.planning import read_plan  # noqa: PLC0415
    from streaming.tasks.processor import release as removed  # noqa: PLC0415

    with reported(PlanError, OSError), session(spark) as started:
        removed(started, read_plan(Stored(started, checkpoint)).run, memory)
