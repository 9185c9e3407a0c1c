"""What commands on the log of a cluster have in common: its settings, a connection, errors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

import click

from cli.failures import WrongUseError, reported
from cli.options import given, log_settings
from cli.settings_errors import read_settings, require_no_password
from safe_region.extras import how_to_install

if TYPE_CHECKING:
    from cluster.jetstream import JetStreamLog
    from server.log_settings import LogSettings

PROMISES = ("log_monitor", "log_replicas", "log_unsafe")
"""Settings of what the log has to promise, which a command may not need."""


def settings_of(flags: dict[str, Any]) -> LogSettings:
    """Return the settings of the log, from flags and the environment."""
    chosen = given(flags)
    require_no_password(chosen)
    settings: LogSettings = read_settings(log_settings(), chosen, None)
    if not settings.log:
        raise WrongUseError("--log is missing: give the servers of the log, or set NEARCAST_LOG")
    return settings


async def connected(settings: LogSettings) -> JetStreamLog:
    """Connect to the log."""
    from cluster.jetstream import connected_log  # noqa: PLC0415
    from server.assembly.log_options import log_options  # noqa: PLC0415

    return await connected_log(log_options(settings))


def run(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:  # noqa: ANN401
    """Run a coroutine, and report errors in a line."""
    try:
        from cluster.jetstream import JetStreamLog  # noqa: F401, PLC0415
        from cluster.log import LogError  # noqa: PLC0415
        from server.errors import StoreError  # noqa: PLC0415
        from server.replication.joining import CopyError  # noqa: PLC0415
    except ImportError as error:
        raise click.ClickException(f"this needs {error.name}: {how_to_install('cluster')}") from None
    with reported(LogError, StoreError, CopyError, OSError):
        return asyncio.run(work())
