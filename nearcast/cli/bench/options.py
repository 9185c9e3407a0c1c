"""Options that benchmarks share, and what they do with their rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

Command = Callable[..., None]

COUNT = click.IntRange(1, 10_000_000)


def output_options(command: Command) -> Command:
    """Add what every benchmark takes."""
    path = click.Path(dir_okay=False, path_type=Path)
    command = click.option("--plot", type=path, help="Picture of the rows, PNG.")(command)
    return click.option("--json", "json_path", type=path, help="File for parameters, machine and rows.")(
        command
    )


variant_option = click.option(
    "--variant", "names", multiple=True, help="Only these systems; repeat for more."
)
objects_option = click.option("--objects", type=COUNT, default=100_000, show_default=True)
k_max_option = click.option(
    "--k-max", type=click.IntRange(1, 100), default=10, show_default=True, help="k is 1 to this."
)
data_option = click.option(
    "--data",
    type=click.Choice(["places", "osm", "synthetic"]),
    default="synthetic",
    show_default=True,
    help="Businesses of the United States, Malta's points of interest, or a drawn city.",
)
trajectories_option = click.option(
    "--trajectories",
    type=click.Choice(["roads", "gps"]),
    default="roads",
    show_default=True,
    help="Drives through a generated city, or taxi traces.",
)
similarity_option = click.option(
    "--similarity", type=click.Choice(["jaccard", "dice", "cosine"]), default="jaccard", show_default=True
)
seed_option = click.option("--seed", type=int, default=1, show_default=True)
payload_option = click.option(
    "--payload-bytes",
    type=click.IntRange(0, 16 * 1024),
    default=64,
    show_default=True,
    help="Payload of each object.",
)
folder_option = click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Where stores are written, and deleted afterwards.  [default: that of temporary files]",
)
budget_option = click.option(
    "--budget-s",
    type=click.FloatRange(1),
    default=600.0,
    show_default=True,
    help="Time for one run; a system that is slower runs at a smaller size, and its row says so.",
)


def finish(
    name: str,
    options: dict[str, Any],
    rows: list[dict[str, Any]],
    json_path: Path | None,
    plot: Path | None,
    *,
    failed: bool = False,
) -> None:
    """Show rows, write the files asked for, and exit with 1 if it failed or a list was wrong."""
    from bench import plots, reports  # noqa: PLC0415 - an extra

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
    raise SystemExit(1 if mismatches or failed else 0)
