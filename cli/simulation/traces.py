"""`nearcast simulate traces`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.failures import refused, reported
from cli.options import ModelCommand, given
from cli.paths import FOLDER, LocalPath
from cli.progress import bars
from cli.spark_options import SparkChoice, spark_options

if TYPE_CHECKING:
    from simulator.parameters.traces import TraceParameters
    from simulator.traces.trace_run import TraceReport


_KEPT = "kept"
_KEPT_SHARE_MIN = 0.5
"""If a smaller fraction of the points is kept, the cause is not the receivers."""


def _model() -> type[TraceParameters]:
    from simulator.parameters.traces import TraceParameters  # noqa: PLC0415

    return TraceParameters


@click.command(
    cls=ModelCommand,
    model=_model,
    without=("unit_m", "city_width_m"),
    epilog="Example: nearcast simulate traces taxis.csv.gz --out runs/taxis --map city.osm.pbf",
)
@click.argument("files", nargs=-1, required=True, type=LocalPath())
@click.option(
    "--out",
    type=FOLDER,
    help="Folder for the tables, a path or a URI of a file system that Spark has; existing tables are "
    "replaced.  [default: runs/ and the first file's name]",
)
@spark_options("local[*]")
def traces(
    files: tuple[Path, ...],
    out: Path | str | None,
    spark: SparkChoice,
    **parameters: Any,  # noqa: ANN401
) -> None:
    """Create a simulation from real traces: GPX, CSV or Parquet files.

    The command cleans the points, splits traces at gaps in time, and converts the rest to positions at a
    fixed period, on the roads of --map if there is one.
    """
    from pyspark.errors import PySparkException  # noqa: PLC0415

    from feeds.cluster import ClusterError  # noqa: PLC0415
    from feeds.java import JavaNotFoundError  # noqa: PLC0415
    from simulator.maps import MapError  # noqa: PLC0415
    from simulator.parameters import ParameterError  # noqa: PLC0415
    from simulator.parameters.traces import TraceParameters  # noqa: PLC0415
    from simulator.session import SparkStart  # noqa: PLC0415
    from simulator.traces.errors import TraceError  # noqa: PLC0415
    from simulator.traces.reading import check_files, source_name, unused_columns  # noqa: PLC0415
    from simulator.traces.run import simulate_traces  # noqa: PLC0415

    folder = out or Path("runs") / source_name(files[0])
    with refused(ParameterError):
        chosen = TraceParameters(**given(parameters))
    expected = TraceError, MapError, JavaNotFoundError, PySparkException, ClusterError, OSError
    with reported(*expected):
        check_files(files)
        for line in unused_columns(files, chosen):
            click.echo(f"warning: {line}", err=True)
        with bars() as report:
            found = simulate_traces(files, chosen, folder, report, spark=SparkStart(*spark))
    for line in report_lines(found):
        click.echo(line)
    if (warning := dropped(found)) is not None:
        click.echo(f"warning: {warning}", err=True)
    click.echo(f"{folder}: {found.devices} devices, {found.positions} positions")


def dropped(report: TraceReport) -> str | None:
    """Return a sentence if most points were dropped: the likely cause is a wrong choice of columns."""
    kept = report.verdicts.get(_KEPT, 0)
    if kept >= _KEPT_SHARE_MIN * report.points:
        return None
    reasons = {text: count for text, count in report.verdicts.items() if text != _KEPT}
    most = max(reasons, key=reasons.__getitem__)
    return (
        f"only {kept} of {report.points} points were kept; {reasons[most]} were dropped as {most!r}. "
        "Without a column for the vehicle, all points are treated as those of one vehicle: see --columns"
    )


def report_lines(report: TraceReport) -> list[str]:
    """Return lines about the outcome for the traces."""
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
