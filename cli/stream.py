"""`nearcast stream`, and what looks at its results."""

from __future__ import annotations

import json
import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from cli.failures import reported
from cli.progress import COMPILING, bars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streaming.parameters import StreamParameters
    from streaming.result.sink import Batch

_FOLDER = click.Path(file_okay=False, path_type=Path)
MECHANISMS = ("hashing", "location", "keyword", "prefix", "spatial-first", "keyword-first")
"""Those of `streaming.distribution`, which is imported when it is needed."""
MASTER = "local[*,4]"
"""All cores, and what fails is tried again: with local[*] it would not be."""
_DURATION = re.compile(r"(\d+)(ms|s|m|h|d)")
_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class _Window(click.ParamType[Any]):
    """A number of messages, or a time with its unit."""

    name = "COUNT|TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        """Read it."""
        from streaming.partition.window import WindowSize  # noqa: PLC0415

        if isinstance(value, WindowSize):
            return value
        text = str(value).replace("_", "").strip()
        if text.isdecimal() and int(text):
            return WindowSize(count=int(text))
        if (found := _DURATION.fullmatch(text)) and int(found[1]):
            return WindowSize(duration_ms=int(found[1]) * _UNITS_MS[found[2]])
        return self.fail(
            f"{value!r} must be a number of messages, or a time like 90s, 10m, 24h", param, ctx
        )


class _Feed(click.ParamType[Any]):
    """A folder, or an address in Redis."""

    name = "FOLDER|redis://..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        """Read it."""
        from feeds.redis.address import AddressError, RedisAddress, is_redis  # noqa: PLC0415

        if not is_redis(str(value)):
            return _FOLDER.convert(value, param, ctx)
        try:
            return RedisAddress.parse(str(value))
        except AddressError as error:
            return self.fail(str(error), param, ctx)


class _Area(click.ParamType[Any]):
    """A rectangle in degrees."""

    name = "LON,LAT,LON,LAT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        """Read it."""
        from safe_region.frame import Area, Frame  # noqa: PLC0415

        if isinstance(value, Area):
            return value
        try:
            area = Area(*map(float, str(value).split(",")))
            Frame.of(area)
        except (TypeError, ValueError) as error:
            self.fail(f"{value!r} must be west,south,east,north in degrees: {error}", param, ctx)
        return area


_OUT = click.option("--out", type=_FOLDER, required=True, help="Folder of the job's results.")
_CHECKPOINT = click.option(
    "--checkpoint",
    type=_FOLDER,
    required=True,
    help="Folder of what the job needs to go on where it was.",
)
_MASTER_OPTION = click.option("--master", default=MASTER, show_default=True, help="Spark's master URL.")


@click.command(
    epilog="Example: nearcast stream --messages feed/messages --subscriptions feed/subscriptions "
    "--out result --checkpoint state --area 12.3,55.5,12.8,55.9 --window 10m"
)
@click.option(
    "--messages",
    type=_Feed(),
    required=True,
    help="Folder to which files of messages come, or redis://host:port/database/feed?streams=1.",
)
@click.option("--subscriptions", type=_Feed(), required=True, help="The same with subscriptions.")
@_OUT
@_CHECKPOINT
@click.option("--area", type=_Area(), required=True, help="Service area: west, south, east, north.")
@click.option(
    "--window",
    type=_Window(),
    required=True,
    help="Which messages count: the last so many (100000), or those of so much time (90s, 10m, 24h).",
)
@click.option(
    "--mechanism",
    type=click.Choice(MECHANISMS),
    default="hashing",
    show_default=True,
    help="How subscriptions are divided among partitions.",
)
@click.option(
    "--partitions",
    type=int,
    default=4,
    show_default=True,
    help="Into how many parts; at least as many as there are cores.",
)
@click.option(
    "--first-level",
    type=int,
    default=0,
    show_default=True,
    help="Of spatial-first and keyword-first: parts of the first division, a divisor of --partitions; 0 "
    "lets both divisions have about as many.",
)
@click.option(
    "--subscription-index",
    default="sq-plus-tree",
    show_default=True,
    help="Who is affected by a message: sq-plus-tree, igpt, ipt, ciq, naive.",
)
@click.option(
    "--clause-index",
    default="inverted-grid",
    show_default=True,
    help="Which boolean subscriptions a message may concern: inverted-grid, ap-tree, and others.",
)
@click.option(
    "--idf",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Weights of keywords for the similarity tfidf (nearcast idf build); without, each weighs 1.",
)
@click.option(
    "--format",
    type=click.Choice(["parquet", "json"]),
    default="parquet",
    show_default=True,
    help="Of files.",
)
@click.option(
    "--files-per-batch",
    type=int,
    default=1000,
    show_default=True,
    help="How many new files of each feed make a batch, at most; in Redis entries.",
)
@click.option(
    "--updates",
    type=_Feed(),
    help="Tell changes in Redis besides: redis://host:port/database/feed.",
)
@click.option(
    "--rebalance",
    is_flag=True,
    help="Go on with another number of partitions, mechanism or index than before: divide anew first.",
)
@click.option("--once", is_flag=True, help="End when all that is there has been read.")
@click.option(
    "--memory",
    type=_FOLDER,
    default=Path("/dev/shm"),  # noqa: S108 - a folder for each job, of its own
    show_default=True,
    help="Folder on a file system in memory, where indexes lie between batches.",
)
@_MASTER_OPTION
@click.option("--driver-memory", default="2g", show_default=True, help="Memory of Spark's own process.")
def stream(master: str, driver_memory: str, *, rebalance: bool, **given: Any) -> None:  # noqa: ANN401
    """Keep results of standing subscriptions exact over a stream of messages, on Spark.

    Reads files of two feeds, writes how results change, a folder a batch. Stopped or killed and started
    again with the same folders, it goes on where it was: nothing is lost, nothing is there twice.
    """
    from safe_region.idf import IdfError  # noqa: PLC0415
    from streaming.job import start  # noqa: PLC0415
    from streaming.parameters import ParameterError, StreamParameters  # noqa: PLC0415
    from streaming.plan import PlanError  # noqa: PLC0415

    with reported(ParameterError, PlanError, IdfError, OSError):
        parameters = StreamParameters(**given)
        with _session(master, {"spark.driver.memory": driver_memory}) as spark:
            lines = BatchLines()
            if rebalance:
                _rebalance(parameters, spark, lines)
            with bars() as progress:
                query = start(parameters, spark, lines, lambda *count: progress(COMPILING, *count))
            stop = threading.Event()
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: stop.set())
            while query.isActive and not stop.wait(0.2):
                pass
            query.stop()
            error = query.exception()
    if error is not None:
        raise click.ClickException(_cause(str(error)))


def _rebalance(parameters: StreamParameters, spark: SparkSession, lines: BatchLines) -> None:
    """Divide the job anew, and say so."""
    from streaming.rebalance import rebalance  # noqa: PLC0415

    with Console(stderr=True).status("dividing the job anew"):
        done = rebalance(parameters, spark, lines)
    if done is None:
        click.echo("nothing to rebalance: the job has not begun", err=True)
        return
    click.echo(
        f"rebalanced: {done.subscriptions:,} subscriptions, {done.before} partitions -> {done.after}",
        err=True,
    )


class BatchLines:
    """Says what became of each batch."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._last_s = time.monotonic()

    def __call__(self, batch: Batch) -> None:
        """Say it."""
        now_s = time.monotonic()
        spent_s, self._last_s = now_s - self._last_s, now_s
        published = batch.counts.get("published", 0)
        parts = [f"{published:,} messages", f"{published / spent_s:,.0f}/s"]
        parts += [f"{batch.counts.get(name, 0):,} {name}" for name in ("entered", "left")]
        parts += [
            f"{count:,} {name}"
            for name in ("begun", "ended", "retracted", "duplicates", "expired", "unknown")
            if (count := batch.counts.get(name, 0))
        ]
        parts += [f"{batch.refused:,} refused"] if batch.refused else []
        self._console.print(f"batch {batch.number}: {', '.join(parts)}", highlight=False, soft_wrap=True)


