"""`nearcast bench ranges`."""

from __future__ import annotations

from typing import Any

import click

from bench.reports import Progress, Row
from cli.bench import options as shared


@shared.benchmark("--radius-m 100 --radius-m 500 --radius-m 2000")
@click.option(
    "--radius-m",
    "radii_m",
    type=click.FloatRange(1, 50_000),
    multiple=True,
    default=(500.0,),
    show_default=True,
    help="Radius of the ranges, which are circles about the devices; repeat for a series.",
)
@shared.driving_options
@shared.data_option
@shared.trajectories_option
@shared.variant_option
@shared.seed_option
@shared.output_options
def ranges(progress: Progress, **options: Any) -> list[Row]:  # noqa: ANN401
    """Count how often devices with ranges that move speak, and what they are sent, per device and hour.

    Each device wants all objects that have one or two keywords, within a circle about itself. Variants:
    set-constant (speaks only when its result changes), periodic-5 and periodic-30 (a position every so
    many seconds), ap-plus-periodic-30 (the same with an AP+-Tree, which pushes what is new), ap-plus-safe
    (safe regions that end where something would enter or leave, and questions to devices),
    anchored-0.0625 to anchored-8 (the slack, in radii), anchored-cost (slack by cost) and
    anchored-cost-ahead (and anchors ahead, as the server does). Bytes are those of messages; payloads
    aside.
    """
    from bench.ranges.run import run  # noqa: PLC0415

    return run(progress, **options)
