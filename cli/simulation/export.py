"""`nearcast simulate export`."""

from __future__ import annotations

from pathlib import Path

import click

from cli.failures import reported
from cli.paths import Folder, LocalPath, local_folder
from cli.progress import bars
from cli.spark_options import SparkChoice, spark_options

_TABLES = ("roads", "places", "trajectories", "objects")
_FORMATS = ("geojson", "geoparquet")


@click.command(epilog="Example: nearcast simulate export runs/malta --table roads --format geoparquet")
@click.argument("folder", type=Folder(exists=True))
@click.option(
    "--table",
    "tables",
    type=click.Choice(_TABLES),
    multiple=True,
    default=("roads",),
    show_default=True,
    help="Table to export; repeat for more. In trajectories each device is a line.",
)
@click.option(
    "--format",
    "kind",
    type=click.Choice(_FORMATS),
    default="geojson",
    show_default=True,
    help="Format of the files.",
)
@click.option(
    "--out",
    type=LocalPath(file_okay=False),
    help="Folder for the files, which are named after their tables.  [default: FOLDER/export; none if "
    "FOLDER is a URI]",
)
@spark_options("local[*]")
def export(
    folder: Path | str, tables: tuple[str, ...], kind: str, out: Path | None, spark: SparkChoice
) -> None:
    """Export tables of a simulation for programs that draw maps: GeoJSON or GeoParquet 1.1.

    Positions are in degrees of WGS84. Maps on a plane lie about 0 degrees of longitude and latitude. The
    FOLDER may be a URI of a file system that Spark supports.
    """
    from feeds.java import JavaNotFoundError  # noqa: PLC0415
    from simulator.export.features import features  # noqa: PLC0415
    from simulator.export.files import Format, write_features  # noqa: PLC0415
    from simulator.session import simulator_session  # noqa: PLC0415
    from simulator.simulation import SimulationError, load, root_of  # noqa: PLC0415
    from simulator.tables import reading  # noqa: PLC0415

    target = out or local_folder(None, folder, "--out") / "export"
    with reported(SimulationError, JavaNotFoundError, OSError), bars() as report:
        report("spark", 0, 1)
        with simulator_session(*spark) as session:
            report("spark", 1, 1)
            root = root_of(folder, session)
            world = load(root).world
            for number, table in enumerate(dict.fromkeys(tables)):
                path = target / f"{table}{Format(kind).ending}"
                with reading(root):
                    count = write_features(features(session, root, world, table), Format(kind), path)
                report("export", number + 1, len(tables))
                click.echo(f"{path}: {count} features")
