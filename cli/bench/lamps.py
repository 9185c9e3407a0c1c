"""`nearcast bench lamps`."""

from __future__ import annotations

from typing import Any

import click

from bench.reports import Progress, Row
from cli.bench import options as shared


@shared.benchmark("--data places --subscriptions 1000000 --objects 1000000")
@click.option(
    "--experiment",
    "experiments",
    multiple=True,
    default=("table-3",),
    show_default=True,
    help="table-3, figure-9 to figure-18, anchored; repeat for more.",
)
@shared.variant_option
@click.option("--subscriptions", type=shared.COUNT, default=100_000, show_default=True)
@shared.objects_option
@click.option("--ticks", type=click.IntRange(2, 600), default=10, show_default=True, help="Seconds run.")
@click.option(
    "--warm-up-s",
    type=click.IntRange(0, 3600),
    default=180,
    show_default=True,
    help="Seconds that devices move before the first tick, so that regions are of all ages.",
)
@click.option(
    "--updates",
    type=click.IntRange(1, 100_000),
    default=100,
    show_default=True,
    help="Objects generated and expired a tick.",
)
@click.option(
    "--expired-share",
    type=click.FloatRange(0, 1),
    default=0.1,
    show_default=True,
    help="Expirations among them.",
)
@shared.k_max_option
@shared.data_option
@shared.trajectories_option
@shared.similarity_option
@shared.seed_option
@shared.budget_option
@shared.output_options
def lamps(progress: Progress, **options: Any) -> list[Row]:  # noqa: ANN401
    """Update time of a tick, as in the Lamps paper, section 7: generated, expired, moved."""
    from bench.lamps.experiments import run  # noqa: PLC0415

    return run(progress, **options)
