"""`nearcast simulate check`."""

from __future__ import annotations

from pathlib import Path

import click

from cli.failures import reported
from cli.paths import Folder
from cli.progress import bars
from cli.spark_options import SparkChoice, spark_options


@click.command()
@click.argument("folder", type=Folder(exists=True))
@spark_options("local[*]")
def check(folder: Path | str, spark: SparkChoice) -> None:
    """Check that a simulation is consistent. Exits with status 1 if it is not.

    Every position lies on a road that is open to the device, no device is faster than road, class and
    device allow, ticks have no gaps, turns are allowed, ids exist and are unique, subscriptions are
    within the limits of a server, and tables have as many rows as were created. Runs on Spark. The FOLDER
    may be a URI of a file system that Spark supports.
    """
    from feeds.java import JavaNotFoundError  # noqa: PLC0415
    from simulator.checks.check import check as run  # noqa: PLC0415
    from simulator.session import simulator_session  # noqa: PLC0415
    from simulator.simulation import SimulationError, load, root_of  # noqa: PLC0415

    expected = SimulationError, JavaNotFoundError, OSError
    with reported(*expected), bars() as report, simulator_session(*spark) as session:
        found = run(load(root_of(folder, session)), session, report)
    width = max(len(one.rule) for one in found)
    click.echo(f"{'rule':<{width}}  {'checked':>13}  {'violations':>10}")
    for one in found:
        click.echo(f"{one.rule:<{width}}  {one.checked:>13,}  {one.violations:>10,}")
    broken = sum(1 for one in found if one.violations)
    click.echo(f"{folder}: {len(found)} rules, {broken} broken")
    raise click.exceptions.Exit(1 if broken else 0)
