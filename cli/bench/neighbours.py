"""`nearcast bench neighbours`."""

from __future__ import annotations

from typing import Any

import click

from bench.reports import Progress, Row
from cli.bench import options as shared


@shared.benchmark("--act search-holes --act durable --rounds 5")
@click.option(
    "--act", "acts", multiple=True, help="Only these; repeat for more. A name that is none lists all."
)
@click.option("--all", "all_acts", is_flag=True, help="Every act, which is what is done without any.")
@click.option(
    "--rounds",
    type=click.IntRange(1, 100),
    default=5,
    show_default=True,
    help="How often each act is measured, and nothing, in turn.",
)
@click.option(
    "--seconds",
    type=(click.FloatRange(0.1, 600),) * 3,
    default=(5.0, 8.0, 12.0),
    show_default=True,
    help="How long before, during and after an act.",
)
@click.option(
    "--tenants",
    is_flag=True,
    help="Instead: four tenants that send as fast as they get responses, of which one does all acts of "
    "--act at once; without any, six that cost others something.",
)
@click.option(
    "--messages-per-s",
    type=click.FloatRange(0.1, 10_000),
    default=20.0,
    show_default=True,
    help="Reports of the honest device; the publisher sends as many requests.",
)
@click.option(
    "--objects",
    type=click.IntRange(0, 10_000_000),
    help="Objects that the server has, in place of each act's own number.",
)
@click.option(
    "--server-command",
    default="",
    help="Command line of another installation, whose server is measured: path/.venv/bin/nearcast.",
)
@click.option("--server-flag", "server_flags", multiple=True, help="One more of the server's.")
@shared.output_options
def neighbours(progress: Progress, **options: Any) -> list[Row]:  # noqa: ANN401
    """Let one caller act within its rights, and measure an honest device and publisher beside it.

    Each act is one caller with one token at a fresh server; some need none. Latencies count from when a
    message was due. Figures are medians of the rounds, beside those of rounds in which nobody acts.
    """
    from bench.neighbours.run import run  # noqa: PLC0415

    if options.pop("all_acts"):
        options["acts"] = ()
    return run(progress, **options)
