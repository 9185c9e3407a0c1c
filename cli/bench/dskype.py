"""`nearcast bench dskype`."""

from __future__ import annotations

from typing import Any

import click

from bench.reports import Progress, Row
from cli.bench import options as shared


@shared.benchmark("--experiment figure-21 --subscriptions 1000000 --window 1000000 --data texts")
@click.option(
    "--experiment",
    "experiments",
    multiple=True,
    default=("figure-21",),
    show_default=True,
    help="figure-21 (mechanisms; Table 5 too), figure-22 (partitions), figure-23 (k), figure-24 "
    "(subscriptions), figure-25 (hybrids; Figure 26 too); repeat for more.",
)
@shared.variant_option
@click.option("--subscriptions", type=shared.COUNT, default=100_000, show_default=True)
@click.option(
    "--window", type=shared.COUNT, default=100_000, show_default=True, help="Messages that count."
)
@click.option(
    "--messages",
    type=shared.COUNT,
    default=200_000,
    show_default=True,
    help="How many arrive at most; a job that is slower ends when its time is over.",
)
@click.option("--k", type=click.IntRange(1, 100), default=20, show_default=True)
@click.option(
    "--partitions", type=click.IntRange(1, 1024), default=2, show_default=True, help="Of the job."
)
@click.option(
    "--batch",
    type=click.IntRange(1, 1_000_000),
    default=10_000,
    show_default=True,
    help="Messages of a batch.",
)
@click.option(
    "--paced-s",
    type=click.FloatRange(0.0, 3600.0),
    default=0.0,
    show_default=True,
    help="So long messages come at half the rate that was reached: how late results are then.",
)
@click.option(
    "--restarts",
    is_flag=True,
    help="Measure how long it takes to begin again, with indexes in memory and without.",
)
@click.option(
    "--data",
    multiple=True,
    type=click.Choice(["texts", "places", "geonames", "osm", "synthetic", "messages"]),
    default=("messages",),
    show_default=True,
    help="As for bench skype; repeat for more.",
)
@shared.seed_option
@shared.budget_option
@shared.output_options
def dskype(progress: Progress, **options: Any) -> list[Row]:  # noqa: ANN401
    """Keep results right as nearcast stream run does: the Skype paper, section 8.2.

    The window and all buffers are filled first. Variants: hashing, location, keyword,
    prefix, and process, which is one engine without Spark.
    """
    from bench.dskype.run import run  # noqa: PLC0415

    return run(progress, **options)
