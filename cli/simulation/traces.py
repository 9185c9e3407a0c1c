"""`nearcast simulate traces`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.failures import reported
from cli.parameter_options import ParameterCommand, given
from cli.progress import bars

if TYPE_CHECKING:
    from simulator.parameters.traces import TraceParameters
    from simulator.traces.trace_run import TraceReport


def _model() -> type[TraceParameters]:
    from simulator.parameters.traces import TraceParameters  # noqa: PLC0415

    return TraceParameters


@click.command(
    cls=ParameterCommand,
    model=_model,
    without=("unit_m", "city_width_m"),
    epilog="Example: nearcast simulate traces taxis.csv.gz --out runs/taxis --map city.osm.pbf",
)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the tables; what is there is replaced.  [default: runs/ and the first file's name]",
)
@click.option("--master", default="local[*]", show_default=True, help="Where Spark runs.")
def traces(files: tuple[Path, ...], out: Path | None, master: str, **parameters: Any) -> None:  # noqa: ANN401
    """Make a simulation from real traces: GPX, CSV or Parquet files.

    Points are cleaned and cut where nothing is heard for a while; what is left becomes positions at a
    fixed period, on the roads of --map if there is one.
    """
    from feeds.java import JavaNotFoundError  # noqa: PLC0415
    from simulator.maps import MapError  # noqa: PLC0415
    from simulator.parameters import ParameterError  # noqa: PLC0415
    from simulator.parameters.traces import TraceParameters  # noqa: PLC0415
    from simulator.traces.errors import TraceError  # noqa: PLC0415
    from simulator.traces.reading import source_name  # noqa: PLC0415
    from simulator.traces.run import simulate_traces  # noqa: PLC0415

    folder = out or Path("runs") / source_name(files[0])
    known = (ParameterError, MapError, TraceError, JavaNotFoundError, OSError)
    with reported(*known), bars() as report:
        found = simulate_traces(
            files, TraceParameters(**given(parameters)), folder, report, master=master
        )
    for line in told(found):
        click.echo(line)
    click.echo(f"{folder}: {found.devices} devices, {found.positions} positions")


def told(report: TraceReport) -> list[str]:
    """Return what became of traces, in lines for people."""
    lines = [f"{report.points} points read"]
    lines += [f"  {count} {text}" for text, count in report.verdicts.items()]
    if report.short:
        lines.append(f"{report.short} traces were too short for two ticks")
    if report.on_roads:
        share = report.on_roads / report.positions
        lines.append(f"{report.on_roads} positions on roads ({share:.1%})")
    rate = report.points / max(report.seconds, 1e-3)
    lines.append(f"{report.seconds:.1f} s, {rate:,.0f} points a second")
    return lines
