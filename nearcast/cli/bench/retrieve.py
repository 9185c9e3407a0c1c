"""`nearcast bench retrieve`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nearcast.cli.bench import options as shared
from nearcast.cli.failures import reported
from nearcast.cli.progress import bars


@click.command(epilog="Example: nearcast bench retrieve --data places --objects 1000000")
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
def retrieve(
    extras: tuple[int, ...],
    names: tuple[str, ...],
    json_path: Path | None,
    plot: Path | None,
    **options: Any,  # noqa: ANN401
) -> None:
    """Look for what is best here: time per subscription, and how fast objects come and go.

    Variants: the object indexes of the server, by name (naive only if it is named), and inverted-file
    (posting lists alone).
    """
    with reported():
        from bench.datasets import DataMissingError  # noqa: PLC0415
        from bench.retrieve.command import run  # noqa: PLC0415

        with reported(DataMissingError, ValueError), bars() as progress:
            rows = run(extras, names, options, progress)
    shared.finish("retrieve", {"extra": extras, **options}, rows, json_path, plot)
