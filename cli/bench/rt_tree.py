"""`nearcast bench rt-tree`."""

from __future__ import annotations

from typing import Any

import click

from bench.reports import Progress, Row
from cli.bench import options as shared


@shared.benchmark("--experiment figure-7 --experiment line-up --data texts --subscriptions 1000000")
@click.option(
    "--experiment",
    "experiments",
    multiple=True,
    default=("figure-7",),
    show_default=True,
    help="figure-6, -7, -8 (with other data Figure 9), -10, line-up; repeat for more.",
)
@shared.variant_option
@shared.clause_options
@click.option(
    "--data",
    multiple=True,
    type=click.Choice(["texts", "places", "geonames", "osm", "synthetic", "messages", "uniform"]),
    default=("messages",),
    show_default=True,
    help="Texts or names of businesses of the United States, towns of the Americas, Malta's points of "
    "interest, a drawn city, or one whose objects have 5 to 13 keywords, by Zipf's law or all alike; "
    "repeat for more.",
)
@shared.seed_option
@shared.budget_option
@shared.output_options
def rt_tree(progress: Progress, **options: Any) -> list[Row]:  # noqa: ANN401
    """Tell which boolean subscriptions a new object concerns: the R^t-tree paper, section 6.

    Variants: rt-tree, rt-plus-tree and rt-plus-plus-tree (with -random, -df, -idf, -local: orders of
    tokens), ir-tree-subscriptions, spatial-first, keyword-first, and all of `bench ap-tree`.
    """
    from bench.rt_tree.run import run  # noqa: PLC0415

    return run(progress, **options)