@click.command(epilog="Example: nearcast stream-lists --out result --to lists.parquet")
@_OUT
@click.option("--batch", type=int, help="As it was behind this batch; the last one if not given.")
@click.option(
    "--to",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder for the table, Parquet; what is there is replaced.",
)
@_MASTER_OPTION
def stream_lists(out: Path, batch: int | None, to: Path, master: str) -> None:
    """Write the present results of a job: subscription, object, score."""
    from streaming.result.lists import ResultError, lists  # noqa: PLC0415

    with reported(ResultError, OSError), _session(master) as spark:
        lists(out, spark, batch).write.mode("overwrite").parquet(str(to))
        count = spark.read.parquet(str(to)).count()
    click.echo(f"{to}: {count:,} rows")


@click.command(epilog="Example: nearcast stream-audit --out result --checkpoint state")
@_OUT
@_CHECKPOINT
@click.option("--sample", type=int, default=200, show_default=True, help="How many results, at most.")
@click.option("--seed", type=int, default=1, show_default=True, help="Which ones.")
@_MASTER_OPTION
def stream_audit(out: Path, checkpoint: Path, sample: int, seed: int, master: str) -> None:
    """Compare present results of a job with the definition, for which the feeds must be there."""
    from streaming.plan import PlanError  # noqa: PLC0415
    from streaming.result.audit import audit  # noqa: PLC0415
    from streaming.result.lists import ResultError  # noqa: PLC0415

    with reported(ResultError, PlanError, OSError), _session(master) as spark:
        found = audit(checkpoint, out, spark, sample, seed)
    for one in found.mismatches:
        click.echo(one)
    click.echo(f"audit: {found.lists} lists, {len(found.mismatches)} mismatches")
    if found.mismatches:
        raise click.exceptions.Exit(1)


@click.command(epilog="Example: nearcast stream-release --checkpoint state")
@_CHECKPOINT
@click.option(
    "--memory",
    type=_FOLDER,
    default=Path("/dev/shm"),  # noqa: S108 - the same
    show_default=True,
    help="Folder on a file system in memory, as the job was told.",
)
def stream_release(checkpoint: Path, memory: Path) -> None:
    """Remove from memory the indexes of a job that has ended; if it goes on, it builds them anew."""
    from streaming.plan import Plan, PlanError  # noqa: PLC0415
    from streaming.tasks.processor import release  # noqa: PLC0415

    with reported(PlanError, OSError):
        release(Plan.read(checkpoint / "plan.json"), memory)


@contextmanager
def _session(master: str, more: dict[str, str] | None = None) -> Iterator[SparkSession]:
    from feeds.java import JavaNotFoundError  # noqa: PLC0415
    from feeds.spark import spark_session  # noqa: PLC0415

    with reported(JavaNotFoundError), spark_session(master, more) as spark:
        yield spark


def _cause(text: str) -> str:
    """Return the line of a traceback of Spark's that says what is wrong."""
    lines = [line.strip() for line in text.splitlines()]
    errors = [line for line in lines if re.match(r"(\w+\.)*\w*(Error|Exception): ", line)]
    return errors[-1] if errors else json.dumps(lines[:1])
