"""The metrics port: what there is, for Prometheus, over HTTP, on a thread of its own.

One scrape at a time. What is told is read on the event loop, which takes it a millisecond or two, and put
into text on the thread. A caller that sends or reads nothing for a while is left: it keeps no thread and
no connection. Whoever may reach the port may read it, so it is on the loopback interface unless told
otherwise.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, ProcessCollector, make_wsgi_app
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from server.errors import MetricsPortError
from server.monitoring.catalogue import PREFIX
from server.monitoring.families import families_of
from server.monitoring.readings import Reading

_log = logging.getLogger(__name__)

_ANSWER_S = 2.0
"""How long the event loop may take to be read; then a scrape says only that it has not answered."""

_CALLER_S = 5.0
"""How long a caller may keep still."""

_STOP_S = 1.0
"""How long a scrape under way may go on when the port is closed."""


class _Server(WSGIServer):
    allow_reuse_address = True
    request_queue_size = 16

    def __init__(self, host: str, port: int) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        """Listen, without asking a name server what this machine is called."""
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])
        self.setup_environ()

    def handle_error(self, request: object, client_address: object) -> None:
        """Note that a caller has gone in the middle of something; that is its own affair."""
        del request
        _log.debug("a scrape from %s was broken off", client_address)


class _Handler(WSGIRequestHandler):
    timeout = _CALLER_S

    def log_message(self, *_arguments: object) -> None:
        """Say nothing: scrapes are no news, and what is asked for may hold anything."""


class _Readings(Collector):
    """Asks the event loop for a reading each time it is scraped."""

    def __init__(self, read: Callable[[], Reading], loop: asyncio.AbstractEventLoop) -> None:
        self._read = read
        self._loop = loop

    def collect(self) -> Iterator[Family]:
        """Yield what there is."""
        began_s = time.perf_counter()

        async def read() -> tuple[Reading, float]:
            return self._read(), time.perf_counter() - began_s

        reading, delay_s = None, _ANSWER_S
        coroutine = read()
        try:
            asked = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
            reading, delay_s = asked.result(_ANSWER_S)
        except TimeoutError:
            asked.cancel()
            _log.warning("the event loop has not answered a scrape for %g s", _ANSWER_S)
        except RuntimeError:  # it is closed
            coroutine.close()
        yield GaugeMetricFamily(
            f"{PREFIX}event_loop_delay_seconds", "How long this scrape waited for the loop.", delay_s
        )
        if reading is not None:
            yield from families_of(reading)


class MetricsPort:
    """A port that listens. `serve` begins to answer.

    Parameters
    ----------
    host, port
        Where; 0 chooses a port.

    Raises
    ------
    MetricsPortError
        If the address cannot be listened on.
    """

    def __init__(self, host: str, port: int) -> None:
        try:
            self._server = _Server(host, port)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise MetricsPortError(
                    f"metrics_port is {port}, must be free on metrics_host {host}: {error.strerror}"
                ) from error
            raise MetricsPortError(
                f"metrics_host is {host!r}, must be an address of this machine on which metrics_port "
                f"{port} can be listened on: {error.strerror}"
            ) from error
        self.port: int = self._server.server_port
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def serve(self, read: Callable[[], Reading], loop: asyncio.AbstractEventLoop) -> None:
        """Answer scrapes with what is read on a loop."""
        registry = CollectorRegistry()
        registry.register(_Readings(read, loop))
        ProcessCollector(registry=registry)
        self._server.set_app(make_wsgi_app(registry))
        self._thread = threading.Thread(target=self._run, name="metrics", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_closed:
            self._server.handle_request()

    def close(self) -> None:
        """Stop listening. A scrape under way is finished, or left if that takes over a second."""
        self._is_closed = True
        if self._thread is not None:
            with contextlib.suppress(OSError):
                self._server.socket.shutdown(socket.SHUT_RDWR)  # wakes the thread
            self._thread.join(_STOP_S)
        self._server.server_close()
