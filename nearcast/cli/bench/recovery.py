"""`nearcast bench recovery`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nearcast.cli.bench import options as shared
from nearcast.cli.failures import reported
from nearcast.cli.progress import bars


@click.command(epilog="Example: nearcast bench recovery --size 1000000")
@click.option(
    "--size",
    "sizes",
    type=shared.COUNT,
    multiple=True,
    default=(100_000,),
    show_default=True,
    help="How many objects, and as many parked subscriptions; repeat for a series.",
)
@click.option(
    "--attached",
    type=click.IntRange(0, 10_000_000),
    default=100_000,
    show_default=True,
    help="How many devices come back and are given their lists afterwards, at most all.",
)
@shared.payload_option
@shared.k_max_option
@shared.data_option
@shared.seed_option
@shared.folder_option
@shared.output_options
def recovery(
    sizes: tuple[int, ...],
    folder: Path | None,
    json_path: Path | None,
    plot: Path | None,
    **options: Any,  # noqa: ANN401
) -> None:
    """Come back after a crash: time and memory until a server has what its store holds.

    A process commits objects and subscriptions, a thousand at a time, and dies as if killed. Another one
    takes the store over; then devices come back, and some lists are compared with the oracle.
    """
    with reported():
        from bench.datasets import DataMissingError  # noqa: PLC0415
        from bench.recovery.command import run  # noqa: PLC0415

        with reported(DataMissingError, ChildProcessError), bars() as progress:
            rows = run(sizes, folder, options, progress)
    shared.finish("recovery", {"sizes": sizes, **options}, rows, json_path, plot)
