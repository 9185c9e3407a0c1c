"""What benchmarks share: the frame of a command, and options."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from bench import reports
from bench.errors import BenchError
from bench.reports import Row
from cli.failures import reported
from cli.progress import bars

Measure = Callable[..., list[Row]]

COUNT = click.IntRange(1, 10_000_000)


def benchmark(example: str) -> Callable[[Measure], click.Command]:
    """Make a command of a function from progress and options to rows.

    Rows are shown, and written to the files asked for; the command ends with 1 if a list was wrong, or
    memory rose.
    """

    def command(measure: Measure) -> click.Command:
        @wraps(measure)
        def carry_out(json_path: Path | None, plot: Path | None, **options: Any) -> None:  # noqa: ANN401
            with reported(BenchError), bars() as progress:
                rows = measure(progress, **options)
            _finish(measure.__name__, options, rows, json_path, plot)

        name = measure.__name__.replace("_", "-")
        epilog = f"Example: nearcast bench {name} {example}"
        return click.command(name=name, epilog=epilog)(carry_out)

    return command


def output_options(measure: Measure) -> Measure:
    """Add what every benchmark takes."""
    path = click.Path(dir_okay=False, path_type=Path)
    measure = click.option("--plot", type=path, help="Picture of the rows, PNG.")(measure)
    return click.option("--json", "json_path", type=path, help="File for parameters, machine and rows.")(
        measure
    )


_RATE = click.FloatRange(0, 100_000)


def driving_options(measure: Measure) -> Measure:
    """Add how many devices drive, for how long, and how fast objects come and go meanwhile."""
    for option in (
        click.option(
            "--expiries-per-s",
            type=_RATE,
            default=0.0,
            show_default=True,
            help="Objects that go a second.",
        ),
        click.option(
            "--arrivals-per-s",
            type=_RATE,
            default=0.0,
            show_default=True,
            help="Objects that come a second.",
        ),
        objects_option,
        click.option(
            "--seconds",
            type=click.IntRange(2, 3_600),
            default=600,
            show_default=True,
            help="How long they move.",
        ),
        click.option("--devices", type=click.IntRange(1, 1_000_000), default=2_000, show_default=True),
    ):
        measure = option(measure)
    return measure


def measuring_options(rounds: int) -> Callable[[Measure], Measure]:
    """Return what adds for how long a server is measured, and how often."""

    def add(measure: Measure) -> Measure:
        measure = click.option(
            "--rounds",
            type=click.IntRange(1, 100),
            default=rounds,
            show_default=True,
            help="How often both servers are measured, in turn.",
        )(measure)
        return click.option(
            "--seconds",
            type=click.FloatRange(0.2, 600),
            default=5.0,
            show_default=True,
            help="Length of one measurement.",
        )(measure)

    return add


def clause_options(measure: Measure) -> Measure:
    """Add how many boolean subscriptions and objects there are."""
    for option in (
        click.option(
            "--history",
            type=COUNT,
            default=20_000,
            show_default=True,
            help="Objects from which indexes learn beforehand.",
        ),
        click.option(
            "--objects",
            type=COUNT,
            default=10_000,
            show_default=True,
            help="New objects to be matched.",
        ),
        click.option("--subscriptions", type=COUNT, default=100_000, show_default=True),
    ):
        measure = option(measure)
    return measure


variant_option = click.option(
    "--variant", "variants", multiple=True, help="Only these systems; repeat for more."
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


def _finish(
    name: str, options: dict[str, Any], rows: list[Row], json_path: Path | None, plot: Path | None
) -> None:
    """Show rows, write the files asked for, and exit."""
    for line in reports.lines(rows):
        click.echo(line)
    if json_path is not None:
        reports.write(json_path, name, options, rows)
        click.echo(str(json_path))
    if plot is not None:
        from bench import plots  # noqa: PLC0415 - an extra

        plots.PLOTS[name](rows, plot)
        click.echo(str(plot))
    mismatches = sum(row["mismatches"] for row in rows)
    lists = sum(row["lists_audited"] for row in rows)
    grown = [row for row in rows if row.get("is_flat") is False]
    for row in grown:
        click.echo(f"memory rose by {row['rise_mb']} MB, {row['noise_mb']} MB are noise", err=True)
    click.echo(f"audit: {lists} lists, {mismatches} mismatches")
    raise SystemExit(1 if mismatches or grown else 0)
