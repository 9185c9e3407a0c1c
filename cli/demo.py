"""`nearcast demo`."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from cli.cluster_demo import cluster
from cli.failures import WrongUseError, refused, reported
from cli.gateway_demo import gateway as gateway_process
from cli.gateway_demo import node_program
from cli.numbers import FiniteRange
from cli.options import ModelCommand, given, simulation_parameters
from cli.paths import LocalPath
from cli.progress import bars
from cli.replay import region_option, run_replay, show
from cli.secure_demo import secured
from cli.serve import READY
from cli.simulate import show_texts
from cli.started import started

if TYPE_CHECKING:
    from simulator.replay.report import ReplayReport

AUDITED_MIN = 20_000
"""Smallest number of results that the demo audits at its default size."""

_PARAMETERS = ("map_file", "unit_m", "places_file", "texts_file", "devices", "seconds", "seed")


@click.command(cls=ModelCommand, model=simulation_parameters, only=_PARAMETERS)
@region_option
@click.option(
    "--buffer-extra",
    metavar="INTEGER|auto",
    default="auto",
    show_default=True,
    help="Objects beyond k that a device holds; auto chooses by cost.",
)
@click.option(
    "--ahead",
    type=FiniteRange(0, 1),
    default=0.9,
    show_default=True,
    help="Fraction used of the distance by which an anchor may lie ahead of its device; 0 for none.",
)
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    help="Port of the metrics of the server; none by default.",
)
@click.option(
    "--secure",
    is_flag=True,
    help="Use TLS and signed tokens; the certificate and keys in OUT/credentials are valid for a day.",
)
@click.option(
    "--gateway",
    "with_gateway",
    is_flag=True,
    help="Run the devices in Node.js with the TypeScript SDK, behind a gateway; in a checkout only.",
)
@click.option(
    "--nodes",
    "node_count",
    type=click.IntRange(1, 8),
    default=1,
    show_default=True,
    help="Run a cluster of so many nodes with three servers of its log, and kill a node in the middle.",
)
@click.option(
    "--out",
    type=LocalPath(file_okay=False),
    default=Path("runs/demo"),
    show_default=True,
    help="Folder for the tables, the store and the map.",
)
def demo(  # noqa: PLR0913 - an option each
    region: str,
    buffer_extra: str,
    ahead: float,
    metrics_port: int | None,
    node_count: int,
    out: Path,
    *,
    secure: bool,
    with_gateway: bool,
    **parameters: Any,  # noqa: ANN401
) -> None:
    """Run the whole system: devices drive through a city, publishers post, every result stays exact.

    Simulates a generated city, or with --map a real city or a road network. Starts a separate server on a
    free port, and replays moving and stationary top-k subscriptions and boolean subscriptions together.
    Audits the results against the oracle, writes OUT/replay.html and draws OUT/map.png. Exits with status
    1 if a single result differs.
    """
    from nearcast import RegionMode  # noqa: PLC0415
    from simulator.maps import MapError  # noqa: PLC0415
    from simulator.parameters import ParameterError, SimulationParameters  # noqa: PLC0415
    from simulator.replay.options import ReplayOptions  # noqa: PLC0415
    from simulator.simulation import simulate  # noqa: PLC0415

    began = time.monotonic()
    if with_gateway and (secure or region != "anchored"):
        raise WrongUseError("--gateway is for a server without tokens and for --region anchored")
    if node_count > 1 and (secure or with_gateway or metrics_port is not None):
        raise WrongUseError("--nodes is without --secure, --gateway and --metrics-port")
    program = node_program() if with_gateway else ()
    with refused(ParameterError):
        chosen = SimulationParameters(**given(parameters))
    with reported(MapError, OSError), bars() as progress:
        simulation = simulate(chosen, out, progress)
    show_texts(simulation.world.texts)
    # Often enough for `AUDITED_MIN` at the default size, and at least at the end of a smaller run.
    audit_every = max(1, chosen.devices * chosen.seconds // AUDITED_MIN)
    flags: tuple[str, ...] = (f"--buffer-extra={buffer_extra}", f"--ahead={ahead}")
    if metrics_port is not None:
        flags += (f"--metrics-port={metrics_port}",)
    with reported(OSError):
        credentials = secured(out / "credentials") if secure else None
    mode = RegionMode[region.upper()]
    if node_count > 1:
        with cluster(out, simulation.world.area, node_count, flags) as nodes:
            options = ReplayOptions(nodes.target, audit_every=audit_every, region=mode)
            report = run_replay(out, options, 1, out / "map.png", out / "replay.html", nodes.watch)
        _finish(report, out, began)
    with server(out, simulation.world.area, flags + (credentials.flags if credentials else ())) as target:
        if credentials is None:
            click.echo(f"watch it: nearcast top --server {target}")
        token, tls = (credentials.token, credentials.tls) if credentials else (None, None)
        options = ReplayOptions(target, token, audit_every=audit_every, region=mode, tls=tls)
        with gateway_process(target) if program else contextlib.nullcontext("") as address:
            options = replace(options, program=(*program, address) if program else ())
            report = run_replay(out, options, 1, out / "map.png", out / "replay.html")
    _finish(report, out, began)


def _finish(report: ReplayReport, out: Path, began: float) -> NoReturn:
    """Write and show the report; exit."""
    (out / "replay.json").write_text(report.json())
    written = "   ".join(str(out / name) for name in ("replay.html", "map.png", "replay.json"))
    click.echo(f"{written}   {time.monotonic() - began:.0f} s in all")
    click.echo(f"watch it again: nearcast map {out}")
    show(report)
    sys.exit(1 if report.mismatch_count else 0)


@contextlib.contextmanager
def server(
    out: Path, area: tuple[float, float, float, float], flags: tuple[str, ...] = ()
) -> Iterator[str]:
    """Run a server process with a new store on a free port; yield its address."""
    store = out / "store.db"
    for path in out.glob("store.db*"):
        path.unlink()
    bounds = ",".join(str(bound) for bound in area)
    flags = (f"--area={bounds}", "--port=0", f"--store={store}", "--create", "--virtual-time", *flags)
    with started("serve", READY, *flags, "--log-level=WARNING") as target:
        yield target
