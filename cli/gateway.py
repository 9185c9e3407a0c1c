"""`nearcast gateway`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.announcing import announce, announce_metrics
from cli.options import ModelCommand, gateway_settings, given
from cli.settings_errors import labelled, read_settings
from cli.unknown_variables import warn_of_unknown_variables

if TYPE_CHECKING:
    from gateway.main import Gateway

READY = "gateway on "
"""Start of the line on standard output that reports the open port."""


@click.command(
    cls=ModelCommand,
    model=gateway_settings,
    epilog="Example: nearcast gateway --server 127.0.0.1:7433 --origin http://localhost:8000",
)
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="TOML file with any of the settings below, with underscores for dashes.",
)
def gateway(config: Path | None, **flags: Any) -> None:  # noqa: ANN401
    """Run a gateway until SIGTERM or Ctrl-C: WebSockets and HTTP in front of a server.

    Flags take precedence over environment variables (NEARCAST_GATEWAY_PORT and so on), and these over the
    configuration file. A gateway keeps nothing that a restart loses. Any number of them can serve the
    same server.
    """
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # errors of connections are reported below
    from server.monitoring.logs import begin_logging  # noqa: PLC0415

    chosen = given(flags)
    settings = read_settings(gateway_settings(), chosen, config)
    begin_logging(settings.log_level, settings.log_format)
    warn_of_unknown_variables()
    from gateway.main import PortError  # noqa: PLC0415
    from gateway.main import serve as run  # noqa: PLC0415
    from identity.watched_file import FileError  # noqa: PLC0415

    try:
        run(settings, _announce)
    except (PortError, FileError) as error:
        raise click.ClickException(labelled(gateway_settings(), str(error), chosen, config)) from None


def _announce(started: Gateway) -> None:
    announce(READY, started.settings.host, started.port)
    if started.metrics_port:
        announce_metrics(started.settings.metrics_host, started.metrics_port)
