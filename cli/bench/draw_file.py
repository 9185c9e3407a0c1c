"""`nearcast bench draw-file`."""

from __future__ import annotations

from pathlib import Path

import click

from bench.errors import BenchError
from cli.bench import options as shared
from cli.failures import reported

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(
    name="draw-file",
    epilog="Example: nearcast bench draw-file subs.tsv objects.tsv --side-max 0.01",
)
@click.argument("subscriptions_path", metavar="SUBS.tsv", type=_FILE)
@click.argument("objects_path", metavar="OBJECTS.tsv", type=_FILE)
@click.option("--subscriptions", type=shared.COUNT, default=100_000, show_default=True)
@click.option("--objects", type=shared.COUNT, default=10_000, show_default=True)
@click.option(
    "--side-max",
    type=click.FloatRange(0.0, 1.0, min_open=True),
    help="Sides of rectangles are uniform up to this share of the space's.  [default: as in the paper]",
)
@click.option(
    "--data",
    "source",
    type=click.Choice(["texts", "places", "geonames", "osm", "synthetic", "messages"]),
    default="messages",
    show_default=True,
    help="See `nearcast bench ap-tree`.",
)
@shared.seed_option
def draw_file(
    subscriptions_path: Path,
    objects_path: Path,
    subscriptions: int,
    objects: int,
    side_max: float | None,
    source: str,
    seed: int,
) -> None:
    """Draw files for `nearcast bench match-file`: boolean subscriptions, and objects.

    A subscription takes 1 to 5 keywords of a random object, and a rectangle about it. The same options
    draw the same files. What is there is overwritten.
    """
    from bench.ap_tree.experiments import ApTreeParameters  # noqa: PLC0415
    from bench.match_file.draw import draw_files  # noqa: PLC0415

    parameters = ApTreeParameters(
        subscriptions=subscriptions, objects=objects, history=0, side_max=side_max, seed=seed
    )
    with reported(BenchError):
        draw_files(subscriptions_path, objects_path, parameters, source)
    click.echo(str(subscriptions_path))
    click.echo(str(objects_path))
