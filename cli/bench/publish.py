"""`nearcast bench publish`."""

from __future__ import annotations

from typing import Any

import click

from bench.reports import Progress, Row
from cli.bench import options as shared


@shared.benchmark("--batch 100 --variant server")
@shared.objects_option
@click.option(
    "--subscriptions",
    type=shared.COUNT,
    default=10_000,
    show_default=True,
    help="Devices that listen.",
)
@click.option(
    "--batch",
    "batches",
    type=click.IntRange(1, 1_000),
    multiple=True,
    default=(1, 100, 1_000),
    show_default=True,
    help="Objects a request; repeat for more.",
)
@click.option(
    "--publishers",
    type=click.IntRange(1, 100_000),
    default=16,
    show_default=True,
    help="Those that publish at once; each waits for its answer.",
)
@shared.payload_option
@shared.k_max_option
@shared.data_option
@shared.variant_option
@shared.seed_option
@shared.folder_option
@shared.output_options
def publish(progress: Progress, **options: Any) -> list[Row]:  # noqa: ANN401
    """Publish: objects a second that are on disk, matched, and in the outboxes of devices.

    Variants: store (commits alone), server (all of a server but its transport).
    """
    from bench.publish.run import run  # noqa: PLC0415

    return run(progress, **options)
