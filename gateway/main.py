"""The composition root: settings become a listening gateway."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Callable

import uvloop
from aiohttp import WSCloseCode, web

from gateway.acceptor import TlsAcceptor
from gateway.application import Readiness, application, own_hosts
from gateway.attachment import Attachment
from gateway.connections import Connection, Connections
from gateway.counters import Counters, GatewayMetrics
from gateway.cross_origin import own_origins
from gateway.fleets import Fleets
from gateway.http_api import HttpApi
from gateway.map_pages import map_routes
from gateway.port_tls import PortTls
from gateway.settings import GatewaySettings
from gateway.upstream import Upstream
from gateway.watching import Watching
from identity.errors import MetricsPortError
from identity.metrics_port import MetricsPort
from identity.principal import Role
from identity.quotas import Accounts, Quota
from identity.settings import is_loopback
from identity.setup import identity_of, quota_of_device
from nearcast.address import joined_address
from nearcast.errors import Reason, RefusedError

_log = logging.getLogger(__name__)

_BACKLOG = 4096
"""Connections that wait to be accepted: devices come back together."""

_IDLE_S = 60.0
"""How long a connection without a request may stay open, after its first one."""

_LOOK_S = 1.0
"""Interval between two checks of the server's health and of the certificates."""

_HALF_CLOSE_S = 4.0
"""How long a stopping gateway waits for its clients to close."""

_SHUTDOWN_S = 5.0
"""How long it waits for requests in progress."""

_GOODBYE_S = 2.0
"""How long it waits for the server to end its streams."""


class PortError(Exception):
    """The gateway cannot listen on the address."""


