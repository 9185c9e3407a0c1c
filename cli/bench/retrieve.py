"""`nearcast bench retrieve`."""

from __future__ import annotations

from typing import Any

import click

from bench.reports import Progress, Row
from cli.bench import options as shared


@shared.benchmark("--data places --objects 1000000")
@shared.objects_option
@click.option(
    "--extra",
    "extras",
    type=click.IntRange(0, 1_000),
    multiple=True,
    default=(0, 8, 32),
    show_default=True,
    help="b: the k+b+1 best are looked for; repeat for more.",
)
@shared.k_max_option
@shared.data_option
@shared.similarity_option
@shared.variant_option
@shared.seed_option
@shared.budget_option
@shared.output_options
def retrieve(progress: Progress, **options: Any) -> list[Row]:  # noqa: ANN401
    """Look for what is best here: time per subscription, and how fast objects come and go.

    Variants: the object indexes of the server, by name (naive only if it is named), and inverted-file
    (posting lists alone).
    """
    from bench.retrieve.run import run  # noqa: PLC0415

    return run(progress, **options)
