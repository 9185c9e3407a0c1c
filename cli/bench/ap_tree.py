"""`nearcast bench ap-tree`."""

from __future__ import annotations

from typing import Any

import click

from bench.reports import Progress, Row
from cli.bench import options as shared


@shared.benchmark("--experiment figure-11 --experiment figure-12 --subscriptions 1000000")
@click.option(
    "--experiment",
    "experiments",
    multiple=True,
    default=("peers",),
    show_default=True,
    help="figure-10a, figure-10b, figure-11 to figure-18, peers, rebuild; repeat for more.",
)
@shared.variant_option
@shared.clause_options
@click.option(
    "--data",
    multiple=True,
    type=click.Choice(["texts", "places", "geonames", "osm", "synthetic", "messages"]),
    default=("messages",),
    show_default=True,
    help="Texts or names of businesses of the United States, towns of the Americas, Malta's points of "
    "interest, a drawn city, or one whose objects have 5 to 13 keywords; repeat for more.",
)
@shared.seed_option
@shared.budget_option
@shared.output_options
def ap_tree(progress: Progress, **options: Any) -> list[Row]:  # noqa: ANN401
    """Tell which boolean subscriptions a new object concerns: the AP-Tree paper, section 5.1, and peers.

    Variants: ap-tree (HR), ap-tree-dp, -kpriority, -spriority, -trie-qd, -nr, -rarest-first,
    iq-tree-subscriptions, rq-tree, inverted-grid, naive, and what one would take instead: dict and
    numba-dict (keyed by rarest keyword and cell), strtree (shapely), postgresql (GiST on boxes, text[];
    a cluster of its own, where PostgreSQL is installed).
    """
    from bench.ap_tree.run import run  # noqa: PLC0415

    return run(progress, **options)
