"""`nearcast serve`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.announcing import announce, announce_metrics
from cli.options import ModelCommand, given, server_settings
from cli.progress import kernel_bar
from cli.settings_errors import labelled, read_settings, require_no_password
from cli.simulated_area import area_text
from cli.unknown_variables import warn_of_unknown_variables

if TYPE_CHECKING:
    from server.main import Server

READY = "serving on "
"""Start of the line on standard output that reports the open port."""


@click.command(
    cls=ModelCommand,
    model=server_settings,
    epilog="Example: nearcast serve --area 14.18,35.80,14.58,36.09 --create",
)
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="TOML file with any of the settings below, with underscores for dashes.",
)
def serve(config: Path | None, **flags: Any) -> None:  # noqa: ANN401
    """Run a server until SIGTERM or Ctrl-C.

    Flags take precedence over environment variables (NEARCAST_PORT and so on), and these over the
    configuration file. The server writes a change to the store before it acknowledges it; after a crash,
    start it again with the same store. With --processes, nodes of a cluster run on this machine, over one
    log. The area may also be the folder of a simulation, which has one.
    """
    # gRPC's core would log errors that are reported below anyway.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from server.monitoring.logs import begin_logging  # noqa: PLC0415

    chosen = given(flags)
    require_no_password(chosen)
    if "area" in chosen:
        chosen["area"] = area_text(chosen["area"])
    settings = read_settings(server_settings(), chosen, config)
    begin_logging(settings.log_level, settings.log_format)
    warn_of_unknown_variables()
    if settings.processes > 1:
        from cli.processes.supervisor import serve_processes  # noqa: PLC0415

        return serve_processes(settings, chosen, config)
    from cluster.log import LogError  # noqa: PLC0415
    from identity.errors import MetricsPortError  # noqa: PLC0415
    from identity.watched_file import FileError  # noqa: PLC0415
    from server.errors import BridgeError, StoreError, TracingError  # noqa: PLC0415
    from server.main import serve as run  # noqa: PLC0415
    from server.transport.listener import PortError  # noqa: PLC0415

    of_parts = (StoreError, LogError, BridgeError, TracingError)
    expected = (*of_parts, PortError, MetricsPortError, FileError, OSError)
    try:
        with kernel_bar() as on_compiling:
            run(settings, _announce, on_compiling)
    except expected as error:
        raise click.ClickException(labelled(server_settings(), str(error), chosen, config)) from None


def _announce(server: Server) -> None:
    announce(READY, server.settings.host, server.port)
    if server.metrics_port:
        announce_metrics(server.settings.metrics_host, server.metrics_port)
