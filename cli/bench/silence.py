"""`nearcast bench silence`."""

from __future__ import annotations

from typing import Any

from bench.reports import Progress, Row
from cli.bench import options as shared


@shared.benchmark("--data places --trajectories gps --objects 1000000")
@shared.driving_options
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
