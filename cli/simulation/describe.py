"""`nearcast simulate describe`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.failures import reported
from cli.paths import Folder, LocalPath, local_folder
from cli.progress import bars
from cli.spark_options import SparkChoice, spark_options

if TYPE_CHECKING:
    from simulator.simulation import Simulation
    from simulator.summary.figures import Figures


@click.command()
@click.argument("folder", type=Folder(exists=True))
@click.option(
    "--plots",
    type=LocalPath(file_okay=False),
    help="Folder for map.png, speeds.png and load.png.  [default: FOLDER; none if that is a URI]",
)
@click.option(
    "--beside",
    type=Folder(exists=True),
    help="Another simulation, for example of real traces; its speeds and trips are drawn over these.",
)
@spark_options("local[*]")
def describe(
    folder: Path | str, plots: Path | None, beside: Path | str | None, spark: SparkChoice
) -> None:
    """Describe a simulation: counts, speeds, lengths; and draw it.

    The FOLDER may be a URI of a file system that Spark supports.
    """
    from feeds.java import JavaNotFoundError  # noqa: PLC0415
    from simulator.session import simulator_session  # noqa: PLC0415
    from simulator.simulation import SimulationError, load, root_of  # noqa: PLC0415
    from simulator.summary.figures import figures  # noqa: PLC0415
    from simulator.summary.plots import draw_plots  # noqa: PLC0415

    target = local_folder(plots, folder, "--plots")
    expected = SimulationError, JavaNotFoundError, OSError
    with reported(*expected), simulator_session(*spark) as session:
        simulations = [load(root_of(one, session)) for one in (folder, beside) if one is not None]
        found = []
        with bars() as report:
            for number, one in enumerate(simulations):
                report("figures", number, len(simulations))
                found.append((one, figures(one, session)))
            report("figures", len(simulations), len(simulations))
            drawn = draw_plots(*found[0], target, *found[1:])
        for one, figures_of_one in found:
            _show_tables(one)
            _show_classes(figures_of_one)
        click.echo("   ".join(str(path) for path in drawn))
        _show_rate(simulations[0])


def _show_tables(simulation: Simulation) -> None:
    """Print the sizes of the tables, and the time that each took."""
    from simulator import schemas  # noqa: PLC0415
    from simulator.stages import read_mark  # noqa: PLC0415

    world = simulation.world
    click.echo(
        f"{simulation.path}: {world.name}, {world.seconds:,} s, a position every {world.period_ms} ms"
    )
    click.echo(f"{'table':<14}{'rows':>14}{'MB':>10}{'s':>9}{'rows/s':>12}")
    for name in (*schemas.TABLES, *schemas.MORE_TABLES):
        mark = read_mark(simulation.path, name)
        if mark is not None:
            rate = f"{mark.rows / mark.seconds:,.0f}" if mark.seconds >= 1.0 else ""
            size_mb = mark.size_bytes / 1e6
            click.echo(f"{name:<14}{mark.rows:>14,}{size_mb:>10,.1f}{mark.seconds:>9,.1f}{rate:>12}")


def _show_rate(simulation: Simulation) -> None:
    """Print the number of positions created per second, from roads to Parquet."""
    from simulator.stages import read_mark  # noqa: PLC0415

    mark = read_mark(simulation.path, "trajectories")
    if mark is not None and mark.seconds:
        rate = mark.rows / mark.seconds
        click.echo(f"{mark.rows:,} positions in {mark.seconds:,.1f} s: {rate:,.0f} points per second")


def _show_classes(found: Figures) -> None:
    """Print figures about the devices of each class."""
    columns = ("devices", "positions", "moving", "km", "median km/h", "95 % km/h")
    click.echo(f"{'class':<14}" + "".join(f"{one:>14}" for one in columns))
    for name, one in found.classes.items():
        values = (
            f"{one.device_count:,}",
            f"{one.position_count:,}",
            f"{one.moving_share:.0%}",
            f"{one.km:,.1f}",
            f"{one.speed_kmh(0.5):.0f}",
            f"{one.speed_kmh(0.95):.0f}",
        )
        click.echo(f"{name:<14}" + "".join(f"{value:>14}" for value in values))
    count = len(found.trips_m)
    if count:
        km, minutes = found.trips_m / 1000.0, found.trips_s / 60.0
        middles = (sorted(column)[count // 2] for column in (km, minutes))
        click.echo("trips of a sample: {:,}, median {:.2f} km and {:.1f} minutes".format(count, *middles))
