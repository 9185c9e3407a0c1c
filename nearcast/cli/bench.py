"""`nearcast bench`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from nearcast.cli.failures import reported
from nearcast.cli.progress import bars

_SIMILARITIES = ("jaccard", "dice", "cosine")


def output_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add what every benchmark takes."""
    path = click.Path(dir_okay=False, path_type=Path)
    command = click.option("--plot", type=path, help="Picture of the rows, PNG.")(command)
    return click.option("--json", "json_path", type=path, help="File for parameters, machine and rows.")(
        command
    )


@click.group()
def bench() -> None:
    r"""Measure: the papers' experiments and the peers, audited by sample against the oracle.

    Real data is read from the folder that NEARCAST_DATA names (default ../shared/data); the data set
    synthetic needs none. Rows go to the screen and, with --json, to a file
    {bench, parameters, environment, rows}.
    """


@bench.command()
@click.option(
    "--experiment",
    "experiments",
    multiple=True,
    help="table-3, figure-9 to figure-18, anchored; repeat for more.  [default: table-3]",
)
@click.option("--variant", "names", multiple=True, help="Only these systems; repeat for more.")
@click.option("--subscriptions", type=click.IntRange(1, 10_000_000), default=100_000, show_default=True)
@click.option("--objects", type=click.IntRange(1, 10_000_000), default=100_000, show_default=True)
@click.option("--ticks", type=click.IntRange(2, 600), default=10, show_default=True, help="Seconds run.")
@click.option(
    "--warm-up-s",
    type=click.IntRange(0, 3600),
    default=0,
    show_default=True,
    help="Seconds that devices move before the first tick, so that regions are of all ages.",
)
@click.option(
    "--updates",
    type=click.IntRange(1, 100_000),
    default=100,
    show_default=True,
    help="Objects generated and expired a tick.",
)
@click.option(
    "--expired-share",
    type=click.FloatRange(0, 1),
    default=0.1,
    show_default=True,
    help="Expirations among them.",
)
@click.option(
    "--k-max", type=click.IntRange(1, 100), default=10, show_default=True, help="k is 1 to this."
)
@click.option(
    "--data",
    type=click.Choice(["places", "osm", "synthetic"]),
    default="synthetic",
    show_default=True,
    help="Businesses of the United States, Malta's points of interest, or a drawn city.",
)
@click.option(
    "--trajectories",
    type=click.Choice(["roads", "gps"]),
    default="roads",
    show_default=True,
    help="Drives through a generated city, or taxi traces.",
)
@click.option("--similarity", type=click.Choice(_SIMILARITIES), default="jaccard", show_default=True)
@click.option("--seed", type=int, default=1, show_default=True)
@click.option(
    "--budget-s",
    type=click.FloatRange(1),
    default=600.0,
    show_default=True,
    help="Time for one run; a system that is slower runs at a smaller size, and its row says so.",
)
@output_options
def lamps(
    experiments: tuple[str, ...],
    names: tuple[str, ...],
    json_path: Path | None,
    plot: Path | None,
    **options: Any,  # noqa: ANN401
) -> None:
    r"""Update time of a tick, after lamps.txt section 7: generated, expired, moved.

    \b
    nearcast bench lamps --data places --subscriptions 1000000 --objects 1000000 --variant lamps
    """
    with reported():
        from bench.datasets import DataMissingError  # noqa: PLC0415
        from bench.lamps_command import run  # noqa: PLC0415

        with reported(DataMissingError, ValueError), bars() as progress:
            rows = run(experiments or ("table-3",), names, options, progress)
    _finish("lamps", options, rows, json_path, plot)


def _finish(
    name: str,
    options: dict[str, Any],
    rows: list[dict[str, Any]],
    json_path: Path | None,
    plot: Path | None,
) -> None:
    from bench import plots, reports  # noqa: PLC0415

    for line in reports.lines(rows):
        click.echo(line)
    if json_path is not None:
        reports.write(json_path, name, options, rows)
        click.echo(str(json_path))
    if plot is not None:
        plots.PLOTS[name](rows, plot)
        click.echo(str(plot))
    mismatches = sum(row["mismatches"] for row in rows)
    lists = sum(row["lists_audited"] for row in rows)
    click.echo(f"audit: {lists} lists, {mismatches} mismatches")
    raise SystemExit(1 if mismatches else 0)
