"""`nearcast bench publish`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nearcast.cli.bench import options as shared
from nearcast.cli.failures import reported
from nearcast.cli.progress import bars


@click.command(epilog="Example: nearcast bench publish --batch 100 --variant pump")
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
def publish(
    batches: tuple[int, ...],
    names: tuple[str, ...],
    folder: Path | None,
    json_path: Path | None,
    plot: Path | None,
    **options: Any,  # noqa: ANN401
) -> None:
    """Publish: objects a second that are on disk, matched, and in the outboxes of devices.

    Variants: store (commits alone), pump (all of a server but its transport).
    """
    with reported():
        from bench.datasets import DataMissingError  # noqa: PLC0415
        from bench.publish.command import run  # noqa: PLC0415

        with reported(DataMissingError, ValueError), bars() as progress:
            rows = run(batches, names, folder, options, progress)
    shared.finish("publish", {"batches": batches, **options}, rows, json_path, plot)
