"""`nearcast bench silence`."""

from __future__ import annotations

from typing import Any

import click

from bench.reports import Progress, Row
from cli.bench import options as shared

_RATE = click.FloatRange(0, 100_000)


@shared.benchmark("--data places --trajectories gps --objects 1000000")
@click.option("--devices", type=click.IntRange(1, 1_000_000), default=2_000, show_default=True)
@click.option(
    "--seconds", type=click.IntRange(2, 3_600), default=600, show_default=True, help="How long they move."
)
@shared.objects_option
@click.option(
    "--arrivals-per-s", type=_RATE, default=0.0, show_default=True, help="Objects that come a second."
)
@click.option(
    "--expiries-per-s", type=_RATE, default=0.0, show_default=True, help="Objects that go a second."
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
    (b), periodic-1 to periodic-30 (a position every so many seconds; stale_share says how often what is
    shown is wrong). Bytes are those of messages; payloads aside.
    """
    from bench.silence.run import run  # noqa: PLC0415

    return run(progress, **options)
