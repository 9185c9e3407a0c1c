"""`nearcast bench door`."""

from __future__ import annotations

from typing import Any

import click

from bench.reports import Progress, Row
from cli.bench import options as shared


@shared.benchmark("--variant cost --rounds 5")
@click.option(
    "--devices", type=click.IntRange(4, 100_000), default=1_000, show_default=True, help="Attached."
)
@shared.variant_option
@shared.objects_option
@shared.k_max_option
@shared.data_option
@shared.measuring_options(rounds=5)
@click.option(
    "--reports-per-s",
    type=click.FloatRange(1, 100_000),
    default=300.0,
    show_default=True,
    help="Of all honest devices together, beside an intruder.",
)
@shared.seed_option
@shared.output_options
def door(progress: Progress, **options: Any) -> list[Row]:  # noqa: ANN401
    """Ask everybody who he is: what it costs, and what one intruder does to others.

    Variants: cost (a server that asks for signed tokens beside one that asks nobody, in turn) and
    intruder (honest devices with and without another one that uses its token in all ways at once).
    """
    from bench.door.run import run  # noqa: PLC0415

    return run(progress, **options)
