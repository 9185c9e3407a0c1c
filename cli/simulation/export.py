"""`nearcast simulate export`."""

from __future__ import annotations

from pathlib import Path

import click

from cli.failures import reported
from cli.progress import bars
from cli.spark_options import SparkChoice, spark_options

_TABLES = ("roads", "places", "trajectories", "objects")
_FORMATS = ("geojson", "geoparquet")


@click.command(epilog="Example: nearcast simulate export runs/malta --table roads --format geoparquet")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--table",
    "tables",
    type=click.Choice(_TABLES),
    multiple=True,
    default=("roads",),
    show_default=True,
    help="What to export; repeat for more. Of trajectories each device is a line.",
)
@click.option(
    "--format", "kind", type=click.Choice(_FORMATS), default="geojson", show_default=True, help="As what."
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the files, which are named after their tables.  [default: FOLDER/export]",
)
@spark_options("local[*]")
def export(
    folder: Path, tables: tuple[str, ...], kind: str, out: Path | None, spark: SparkChoice
) -> None:
    """Export tables of a simulation for programs that draw maps: GeoJSON or GeoParquet 1.1.

    In degrees of WGS84. Maps on a plane lie about 0 degrees of longitude and latitude.
    """
    from feeds.java import JavaNotFoundError  # noqa: PLC0415
    from simulator.export.features import features  # noqa: PLC0415
    from simulator.export.files import Format, write_features  # noqa: PLC0415
    from simulator.session import simulator_session  # noqa: PLC0415
    from simulator.simulation import SimulationError, load  # noqa: PLC0415

    with reported(SimulationError, JavaNotFoundError, OSError), bars() as report:
        world = load(folder).world
        report("spark", 0, 1)
        with simulator_session(*spark) as session:
            report("spark", 1, 1)
            for number, table in enumerate(dict.fromkeys(tables)):
                path = (out or folder / "export") / f"{table}{Format(kind).ending}"
                count = write_features(features(session, folder, world, table), Format(kind), path)
                report("export", number + 1, len(tables))
                click.echo(f"{path}: {count} features")
