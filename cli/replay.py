"""`nearcast replay`."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table

from cli.failures import reported
from cli.progress import bars

if TYPE_CHECKING:
    from simulator.replay.replay import ReplayOptions
    from simulator.replay.report import ReplayReport

_MISMATCHES_SHOWN = 10

region_option = click.option(
    "--region",
    type=click.Choice(["anchored", "ellipse"]),
    default="anchored",
    show_default=True,
    help="Safe regions: buffers that devices re-rank, or ellipses and questions as in Lamps.",
)
"""For commands that replay."""


@click.command(
    epilog="Example: nearcast replay runs/city --target localhost:7433 --map runs/city/map.png"
)
@click.argument("simulation", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--target", default="127.0.0.1:7433", show_default=True, help="Server's address.")
@click.option("--token", help="Token the server asks for.")
@click.option(
    "--fleets", type=int, default=4, show_default=True, help="Streams to spread the devices over."
)
@click.option("--audit-every", type=int, default=15, show_default=True, help="Ticks between two audits.")
@region_option
@click.option("--map", "picture", type=click.Path(path_type=Path), help="Draw the run to this PNG.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write figures here.")
def replay(
    simulation: Path,
    target: str,
    token: str | None,
    fleets: int,
    audit_every: int,
    region: str,
    picture: Path | None,
    json_file: Path | None,
) -> None:
    """Drive a server with a SIMULATION folder, in virtual time, and audit every list.

    The server must have been started with --virtual-time and with the area that `simulate` wrote to
    world.json. Exits with status 1 when a single list differs from the oracle's.
    """
    from nearcast import RegionMode  # noqa: PLC0415
    from simulator.replay.replay import ReplayOptions  # noqa: PLC0415

    mode = RegionMode[region.upper()]
    options = ReplayOptions(target, token, max(1, fleets), max(1, audit_every), mode)
    report = run_replay(simulation, options, picture)
    if json_file is not None:
        json_file.write_text(json.dumps(figures(report), indent=2) + "\n")
    show(report)
    sys.exit(1 if report.mismatches else 0)


def run_replay(folder: Path, options: ReplayOptions, picture: Path | None) -> ReplayReport:
    """Replay a folder with progress bars; draw the map if asked."""
    from nearcast import NearcastError  # noqa: PLC0415
    from simulator.replay.replay import Replay, ReplayError  # noqa: PLC0415
    from simulator.simulation import SimulationError, load  # noqa: PLC0415

    with reported(SimulationError, ReplayError, NearcastError), bars() as progress:
        simulation = load(folder)
        run = Replay(simulation, options, progress)
        report = asyncio.run(run.run())
        if picture is not None:
            from simulator.pictures.picture import Highlight, draw_map  # noqa: PLC0415

            progress("picture", 0, 1)
            picture.parent.mkdir(parents=True, exist_ok=True)
            tracks = (run.track, run.range_track)
            shown = [(track, track.most_telling()) for track in tracks]
            highlights = [
                Highlight(one, track.path(one), track.regions(one), track.ranges(one))
                for track, one in shown
                if one
            ]
            draw_map(simulation, highlights, picture)
            progress("picture", 1, 1)
    return report


def figures(report: ReplayReport) -> dict[str, float]:
    """Return what a run measured, by name."""
    counters = report.counters
    return {
        "devices": report.devices,
        "subscriptions": report.subscriptions,
        "boolean_subscriptions": report.boolean_subscriptions,
        "standing_subscriptions": report.standing_subscriptions,
        "simulated_s": report.simulated_s,
        "elapsed_s": round(report.elapsed_s, 1),
        "objects_published": report.objects_published,
        "objects_retracted": report.objects_retracted,
        "moves": counters.moves,
        "reports": counters.reports,
        "silent_moves_percent": round(100.0 * report.silent_share, 2),
        "reports_per_device_hour": round(report.reports_per_device_hour, 1),
        "devices_of_fixed_ranges": report.fixed_devices,
        "reports_of_fixed_ranges": report.reports_of_fixed,
        "reports_of_standing": report.reports_of_standing,
        "objects_held_mean": round(report.objects_held_mean, 1),
        "anchors_ahead_percent": round(100.0 * report.anchors_ahead_share, 1),
        "deltas": counters.deltas,
        "objects_sent": counters.objects,
        "bytes_from_devices": counters.bytes_sent,
        "bytes_to_devices": counters.bytes_received,
        "publish_to_device_p50_ms": round(report.latency_ms(0.5), 2),
        "publish_to_device_p99_ms": round(report.latency_ms(0.99), 2),
        "audited_lists": report.audited,
        "audited_boolean_lists": report.audited_boolean,
        "audited_standing_lists": report.audited_standing,
        "audited_lists_by_tfidf": report.audited_weighed,
        "audited_lists_with_windows": report.audited_windows,
        "mismatches": len(report.mismatches),
    }


def show(report: ReplayReport) -> None:
    """Print the table, the first mismatches, and the line that counts."""
    table = Table(show_header=False, box=None, padding=(0, 2))
    table.add_column(style="bold")
    table.add_column(justify="right")
    for name, value in figures(report).items():
        table.add_row(name.replace("_", " "), f"{value:,}")
    Console().print(table)
    for mismatch in report.mismatches[:_MISMATCHES_SHOWN]:
        click.echo(f"mismatch: {mismatch}")
    click.echo(f"audit: {report.audited} lists, {len(report.mismatches)} mismatches")
