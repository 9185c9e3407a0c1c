"""The metrics port of a server or a gateway: metrics for Prometheus, over HTTP, in a separate thread.

Metrics are rendered as text in the thread, which has its own event loop: scrapes do not wait for each
other, nor for a slow client. A request and its response have five seconds together; of too many, the
oldest is closed. Any client that reaches the port can read it, so it is on the loopback interface by
default, and accepts only names of that interface there (`scrape_request`).
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gzip
import logging
import socket
import threading
from collections.abc import Awaitable, Callable

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from identity.errors import MetricsPortError
from identity.scrape_request import HEAD_BYTES_MAX, BadRequestError, Scrape, scrape_from
from identity.settings import is_loopback

_log = logging.getLogger(__name__)

CALLER_S = 5.0
"""How long a request may take, from the connection to the last byte of its response."""

CONNECTIONS_MAX = 64
"""Maximum number of connections; beyond, the oldest is closed."""

_STOP_S = 1.0
"""How long a scrape in progress may continue when the port is closed."""

_HEAD_END = b"\r\n\r\n"


class MetricsPort:
    """A listening port. `serve` starts to respond.

    Parameters
    ----------
    host, port
        The address; port 0 chooses a port.

    Raises
    ------
    MetricsPortError
        If it cannot listen on the address.
    """

    def __init__(self, host: str, port: int) -> None:
        self._is_local = is_loopback(host)
        try:
            self._socket = _listening(host, port)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise MetricsPortError(
                    f"metrics_port is {port}, must be free on metrics_host {host}: {error.strerror}"
                ) from error
            raise MetricsPortError(
                f"metrics_host is {host!r}, must be an address of this machine that accepts a listener "
                f"on metrics_port {port}: {error.strerror}"
            ) from error
        self.port: int = self._socket.getsockname()[1]
        self._thread: threading.Thread | None = None
        self._loop = asyncio.new_event_loop()
        self._closed = asyncio.Event()
        self._callers: dict[asyncio.Task[None], None] = {}
        """Tasks of connections, the oldest first."""

    def serve(self, collect: Callable[[], Awaitable[Collector]]) -> None:
        """Respond to scrapes with what a function returns, which is called in the thread."""
        self._collect = collect
        self._thread = threading.Thread(target=self._run, name="metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening. A scrape in progress is finished, or cancelled if that takes over a second."""
        if self._thread is None:
            self._socket.close()
            self._loop.close()
            return
        self._loop.call_soon_threadsafe(self._closed.set)
        self._thread.join(2.0 * _STOP_S)

    def _run(self) -> None:
        with contextlib.closing(self._loop):
            self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._connected, sock=self._socket, limit=HEAD_BYTES_MAX)
        await self._closed.wait()
        server.close()
        if self._callers:
            await asyncio.wait(self._callers, timeout=_STOP_S)
        for task in self._callers:
            task.cancel()
        await asyncio.gather(*self._callers, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Start to respond to a client; close the oldest connection if there are too many."""
        if len(self._callers) >= CONNECTIONS_MAX:
            next(iter(self._callers)).cancel()
        task = self._loop.create_task(self._answer(reader, writer))
        self._callers[task] = None

        def ended(task: asyncio.Task[None]) -> None:
            # Here and not in the task: a task that is cancelled before its first step runs no `finally`.
            del self._callers[task]
            writer.transport.abort()

        task.add_done_callback(ended)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(CALLER_S):
                writer.write(await self._response(reader))
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        except (OSError, EOFError, TimeoutError, asyncio.LimitOverrunError) as error:
            # The caller's connection failed or was too slow.
            _log.debug("a scrape was aborted: %s", type(error).__name__)

    async def _response(self, reader: asyncio.StreamReader) -> bytes:
        try:
            head = await reader.readuntil(_HEAD_END)
            scrape = scrape_from(head, is_local=self._is_local)
        except asyncio.LimitOverrunError:
            return _message("431 Request Header Fields Too Large", {}, b"")
        except BadRequestError as error:
            return _message(error.status, {}, b"")
        return _rendered(scrape, await self._collect())


def _rendered(scrape: Scrape, collector: Collector) -> bytes:
    """Return the response to a scrape."""
    registry = CollectorRegistry()
    registry.register(collector)
    ProcessCollector(registry=registry)
    encode, content_type = choose_encoder(scrape.accept)
    wanted = registry.restricted_registry(scrape.names) if scrape.names else registry
    body = encode(wanted)
    headers = {"Content-Type": content_type}
    if scrape.is_gzip:
        body = gzip.compress(body, compresslevel=1)
        headers["Content-Encoding"] = "gzip"
    return _message("200 OK", headers, body, is_head=scrape.is_head)


def _message(status: str, headers: dict[str, str], body: bytes, *, is_head: bool = False) -> bytes:
    lines = [f"HTTP/1.1 {status}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines += [f"Content-Length: {len(body)}", "Connection: close", "", ""]
    return "\r\n".join(lines).encode("ascii") + (b"" if is_head else body)


def _listening(host: str, port: int) -> socket.socket:
    """Listen, without a DNS look-up of this machine's name."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=CONNECTIONS_MAX)
