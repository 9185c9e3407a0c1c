"""`nearcast bench silence`."""

from __future__ import annotations

from typing import Any

import click

from bench.reports import Progress, Row
from cli.bench import options as shared


@shared.benchmark("--data places --trajectories gps --objects 1000000")
@shared.driving_options
@click.option(
    "--window-s",
    type=click.FloatRange(0, 3_600),
    default=0.0,
    show_default=True,
    help="Each object counts for so long, and others come instead; for the variants with windows.",
)
@shared.k_max_option
@shared.data_option
@shared.trajectories_option
@shared.similarity_option
@shared.variant_option
@shared.seed_option
@shared.budget_option
@shared.output_options
def silence(progress: Progress, **options: Any) -> list[Row]:  # noqa: ANN401
    """Count how often devices speak and what they are sent, per device and hour.

    Variants: asr, lsr, set-constant (speaks only when the result set changes), anchored-0 to anchored-20
    (b), anchored-cost and anchored-cost-ahead (b by cost), the same unthinned (what others beat is held,
    too), and with windows of seconds or of a count in place of lifetimes, periodic-1 to periodic-30 (a
    position every so many seconds; stale_share says how often what is shown is wrong). Bytes are those
    of messages; payloads aside.
    """
    from bench.silence.run import run  # noqa: PLC0415

    return run(progress, **options)
