"""`nearcast stream demo`."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from cli.failures import refused, reported
from cli.paths import LocalPath
from cli.progress import bars
from cli.stream.options import MASTER
from cli.stream.run import BatchLines
from streaming.mechanism import Mechanism

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from simulator.simulation import Simulation
    from streaming.result.audit import Audit

_SLICE_S = 5
_WHOLE = ("hashing", "location")
_FILL_S = 8.0
"""Seconds before the second file: the first one has the initial contents."""


@click.command()
@click.option(
    "--devices",
    type=int,
    default=1000,
    show_default=True,
    help="Devices with ten subscriptions each; only stationary subscriptions are used.",
)
@click.option("--seconds", type=int, default=300, show_default=True, help="Simulated time.")
@click.option(
    "--arrivals-per-s", type=float, default=50.0, show_default=True, help="Messages per second."
)
@click.option(
    "--speed",
    type=float,
    default=5.0,
    show_default=True,
    help="Simulated seconds per second of real time.",
)
@click.option("--partitions", type=int, default=2, show_default=True, help="Partitions of the job.")
@click.option(
    "--mechanism",
    type=click.Choice(get_args(Mechanism)),
    default="location",
    show_default=True,
    help="Mechanism that divides subscriptions among partitions.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the simulated city.")
@click.option(
    "--out",
    type=LocalPath(file_okay=False),
    default=Path("runs/stream-demo"),
    show_default=True,
    help="Folder for the simulation, the feeds and the results; existing files are replaced.",
)
def demo(  # noqa: PLR0913 - an option each
    devices: int,
    seconds: int,
    arrivals_per_s: float,
    speed: float,
    partitions: int,
    mechanism: Mechanism,
    seed: int,
    out: Path,
) -> None:
    """Run the distributed system: messages of a city arrive, results change and stay exact.

    Simulates a generated city, and feeds its messages file by file to the job of `nearcast stream run`,
    which keeps the results of its top-k and boolean subscriptions exact. Compares the results with the
    definition. Exits with status 1 if a single result differs.
    """
    from feeds.spark import spark_session  # noqa: PLC0415
    from simulator.parameters import ParameterError, SimulationParameters  # noqa: PLC0415
    from simulator.simulation import simulate  # noqa: PLC0415

    began_s = time.monotonic()
    with refused(ParameterError):
        parameters = SimulationParameters(
            devices=devices,
            seconds=seconds,
            seed=seed,
            arrivals_per_s=arrivals_per_s,
            subscriptions_per_device=10,
            # Only top-k subscriptions may have replicas.
            boolean_share=0.4 if mechanism in _WHOLE else 0.0,
            stationary_share=1.0,
            window_share=0.0,
        )
    shutil.rmtree(out, ignore_errors=True)
    with reported(OSError), spark_session(MASTER) as spark:
        with bars() as progress:
            simulation = simulate(parameters, out, progress, spark=spark, feed_slice_s=_SLICE_S)
        audited = _run(simulation, out, spark, _SLICE_S / speed, partitions, mechanism)
    for one in audited.mismatches:
        click.echo(one)
    click.echo(f"{out}: {time.monotonic() - began_s:.0f} s in all")
    click.echo(f"audit: {audited.lists} lists, {len(audited.mismatches)} mismatches")
    raise click.exceptions.Exit(1 if audited.mismatches else 0)


def _run(
    simulation: Simulation,
    out: Path,
    spark: SparkSession,
    pause_s: float,
    partitions: int,
    mechanism: Mechanism,
) -> Audit:
    """Run the job while files arrive; compare its results when it has read all files."""
    from feeds.storage import Stored  # noqa: PLC0415
    from streaming.job import start, stopped  # noqa: PLC0415
    from streaming.parameters import StreamParameters  # noqa: PLC0415
    from streaming.planning import read_plan  # noqa: PLC0415
    from streaming.result.audit import audit  # noqa: PLC0415
    from streaming.tasks.processor import release  # noqa: PLC0415
    from streaming.window_size import WindowSize  # noqa: PLC0415

    idf = out / "idf.json"
    idf.write_text(simulation.idf_table().as_json())
    with _feeding(out / "feeds", out / "live", pause_s) as feeding:
        parameters = StreamParameters(
            messages=out / "live" / "messages",
            subscriptions=out / "live" / "subscriptions",
            out=out / "results",
            checkpoint=out / "checkpoint",
            area=simulation.world.area,
            window=WindowSize(duration_ms=120_000),
            mechanism=mechanism,
            partitions=partitions,
            idf=idf,
        )
        with stopped(start(parameters, spark, BatchLines())) as query:
            feeding.join()
            query.processAllAvailable()
    found = audit(parameters.checkpoint, parameters.out, spark, 2_000)
    release(spark, read_plan(Stored(spark, parameters.checkpoint)).run, parameters.memory)
    return found


@contextmanager
def _feeding(feeds: Path, live: Path, pause_s: float) -> Iterator[threading.Thread]:
    """Link the files of feeds into folders one after the other, in a thread."""
    for name in ("subscriptions", "messages"):
        (live / name).mkdir(parents=True)
    stop = threading.Event()

    def feed() -> None:
        os.link(feeds / "subscriptions" / "000000.parquet", live / "subscriptions" / "000000.parquet")
        for number, path in enumerate(sorted((feeds / "messages").glob("*.parquet"))):
            os.link(path, live / "messages" / path.name)
            if stop.wait(pause_s if number else _FILL_S):
                return

    thread = threading.Thread(target=feed, name="feed")
    thread.start()
    try:
        yield thread
    finally:
        stop.set()
        thread.join()
