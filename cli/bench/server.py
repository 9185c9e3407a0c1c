"""`nearcast bench server`."""

from __future__ import annotations

from typing import Any

import click

from bench.reports import Progress, Row
from cli.bench import options as shared


@shared.benchmark("--devices 100 --devices 1000 --devices 10000")
@click.option(
    "--devices",
    type=click.IntRange(4, 1_000_000),
    multiple=True,
    default=(100, 1_000, 10_000),
    show_default=True,
    help="Connected devices; repeat for a series.",
)
@shared.variant_option
@shared.objects_option
@shared.k_max_option
@shared.data_option
@shared.measuring_options(rounds=3)
@click.option(
    "--boolean-share",
    type=click.FloatRange(0, 1),
    default=0.0,
    show_default=True,
    help="Share of the devices that have a boolean subscription, with a fixed range, in place of a top-k "
    "one; with --variant connections or shared.",
)
@click.option(
    "--soak-s",
    type=click.FloatRange(1),
    help="Instead: a mixed load for so many seconds; fails if the server's memory grows.",
)
@shared.seed_option
@shared.output_options
def server(progress: Progress, **options: Any) -> list[Row]:  # noqa: ANN401
    """Put a server process under load, beside a bare grpc.aio echo server in the same run.

    Variants: connections (each device has one of its own), shared (each has a stream, on ten connections)
    and fleet (the devices share four streams), each at a server of its own. Rates, latencies, memory, and
    what a device that does not read does to others.

    Variants storm-connections and storm-fleet: the server is killed and starts again, and its devices,
    the SDK's, come back by themselves, each with a subscription for the --k-max best. Seconds from the
    first hello to the last snapshot, as the server says, and from the kill until devices are EXACT.

    Variant metrics: CPU a report of two servers in turn, one of which is scraped each second.
    """
    from bench.server.run import run  # noqa: PLC0415

    return run(progress, **options)
