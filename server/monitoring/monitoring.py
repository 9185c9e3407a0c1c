"""Monitoring as a whole: opened before the rest of the server, if requested, and closed last."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from identity.quotas import Account
from safe_region.extras import how_to_install
from server.errors import TracingError
from server.monitoring.readings import Readings
from server.object_traces import ObjectTraces
from server.runtime.command_loop import CommandLoop
from server.settings import ServerSettings

if TYPE_CHECKING:
    from identity.metrics_port import MetricsPort
    from server.monitoring.tracing import Tracing


class Monitoring:
    """A metrics port and the export of traces, if requested. Libraries are imported only then.

    Parameters
    ----------
    settings
        The settings of the server.

    Raises
    ------
    MetricsPortError
        If it cannot listen on the address.
    TracingError
        If the library for traces is missing.
    """

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._tracing = _opened_tracing(settings)
        self._metrics = _opened_port(settings)

    @property
    def metrics_port(self) -> int:
        """The port for Prometheus; 0 if there is none."""
        return 0 if self._metrics is None else self._metrics.port

    def object_traces(self) -> ObjectTraces | None:
        """Return the traces of objects, if any are to be traced."""
        if self._tracing is None:
            return None
        return ObjectTraces(self._settings.trace_share, self._tracing.export)

    def begin(self, command_loop: CommandLoop, accounts: Callable[[], list[Account]]) -> Readings:
        """Start to monitor a server, in a running event loop; return its readings.

        Parameters
        ----------
        command_loop
            The command loop of the server.
        accounts
            Returns the accounts of callers.
        """
        readings = Readings(command_loop, self._settings.store, accounts)
        if self._metrics is not None:
            from server.monitoring.scrapes import Scrapes  # noqa: PLC0415

            self._metrics.serve(Scrapes(readings.read, asyncio.get_running_loop()).collect)
        return readings

    def close(self) -> None:
        """Close the port, and send the last traces. Takes some seconds at most."""
        if self._metrics is not None:
            self._metrics.close()
        if self._tracing is not None:
            self._tracing.close()


def _opened_port(settings: ServerSettings) -> MetricsPort | None:
    if settings.metrics_port is None:
        return None
    from identity.metrics_port import MetricsPort  # noqa: PLC0415

    return MetricsPort(settings.metrics_host, settings.metrics_port)


def _opened_tracing(settings: ServerSettings) -> Tracing | None:
    if not settings.trace_share:
        return None
    try:
        from server.monitoring.tracing import Tracing  # noqa: PLC0415
    except ImportError as error:
        raise TracingError(f"traces need {error.name}: {how_to_install('tracing')}") from error
    return Tracing(settings.trace_endpoint)
