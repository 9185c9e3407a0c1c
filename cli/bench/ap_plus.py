"""`nearcast bench ap-plus`."""

from __future__ import annotations

from typing import Any

import click

from bench.reports import Progress, Row
from cli.bench import options as shared

_SHARE = click.FloatRange(0.0, 1.0)


@shared.benchmark("--experiment figure-21 --roads oldenburg --roads bay-area --data texts")
@click.option(
    "--experiment",
    "experiments",
    multiple=True,
    default=("figure-21",),
    show_default=True,
    help="figure-19 to figure-27; repeat for more.",
)
@shared.variant_option
@click.option("--subscriptions", type=shared.COUNT, default=100_000, show_default=True)
@click.option("--objects", type=shared.COUNT, default=100_000, show_default=True, help="Alive at a time.")
@click.option(
    "--timestamps",
    type=click.IntRange(1, 1_000),
    default=10,
    show_default=True,
    help="How long is measured, in steps of 30 s.",
)
@click.option(
    "--learning",
    type=click.IntRange(0, 1_000),
    default=2,
    show_default=True,
    help="Steps before, in which indexes learn how ranges move; trees are built anew then.",
)
@click.option(
    "--mobility",
    type=_SHARE,
    default=0.2,
    show_default=True,
    help="Share of the ranges that move a step.",
)
@click.option(
    "--area",
    type=click.FloatRange(1e-12, 1.0),
    default=0.0001,
    show_default=True,
    help="Of a range, as a share of the space.",
)
@click.option(
    "--data",
    multiple=True,
    type=click.Choice(["texts", "places", "geonames", "osm", "synthetic", "messages"]),
    default=("messages",),
    show_default=True,
    help="Whose keywords objects have: texts or names of businesses of the United States, towns of the "
    "Americas, Malta's points of interest, or drawn ones; repeat for more.",
)
@click.option(
    "--roads",
    multiple=True,
    type=click.Choice(["city", "oldenburg", "bay-area"]),
    default=("city",),
    show_default=True,
    help="Where ranges drive: a generated city, or road networks of real ones; repeat for more.",
)
@shared.seed_option
@shared.budget_option
@shared.output_options
def ap_plus(progress: Progress, **options: Any) -> list[Row]:  # noqa: ANN401
    """Tell what ranges that move begin and cease to match: the AP-Tree paper, section 5.2.

    Variants: ap-plus-tree; ap-plus-k and ap-plus-s, which keep objects apart; iq-plus-tree, rq-plus-tree,
    ss-index, kk-index, as the paper describes them; pairs, the clause index and the object index that a
    server uses. Figures 26 and 27 have devices: ap-plus-periodic-30, ap-plus-safe, and
    anchored-cost-ahead, the ranges of a server; Elaps is left out.
    """
    from bench.ap_plus.run import run  # noqa: PLC0415

    return run(progress, **options)
