"""`nearcast stream run`."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from cli.failures import refused, reported
from cli.options import ModelCommand, given, stream_parameters
from cli.paths import is_uri
from cli.progress import COMPILING, bars
from cli.simulated_area import area_at, area_text
from cli.spark_options import SparkChoice
from cli.stream.options import SPARK_OPTIONS, session

_ANYWHERE = "0,0,1,1"
_LOOKED_S = 2.0
_MISSED_S = 15.0
"""Seconds without an executor before a message, and between two messages."""

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from safe_region.jit.ahead import Report
    from streaming.parameters import StreamParameters
    from streaming.rebalance import Rebalanced
    from streaming.result.sink import Batch


def _bare(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    """Return the address of a port as in the settings of a server."""
    from identity.settings import bare_host  # noqa: PLC0415

    try:
        return bare_host(value)
    except ValueError as error:
        raise click.BadParameter(f"{value!r}, {error}") from None


@click.command(
    cls=ModelCommand,
    model=stream_parameters,
    epilog="Example: nearcast stream run --messages feed/messages --subscriptions feed/subscriptions "
    "--out result --checkpoint state --area 12.3,55.5,12.8,55.9 --window 10m",
)
@click.option(
    "--rebalance",
    is_flag=True,
    help="Rebalance first, then resume with another number of partitions, mechanism or index.",
)
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65_535),
    help="Port of the metrics for Prometheus, at /metrics; 0 chooses a free one.",
)
@click.option(
    "--metrics-host",
    default="127.0.0.1",
    show_default=True,
    callback=_bare,
    help="Address of that port.",
)
@SPARK_OPTIONS
def run(
    spark: SparkChoice,
    *,
    rebalance: bool,
    metrics_port: int | None,
    metrics_host: str,
    **options: Any,  # noqa: ANN401
) -> None:
    """Keep results of stationary subscriptions exact over a stream of messages, on Spark.

    Reads files of two feeds and writes the changes of results, one folder for each batch. If the job is
    stopped or killed, start it again with the same folders: it continues without loss or duplicates.
    """
    from feeds.causes import cause_of  # noqa: PLC0415
    from feeds.cluster import ClusterError  # noqa: PLC0415
    from nearcast.address import joined_address  # noqa: PLC0415
    from safe_region.scoring.idf import IdfError  # noqa: PLC0415
    from streaming.claim import TakenOverError  # noqa: PLC0415
    from streaming.metrics import JobMetrics  # noqa: PLC0415
    from streaming.parameters import ParameterError, StreamParameters  # noqa: PLC0415
    from streaming.plan import PlanError  # noqa: PLC0415
    from streaming.service import Listener, serve  # noqa: PLC0415

    chosen, where = given(options), str(options["area"])
    # Spark reads the area of a simulation at a URI, and starts when the other parameters are right.
    chosen["area"] = _ANYWHERE if is_uri(where) else area_text(where)
    with refused(ParameterError):
        parameters = StreamParameters(**chosen)
    stop = threading.Event()
    expected = ParameterError, PlanError, IdfError, ClusterError, TakenOverError, OSError
    with reported(*expected), session(spark) as started:
        if is_uri(where):
            parameters = parameters.changed(area=area_at(where, started))
        lines = BatchLines()
        if rebalance:
            _rebalance(parameters, started, lines)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        with ExitStack() as stack:
            watch = ExecutorWatch(started)
            metrics = JobMetrics()
            if metrics_port is not None:
                port = stack.enter_context(metrics.served(metrics_port, metrics_host))
                click.echo(f"metrics on http://{joined_address(metrics_host, port)}/metrics", err=True)

            def noted(batch: Batch) -> None:
                metrics.note(batch)
                lines(batch)

            compiling = _compiling(stack)
            listener = Listener(
                noted, compiling, lines.rebalanced, watch.look, _print_line, metrics.follow
            )
            error = serve(parameters, started, stop.is_set, listener)
    if error is not None:
        raise click.ClickException(cause_of(error))


def _print_line(text: str) -> None:
    click.echo(text, err=True)


def _compiling(stack: ExitStack) -> Report:
    """Return a report function that shows a bar while kernels are missing."""
    shown: list[Report] = []

    def report(done: int, total: int) -> None:
        if not shown:
            shown.append(partial(stack.enter_context(bars()), COMPILING))
        shown[0](done, total)
        if done >= total:
            stack.close()
            shown.clear()

    return report


def _rebalance(parameters: StreamParameters, spark: SparkSession, lines: BatchLines) -> None:
    """Rebalance the job, and print it."""
    from streaming.rebalance import rebalance  # noqa: PLC0415

    with Console(stderr=True).status("rebalancing the job"):
        done = rebalance(parameters, spark, lines)
    if done is None:
        click.echo(
            "nothing to rebalance: the job has read nothing yet, or since it was rebalanced", err=True
        )
        return
    lines.rebalanced(done)


class ExecutorWatch:
    """Prints a message when a cluster has no executor and the job waits for one."""

    def __init__(self, spark: SparkSession) -> None:
        from feeds.cluster import executor_count, is_local  # noqa: PLC0415

        master = str(spark.sparkContext.master)
        self._master = master
        self._count: Callable[[], int] = partial(executor_count, spark)
        if is_local(master):
            self._count = lambda: 1
        self._next_s = self._last_s = time.monotonic()

    def look(self) -> None:
        """Check the number of executors, if the next check is due."""
        now_s = time.monotonic()
        if now_s < self._next_s:
            return
        self._next_s = now_s + _LOOKED_S
        if self._count() > 0:
            self._last_s = now_s
        elif now_s - self._last_s > _MISSED_S:
            text = f"no executor for {now_s - self._last_s:.0f} s: waiting for {self._master}"
            click.echo(text, err=True)
            self._next_s = now_s + _MISSED_S


class BatchLines:
    """Prints the outcome of each batch."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._last_s = time.monotonic()

    def rebalanced(self, done: Rebalanced, seconds: float | None = None) -> None:
        """Print that the job was rebalanced."""
        took = "" if seconds is None else f", a pause of {seconds:.1f} s"
        text = (
            f"rebalanced: {done.subscriptions:,} subscriptions, {done.before} partitions -> {done.after}"
        )
        self._console.print(text + took, highlight=False, soft_wrap=True)

    def __call__(self, batch: Batch) -> None:
        """Print a line about a batch."""
        now_s = time.monotonic()
        spent_s, self._last_s = now_s - self._last_s, now_s
        published = batch.counts.get("published", 0)
        parts = [f"{published:,} messages", f"{published / spent_s:,.0f}/s"]
        parts += [f"{batch.counts.get(name, 0):,} {name}" for name in ("entered", "left")]
        parts += [
            f"{count:,} {name}"
            for name in ("started", "ended", "retracted", "duplicates", "expired", "unknown")
            if (count := batch.counts.get(name, 0))
        ]
        parts += [f"{batch.refused:,} refused"] if batch.refused else []
        self._console.print(f"batch {batch.number}: {', '.join(parts)}", highlight=False, soft_wrap=True)