class Gateway:
    """A running gateway.

    Parameters
    ----------
    settings
        The settings of the gateway.
    """

    def __init__(self, settings: GatewaySettings) -> None:
        self.settings = settings
        self.port = 0
        self.metrics_port = 0
        """The port for Prometheus, if there is one."""
        self._server: asyncio.Server | None = None
        self._acceptor: TlsAcceptor | None = None
        self.counters = Counters()

    async def start(self) -> None:
        """Listen. The readiness follows when the server serves.

        Raises
        ------
        FileError
            If keys, certificates or tokens cannot be used.
        PortError
            If the gateway cannot listen on an address.
        """
        settings = self.settings
        quotas = {
            Role.DEVICE: quota_of_device(settings.device_rate, 1.0),
            **dict.fromkeys((Role.GATEWAY, Role.PUBLISHER, Role.OPERATOR), Quota()),
        }
        identity = identity_of(settings, quotas, Accounts())
        self._tls = None if identity.certificates is None else PortTls(identity.certificates)
        authenticator = identity.authenticator
        self._upstream = Upstream(settings, authenticator)
        self._fleets = Fleets(self._upstream.fleets, self._upstream.is_serving, self.counters)
        self._origins = set(settings.origins)
        self._attachment = Attachment(
            authenticator,
            self._fleets,
            self.counters,
            self._origins,
            settings.keepalive_ms / 1000.0,
        )
        self._api = HttpApi(self._upstream.calls, authenticator, self.counters, self._origins)
        self.readiness = Readiness()
        self._watching = Watching(
            self._upstream.calls,
            authenticator,
            self.counters,
            self._origins,
            settings.keepalive_ms / 1000.0,
        )
        app = application(
            self._attachment,
            self._watching,
            self._api,
            self.readiness,
            self.counters,
            self._origins,
            map_routes(settings.map_file, authenticator),
        )
        if authenticator.is_open and is_loopback(settings.host):
            app.middlewares.append(own_hosts(settings.origins))
        self._runner = web.AppRunner(app, handle_signals=False, shutdown_timeout=_SHUTDOWN_S)
        await self._runner.setup()
        try:
            await self._listen()
            self._metrics = self._open_metrics()
        except BaseException:
            await self._close()
            raise
        self._looking = asyncio.create_task(self._look())
        address = joined_address(settings.host, self.port)
        _log.info("gateway on %s, for the server %s", address, settings.server)

    async def _listen(self) -> None:
        settings, loop = self.settings, asyncio.get_running_loop()
        connections = Connections(
            self.counters, settings.connections_max, settings.address_connections_max
        )

        def connection(address: str | None = None) -> Connection:
            return Connection(
                connections,
                self._runner.server,
                address=address,
                loop=loop,
                access_log=None,
                keepalive_timeout=_IDLE_S,
                auto_decompress=False,
            )

        try:
            self._server = await loop.create_server(
                connection,
                settings.host,
                settings.port,
                backlog=_BACKLOG,
                start_serving=self._tls is None,
            )
            sockets = self._server.sockets
            if self._tls is not None:
                self._acceptor = TlsAcceptor(
                    sockets, _BACKLOG, connections, connection, self._tls.context
                )
        except OSError as error:
            raise PortError(
                f"port is {settings.port}, must be free on host {settings.host}: {error.strerror}"
            ) from error
        self.port = sockets[0].getsockname()[1]
        self._origins |= own_origins(settings.host, self.port, has_tls=self._tls is not None)

    def _open_metrics(self) -> MetricsPort | None:
        settings = self.settings
        if settings.metrics_port is None:
            return None
        try:
            metrics = MetricsPort(settings.metrics_host, settings.metrics_port)
        except MetricsPortError as error:
            raise PortError(str(error)) from error
        self.metrics_port = metrics.port
        metrics.serve(GatewayMetrics(self.counters).collector)
        return metrics

    async def _look(self) -> None:
        """Check the health of the server, and whether certificates have changed, every second."""
        was_serving = True
        while True:
            try:
                is_serving = await self._upstream.is_serving()
                if is_serving != was_serving:
                    self._log_server(is_serving=is_serving)
                self.readiness.is_server_serving = was_serving = is_serving
                if self._tls is not None:
                    self._tls.look()
            except Exception:  # noqa: BLE001 - the next check may work
                _log.exception("a check of the server and of the certificates has failed")
            await asyncio.sleep(_LOOK_S)

    def _log_server(self, *, is_serving: bool) -> None:
        """Log that the server can be reached and serves, or no longer does."""
        server = self.settings.server
        if is_serving:
            _log.info("the server %s serves", server)
        else:
            mistake = self._upstream.mistake
            text = "the server %s cannot be reached or does not serve; devices wait%s"
            _log.warning(text, server, f"; {mistake}" if mistake else "")

    async def stop(self) -> None:
        """Refuse connections, send every device away, wait for them to close, detach the rest."""
        self.readiness.is_draining = True
        self._close_port()
        self._watching.drain()
        error = RefusedError(Reason.DRAINING, "gateway", "stopping", "running; connect again")
        conversations = list(self._attachment.conversations)
        for device in conversations:
            await device.announce(error)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._attachment.idle(), _HALF_CLOSE_S)
        for device in list(self._attachment.conversations):
            device.end(WSCloseCode.GOING_AWAY)
        self._looking.cancel()
        await self._close()
        if self._metrics is not None:
            await asyncio.to_thread(self._metrics.close)
        _log.info("stopped")

    def _close_port(self) -> None:
        """Accept no connection any more."""
        for one in (self._server, self._acceptor):
            if one is not None:
                one.close()

    async def _close(self) -> None:
        """Close the port and all connections."""
        self._close_port()
        await self._runner.cleanup()
        self._api.close()
        await self._fleets.close(_GOODBYE_S)
        await self._upstream.close()

    async def run_until_signalled(self, on_ready: Callable[[Gateway], None]) -> None:
        """Wait for SIGTERM or SIGINT; then stop. `on_ready` is called when the handlers are in place."""
        signalled = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, signalled.set)
        on_ready(self)
        await signalled.wait()
        await self.stop()


def serve(settings: GatewaySettings, on_ready: Callable[[Gateway], None]) -> None:
    """Run a gateway until signalled. `on_ready` is called once the port is open."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(settings, on_ready))


async def _serve(settings: GatewaySettings, on_ready: Callable[[Gateway], None]) -> None:
    gateway = Gateway(settings)
    await gateway.start()
    await gateway.run_until_signalled(on_ready)
