"""`nearcast simulate`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from cli.failures import reported
from cli.progress import bars

_MAP = click.option(
    "--map",
    "map_file",
    type=click.Path(path_type=Path),
    help="Map to drive in: OpenStreetMap (.osm.pbf, .osm, .osm.gz, .osm.bz2), or either file of a road "
    "network (.cnode and .cedge, or nodes.csv and edges.csv, also with .gz); else a city is generated.",
)
_UNIT = click.option(
    "--unit-m",
    type=float,
    help="Metres a unit, for a road network whose coordinates are no degrees (Oldenburg: 2.5 makes it "
    "25 km wide). It is placed about 0 degrees of longitude and latitude.",
)
_PLACES = click.option(
    "--places",
    "places_file",
    type=click.Path(path_type=Path),
    help="CSV of places for the map, in place of its own: lon and lat (x and y with --unit-m), name, "
    "keywords or text, category. A road network without it has drawn ones.",
)
_TEXTS = click.option(
    "--texts",
    "texts_file",
    type=click.Path(path_type=Path),
    help="CSV of texts with positions, which are published in place of words of places: lon and lat (x "
    "and y with --unit-m), text. Those outside of the map are left out.",
)


def map_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that say where devices drive and what is published, for commands that simulate."""
    return _MAP(_UNIT(_PLACES(_TEXTS(command))))


@click.command(epilog="Example: nearcast simulate --out runs/malta --map malta.osm.pbf")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="Folder for the tables; what is there is replaced.",
)
@map_options
@click.option("--devices", type=int, default=500, show_default=True, help="Devices that drive.")
@click.option("--seconds", type=int, default=600, show_default=True, help="Simulated time.")
@click.option(
    "--mobility", type=float, default=1.0, show_default=True, help="Share of the devices that drive."
)
@click.option(
    "--velocity",
    type=float,
    default=1.0,
    show_default=True,
    help="Times as fast as roads and classes allow.",
)
@click.option("--objects", type=int, default=3000, show_default=True, help="Objects alive at the start.")
@click.option(
    "--arrivals-per-s",
    type=float,
    default=2.0,
    show_default=True,
    help="Objects published a second (Poisson).",
)
@click.option(
    "--subscriptions-per-device",
    type=int,
    default=1,
    show_default=True,
    help="Subscriptions.",
)
@click.option(
    "--boolean-share",
    type=float,
    default=0.4,
    show_default=True,
    help="Share of the subscriptions that are boolean: an expression and a range; the others are top-k.",
)
@click.option(
    "--window-share",
    type=float,
    default=0.3,
    show_default=True,
    help="Share of the subscriptions that have a window: only the latest objects count.",
)
@click.option(
    "--standing-share",
    type=float,
    default=0.2,
    show_default=True,
    help="Share of the top-k subscriptions that stand at a place, the others move with their devices.",
)
@click.option(
    "--tfidf-share",
    type=float,
    default=0.2,
    show_default=True,
    help="Share of the top-k subscriptions that compare texts by tf-idf, the others by Jaccard.",
)
@click.option("--k-max", type=int, default=10, show_default=True, help="k is 1 to this.")
@click.option("--seed", type=int, default=1, show_default=True, help="Same seed, same rows.")
@click.option(
    "--stream",
    is_flag=True,
    help="Write OUT/feeds besides: messages and subscriptions as files for nearcast stream.",
)
@click.option(
    "--stream-slice-s",
    type=click.IntRange(1, 86_400),
    default=10,
    show_default=True,
    help="Simulated seconds of such a file.",
)
@click.option(
    "--stream-to",
    metavar="redis://host:port/database/feed",
    help="Append the two feeds in Redis besides, as feed.messages and feed.subscriptions.",
)
def simulate(
    out: Path,
    *,
    stream: bool,
    stream_slice_s: int,
    stream_to: str | None,
    **parameters: Any,  # noqa: ANN401
) -> None:
    """Make a workload: roads, places, trajectories, objects, subscriptions.

    In a generated city, or with --map in a real one or in a road network.

    Runs on Spark (which brings its own Java runtime if the machine has none) and writes Parquet, so that
    any tool can read it. Trajectories follow the roads, one position a second.
    """
    from feeds.redis import AddressError, RedisAddress  # noqa: PLC0415
    from feeds.redis.streams import RedisError  # noqa: PLC0415
    from simulator.maps import MapError  # noqa: PLC0415
    from simulator.parameters import ParameterError, SimulationParameters  # noqa: PLC0415
    from simulator.simulation import simulate as run  # noqa: PLC0415
    from simulator.workload.feeds import append_feeds  # noqa: PLC0415

    with reported(ParameterError, MapError, AddressError, RedisError, OSError), bars() as report:
        target = RedisAddress.parse(stream_to) if stream_to else None
        slice_s = stream_slice_s if stream or target else 0
        simulation = run(SimulationParameters(**parameters), out, report, feed_slice_s=slice_s)
        if target is not None:
            append_feeds(out, target, report)
    show_texts(simulation.world.texts)
    click.echo(
        f"{out}: {simulation.roads.num_rows} roads, {simulation.trajectories.num_rows} positions, "
        f"{simulation.objects.num_rows} objects, {simulation.subscriptions.num_rows} subscriptions"
    )


def show_texts(texts: dict[str, int] | None) -> None:
    """Say what became of the texts of a file, if there is one."""
    if texts is not None:
        click.echo(
            f"texts: {texts['taken']} taken, {texts['outside']} outside of the map, "
            f"{texts['wordless']} without a keyword"
        )
