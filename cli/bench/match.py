"""`nearcast bench match`."""

from __future__ import annotations

from typing import Any

import click

from bench.reports import Progress, Row
from cli.bench import options as shared


@shared.benchmark("--data places --subscriptions 1000000 --objects 1000000")
@click.option(
    "--subscriptions",
    type=shared.COUNT,
    multiple=True,
    default=(100_000,),
    show_default=True,
    help="How many; repeat for a series.",
)
@click.option(
    "--objects",
    type=shared.COUNT,
    default=100_000,
    show_default=True,
    help="Live objects that the reaches are computed from.",
)
@click.option(
    "--constant-results",
    is_flag=True,
    help="Objects grow with subscriptions, up to --objects, so that an object has as many results.",
)
@shared.k_max_option
@click.option(
    "--buffer-extra",
    type=click.IntRange(0, 1_000),
    default=8,
    show_default=True,
    help="b: the reach is the (k+b+1)-th length.",
)
@shared.data_option
@shared.similarity_option
@shared.variant_option
@shared.seed_option
@shared.budget_option
@shared.output_options
def match(progress: Progress, **options: Any) -> list[Row]:  # noqa: ANN401
    """Tell who is affected by a new object: time per object, for anchored subscriptions.

    Variants: sq-tree, sq-plus-tree, naive, dict (keyword to subscriptions, verified one by one in plain
    Python), strtree (shapely's STRtree of the largest discs).
    """
    from bench.match.run import run  # noqa: PLC0415

    return run(progress, **options)
