"""`nearcast bench berlinmod`."""

from __future__ import annotations

from typing import Any

import click

from bench.reports import Progress, Row
from cli.bench import options as shared

_SIZE = click.FloatRange(1, 10_000)


@shared.benchmark("--query q3 --ranges 1 --ranges 1000000 --batch 1000")
@click.option("--query", "queries", multiple=True, help="q3, q4 or q7; repeat for more.  [default: all]")
@click.option(
    "--ranges",
    type=shared.COUNT,
    multiple=True,
    default=(1, 1_000, 100_000, 1_000_000),
    show_default=True,
    help="Standing ranges; repeat for a series.",
)
@click.option(
    "--batch",
    "batches",
    type=click.IntRange(1, 100_000),
    multiple=True,
    default=(1, 1_000),
    show_default=True,
    help="Events that the engine is given together; repeat for a series.",
)
@click.option("--events", type=shared.COUNT, default=216_075, show_default=True)
@click.option("--vehicles", type=click.IntRange(1, 100_000), default=5, show_default=True)
@click.option("--distance-m", type=_SIZE, default=100.0, show_default=True, help="Of Q3.")
@click.option(
    "--region-m", type=_SIZE, default=100.0, show_default=True, help="Of Q4: middle to corners."
)
@click.option("--poi-m", type=_SIZE, default=50.0, show_default=True, help="Of Q7: so near has passed.")
@click.option("--audited", type=shared.COUNT, default=40, show_default=True, help="Ranges audited.")
@shared.seed_option
@shared.budget_option
@shared.output_options
def berlinmod(progress: Progress, **options: Any) -> list[Row]:  # noqa: ANN401
    """Count events a second of three queries of BerlinMOD as a stream, against standing ranges.

    Vehicles drive through a generated city, an event a second each; ranges are boolean subscriptions that
    stay, in an engine as the server has it, in one thread. Q3 tells each event within a distance of a
    point, Q4 each entry into a region, Q7 the first passage of each point of interest. MobilityFlink's
    published figures, one range standing, one task on a machine of 16 cores, stand beside. Of a sample of
    the ranges all answers are compared with plain Python's.
    """
    from bench.berlinmod.run import run  # noqa: PLC0415

    return run(progress, **options)
