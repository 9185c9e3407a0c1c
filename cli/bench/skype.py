"""`nearcast bench skype`."""

from __future__ import annotations

from typing import Any

import click

from bench.reports import Progress, Row
from cli.bench import options as shared


@shared.benchmark("--experiment figure-13 --experiment figure-14 --data texts")
@click.option(
    "--experiment",
    "experiments",
    multiple=True,
    default=("line-up",),
    show_default=True,
    help="figure-10 to figure-20 (figure-14 is Table 4 too), line-up; repeat for more.",
)
@shared.variant_option
@click.option("--subscriptions", type=shared.COUNT, default=100_000, show_default=True)
@click.option(
    "--window", type=shared.COUNT, default=100_000, show_default=True, help="Messages that count."
)
@click.option(
    "--messages",
    type=shared.COUNT,
    default=20_000,
    show_default=True,
    help="How many arrive at most; a system that is slower ends when its time is over.",
)
@click.option("--k", type=click.IntRange(1, 1_000), default=20, show_default=True)
@click.option(
    "--batch",
    type=click.IntRange(1, 100_000),
    default=100,
    show_default=True,
    help="Messages that arrive at once.",
)
@click.option(
    "--data",
    multiple=True,
    type=click.Choice(["texts", "places", "geonames", "osm", "synthetic", "messages"]),
    default=("messages",),
    show_default=True,
    help="Whose places and keywords messages have: texts or names of businesses of the United States, "
    "towns of the Americas, Malta's points of interest, or drawn ones; repeat for more. Once all are "
    "drawn, messages are mixtures of two, and rows say how many.",
)
@shared.seed_option
@shared.budget_option
@shared.output_options
def skype(progress: Progress, **options: Any) -> list[Row]:  # noqa: ANN401
    """Keep the k best of a sliding window right: the Skype paper, section 8.1.

    Tells the time of a message that arrives (AMP) and of one that expires (EMP), and how much buffers
    hold. Variants: igpt-cskyband, which is Skype as published; igpt-kmax, igpt-skyband, ipt-cskyband,
    ciq-cskyband, ciq-kmax; ours, which is the SQ+-tree with buffers by cost; and mixtures. IQF+ keeps the
    messages of all but one.
    """
    from bench.skype.run import run  # noqa: PLC0415

    return run(progress, **options)
