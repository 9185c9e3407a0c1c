"""`nearcast bench recovery`."""

from __future__ import annotations

from typing import Any

import click

from bench.reports import Progress, Row
from cli.bench import options as shared


@shared.benchmark("--size 1000000")
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
def recovery(progress: Progress, **options: Any) -> list[Row]:  # noqa: ANN401
    """Come back after a crash: time and memory until a server has what its store holds.

    A process commits objects and subscriptions, a thousand at a time, and dies as if killed. Another one
    takes the store over; then devices come back, and some lists are compared with the oracle.
    """
    from bench.recovery.run import run  # noqa: PLC0415

    return run(progress, **options)
