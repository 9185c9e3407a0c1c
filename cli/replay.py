"""`nearcast replay`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

from cli.failures import reported
from cli.numbers import FiniteRange
from cli.paths import LocalPath
from cli.progress import bars
from cli.target_options import AskingCommand, Target, access_options, server_option

if TYPE_CHECKING:
    from simulator.replay.options import ReplayOptions
    from simulator.replay.processes import Replayed
    from simulator.replay.replay import Progress
    from simulator.replay.report import ReplayReport

_MISMATCHES_SHOWN = 10

region_option = click.option(
    "--region",
    type=click.Choice(["anchored", "ellipse"]),
    default="anchored",
    show_default=True,
    help="Safe regions: buffers that devices re-rank, or ellipses and location requests as in Lamps.",
)
"""Option of commands that replay."""


@click.command(
    cls=AskingCommand,
    epilog="Example: nearcast replay runs/city --server localhost --report runs/city/replay.html",
)
@click.argument("simulation", type=LocalPath(exists=True, file_okay=False))
@server_option
@access_options
@click.option(
    "--fleets",
    type=click.IntRange(1, 1000),
    default=4,
    show_default=True,
    help="Streams for the devices of each process.",
)
@click.option(
    "--processes",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Processes for the devices.",
)
@click.option(
    "--clock",
    default="virtual",
    show_default=True,
    metavar="virtual|real|N",
    help="Clock: virtual time as fast as possible, virtual time N times as fast as real time, or real "
    "time with a server without --virtual-time.",
)
@click.option(
    "--audit-every",
    type=click.IntRange(min=1),
    default=15,
    show_default=True,
    help="Ticks between two audits; the first and the last tick are always audited.",
)
@click.option(
    "--audit-share",
    type=FiniteRange(0, 1, min_open=True),
    default=1.0,
    show_default=True,
    help="Fraction of the results that an audit compares, different ones each time.",
)
@click.option(
    "--speed-max",
    type=FiniteRange(0, 10_000, min_open=True),
    default=36.0,
    show_default=True,
    help="Highest speed of devices in m/s, by which the fixes that they need are counted.",
)
@region_option
@click.option("--map", "picture", type=LocalPath(), help="Write a map of the run to this PNG file.")
@click.option(
    "--report",
    "page",
    type=LocalPath(),
    help="Write a report of the run to this HTML file: map, charts, figures; and beside it a file of the "
    "same name for `nearcast map`.",
)
@click.option("--json", "json_file", type=LocalPath(), help="Write the figures to this JSON file.")
def replay(  # noqa: PLR0913 - an option each
    simulation: Path,
    fleets: int,
    processes: int,
    clock: str,
    audit_every: int,
    audit_share: float,
    speed_max: float,
    region: str,
    picture: Path | None,
    page: Path | None,
    json_file: Path | None,
    **access: Any,  # noqa: ANN401
) -> None:
    """Drive a server with a SIMULATION folder, and audit its results.

    Start the server with the area that `simulate` wrote to world.json, and with --virtual-time unless
    time is real. Exits with status 1 if a single result differs from that of the oracle.
    """
    from nearcast import NearcastError, RegionMode  # noqa: PLC0415
    from simulator.replay.options import ReplayClock, ReplayError, ReplayOptions  # noqa: PLC0415
    from simulator.simulation import SimulationError, load  # noqa: PLC0415

    target = Target(**access)
    token, tls = target.credentials()
    with reported(ReplayError):
        options = ReplayOptions(
            target.server,
            token,
            fleets,
            audit_every,
            audit_share,
            RegionMode[region.upper()],
            ReplayClock.parse(clock),
            tls,
            target.insecure,
            speed_max_mps=speed_max,
        )
    with reported(SimulationError, NearcastError, OSError):
        if json_file is not None:
            json_file.parent.mkdir(parents=True, exist_ok=True)
        load(simulation)
        asyncio.run(_respond(target))
    report = run_replay(simulation, options, processes, picture, page)
    show(report)
    if json_file is not None:
        with reported(OSError):
            json_file.write_text(report.json())
    sys.exit(1 if report.mismatch_count else 0)


async def _respond(target: Target) -> None:
    """Check that the server responds, before processes and streams find out one after the other."""
    async with target.connect() as client:
        await client.status()


def run_replay(
    folder: Path,
    options: ReplayOptions,
    processes: int,
    picture: Path | None,
    page: Path | None,
    watch: Progress | None = None,
) -> ReplayReport:
    """Replay a folder with progress bars; draw the map and write the page if requested.

    `watch` is called with the progress, too.
    """
    from nearcast import NearcastError  # noqa: PLC0415
    from simulator.replay.options import ReplayError  # noqa: PLC0415
    from simulator.replay.processes import run  # noqa: PLC0415
    from simulator.simulation import SimulationError  # noqa: PLC0415

    with reported(SimulationError, ReplayError, NearcastError, OSError), bars() as progress:
        replayed = run(folder, options, processes, _both(progress, watch))
        if picture is not None:
            progress("picture", 0, 1)
            _draw(folder, replayed, picture)
            progress("picture", 1, 1)
        if page is not None:
            from simulator.recorded_map.writer import SUFFIX, write_recorded_map  # noqa: PLC0415
            from simulator.run_report.page import write_page  # noqa: PLC0415

            progress("page", 0, 1)
            write_page(folder, replayed, page)
            write_recorded_map(folder, page.with_suffix(SUFFIX), replayed.log)
            progress("page", 1, 1)
    return replayed.report


def _both(first: Progress, second: Progress | None) -> Progress:
    def progress(stage: str, done: int, total: int) -> None:
        first(stage, done, total)
        if second is not None:
            second(stage, done, total)

    return progress


def _draw(folder: Path, replayed: Replayed, picture: Path) -> None:
    """Draw the map, with the devices that have the most interesting regions."""
    from simulator.pictures.picture import Highlight, draw_map  # noqa: PLC0415
    from simulator.simulation import load  # noqa: PLC0415

    picture.parent.mkdir(parents=True, exist_ok=True)
    shown = [(one, one.most_telling()) for one in (replayed.track, replayed.range_track)]
    highlights = [
        Highlight(one, track.path(one), track.regions(one), track.ranges(one))
        for track, one in shown
        if one
    ]
    draw_map(load(folder), highlights, picture)


def show(report: ReplayReport) -> None:
    """Print the table, the first mismatches, and the summary line."""
    table = Table(show_header=False, box=None, padding=(0, 2))
    table.add_column(style="bold")
    table.add_column(justify="right")
    for name, value in report.figures().items():
        table.add_row(name.replace("_", " "), f"{value:,}")
    Console().print(table)
    for mismatch in report.mismatches[:_MISMATCHES_SHOWN]:
        click.echo(f"mismatch: {mismatch}")
    click.echo(f"audit: {report.audited} lists, {report.mismatch_count} mismatches")
