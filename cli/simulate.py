"""`nearcast simulate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from cli.failures import refused, reported
from cli.options import ModelGroup, given, simulation_parameters
from cli.paths import FOLDER
from cli.progress import bars
from cli.simulation.check import check
from cli.simulation.describe import describe
from cli.simulation.export import export
from cli.simulation.traces import traces
from cli.spark_options import SparkChoice, spark_options


@click.group(
    cls=ModelGroup,
    model=simulation_parameters,
    invoke_without_command=True,
    subcommand_metavar="[COMMAND]",
    epilog="Example: nearcast simulate --out runs/malta --map malta.osm.pbf",
)
@click.option(
    "--out",
    type=FOLDER,
    help="Folder for the tables, a path or a URI of a file system that Spark has; existing tables are "
    "replaced, or kept if they are identical.",
)
@click.option(
    "--stream",
    is_flag=True,
    help="Also write OUT/feeds: messages and subscriptions as files for nearcast stream run.",
)
@click.option(
    "--stream-slice-s",
    type=click.IntRange(1, 86_400),
    default=10,
    show_default=True,
    help="Simulated seconds per file of a feed.",
)
@click.option(
    "--stream-to",
    metavar="redis://host:port/database/feed",
    help="Also append the two feeds in Redis, as feed.messages and feed.subscriptions.",
)
@spark_options("local[*]")
@click.pass_context
def simulate(
    context: click.Context,
    /,
    out: Path | str | None,
    *,
    stream: bool,
    stream_slice_s: int,
    stream_to: str | None,
    spark: SparkChoice,
    **parameters: Any,  # noqa: ANN401
) -> None:
    """Create a workload: roads, places, trajectories, objects, subscriptions.

    The workload is in a generated city, or with --map in a real city or in a road network.

    Runs on Spark (with a bundled Java runtime if the machine has none) and writes Parquet, which other
    tools can read. Trajectories follow the roads, with one position a second.
    """
    if context.invoked_subcommand is not None:
        return
    if out is None:
        raise click.MissingParameter(param_type="option", param_hint="--out")
    from pyspark.errors import PySparkException  # noqa: PLC0415

    from feeds.cluster import ClusterError  # noqa: PLC0415
    from feeds.redis import AddressError, RedisAddress  # noqa: PLC0415
    from feeds.redis.streams import RedisError  # noqa: PLC0415
    from simulator.maps import MapError  # noqa: PLC0415
    from simulator.parameters import ParameterError, SimulationParameters  # noqa: PLC0415
    from simulator.session import SparkStart  # noqa: PLC0415
    from simulator.simulation import simulate as run  # noqa: PLC0415

    with refused(ParameterError, AddressError):
        target = RedisAddress.parse(stream_to) if stream_to else None
        chosen = SimulationParameters(**given(parameters))
    expected = MapError, RedisError, PySparkException, ClusterError, OSError
    with reported(*expected), bars() as report:
        simulation = run(
            chosen,
            out,
            report,
            spark=SparkStart(*spark),
            feed_slice_s=stream_slice_s if stream or target else 0,
            append_to=target,
        )
    show_texts(simulation.world.texts)
    tables = {"roads": "roads", "trajectories": "positions"}
    tables |= {name: name for name in ("objects", "subscriptions")}
    counts = (f"{simulation.row_count(name)} {noun}" for name, noun in tables.items())
    click.echo(f"{out}: {', '.join(counts)}")


def show_texts(texts: dict[str, int] | None) -> None:
    """Print how the texts of a file were used, if there is one."""
    if texts is not None:
        click.echo(
            f"texts: {texts['taken']} taken, {texts['outside']} outside the map, {texts['wordless']} "
            "without a keyword"
        )


simulate.add_command(check)
simulate.add_command(describe)
simulate.add_command(export)
simulate.add_command(traces)
