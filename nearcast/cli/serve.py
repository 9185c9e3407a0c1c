"""`nearcast serve`."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nearcast.cli.failures import reported
from nearcast.cli.progress import kernel_bar

if TYPE_CHECKING:
    from server.main import Server

READY = "serving on "
"""How the line on standard output begins that says that the port is open."""


@click.command(epilog="Example: nearcast serve --area 14.18,35.80,14.58,36.09")
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="TOML file with any of the settings below (dashes as underscores).",
)
@click.option("--area", metavar="LON,LAT,LON,LAT", help="Service area: west, south, east, north.")
@click.option("--host", help="Address to listen on.  [default: 127.0.0.1]")
@click.option("--port", type=int, help="Port; 0 chooses a free one.  [default: 7433]")
@click.option("--store", help="Database file, ':memory:' to forget everything.  [default: nearcast.db]")
@click.option(
    "--buffer-extra",
    metavar="INTEGER|auto",
    help="Objects beyond k that a device is given: more of them, fewer reports; auto chooses for each "
    "subscription, at each anchor, what costs least.  [default: auto]",
)
@click.option("--report-cost", type=float, help="Price of a report and its answer.  [default: 2]")
@click.option("--object-cost", type=float, help="Price of an object sent.  [default: 1]")
@click.option(
    "--held-cost", type=float, help="Price of a second of holding an object.  [default: 0.0002]"
)
@click.option("--buffer-extra-max", type=int, help="Most that auto chooses.  [default: 32]")
@click.option(
    "--ahead",
    type=float,
    help="Share used of the way that an anchor may lie ahead of a moving device; 0 for none.  "
    "[default: 0.9]",
)
@click.option(
    "--assumed-speed-mps", type=float, help="Of devices not known to move or stand.  [default: 10]"
)
@click.option(
    "--margin-buffer-max",
    type=int,
    help="Objects beyond k a device may be given to cover its position's margin.  [default: 200]",
)
@click.option("--margin-m-max", type=float, help="Largest margin of a position, metres.  [default: 5000]")
@click.option(
    "--lease-ms",
    type=int,
    help="How long a device may say nothing; 0 for ever.  [default: 600000, virtual time: 0]",
)
@click.option(
    "--subscription-retention-days",
    type=float,
    help="How long subscriptions are kept of a device that is not heard of; 0 for ever.  "
    "[default: 90, virtual time: 0]",
)
@click.option(
    "--keepalive-ms", type=int, help="Between signs of life of a quiet connection.  [default: 30000]"
)
@click.option(
    "--porters", type=int, help="Processes that hold connections.  [default: 0, the server's own]"
)
@click.option("--late-ms", type=int, help="Deltas that wait longer are counted as late.  [default: 1000]")
@click.option(
    "--subscription-index",
    help="Who is affected by a new object: naive, sq-tree, sq-plus-tree.  [default: sq-plus-tree]",
)
@click.option("--object-index", help="What is best here: naive, iqf, iq-tree.  [default: iqf]")
@click.option("--virtual-time", is_flag=True, default=None, help="Let AdvanceClock drive the time.")
@click.option(
    "--token",
    "tokens",
    multiple=True,
    help="Token a caller may present; repeat for more. None lets everybody in.",
)
@click.option("--tls-certificate", type=click.Path(exists=True), help="Certificate chain, PEM.")
@click.option("--tls-key", type=click.Path(exists=True), help="Private key, PEM.")
@click.option(
    "--log-level", type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"]), help="[default: INFO]"
)
def serve(config: Path | None, **flags: Any) -> None:  # noqa: ANN401
    """Run a server until SIGTERM or Ctrl-C.

    Flags win over environment variables (NEARCAST_PORT and so on), those over the configuration file.
    What is acknowledged is in the store first; after a crash, start again with the same store.
    """
    # gRPC's core logs what is reported below as an error anyway.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    with reported():
        from server.settings import load_settings  # noqa: PLC0415

        given = {name: value for name, value in flags.items() if value not in (None, ())}
        settings = load_settings(given, config)
    logging.basicConfig(
        level=settings.log_level,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        stream=sys.stderr,
    )
    from server.errors import StoreError  # noqa: PLC0415
    from server.loops import loop_factory  # noqa: PLC0415
    from server.main import serve as run  # noqa: PLC0415
    from server.transport.listener import PortError  # noqa: PLC0415
    from server.transport.porters import PorterError  # noqa: PLC0415

    failures = (StoreError, PortError, PorterError, OSError)
    with (
        reported(*failures),
        kernel_bar() as on_compiling,
        asyncio.Runner(loop_factory=loop_factory()) as runner,
    ):
        runner.run(run(settings, _announce, on_compiling))


def _announce(server: Server) -> None:
    click.echo(f"{READY}{server.settings.host}:{server.port}")
