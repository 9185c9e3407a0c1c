"""Accepts connections with TLS, which count from then on.

The event loop's own server tells an application of a connection only after its handshake, so connections
that are silent in it would count for no limit. Here a connection beyond the limits is closed before its
handshake, and one whose handshake fails ends to count.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Iterable

from gateway.connections import Connection, Connections

_HANDSHAKE_S = 10.0
"""How long a handshake may take."""

_AT_ONCE_MAX = 100
"""Connections accepted in one go: other connections wait for that long."""

_PAUSE_S = 1.0
"""How long to accept none after a failure, such as a lack of open files."""

_log = logging.getLogger(__name__)


class TlsAcceptor:
    """Accepts connections until it is closed.

    Parameters
    ----------
    sockets
        Bound sockets, which are duplicated.
    backlog
        Connections that may wait to be accepted.
    connections
        Counts the connections.
    connection
        Returns the protocol of a connection that counts under an address.
    context
        The certificate and key.
    """

    def __init__(
        self,
        sockets: Iterable[socket.socket],
        backlog: int,
        connections: Connections,
        connection: Callable[[str], Connection],
        context: ssl.SSLContext,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._connections = connections
        self._connection = connection
        self._context = context
        self._handshakes: set[asyncio.Task[None]] = set()
        self._sockets = [one.dup() for one in sockets]
        for one in self._sockets:
            one.setblocking(False)
            one.listen(backlog)
            self._loop.add_reader(one, self._accept, one)

    def close(self) -> None:
        """Accept no connection any more, and end those in their handshake."""
        for one in self._sockets:
            self._loop.remove_reader(one)
            one.close()
        self._sockets.clear()
        for task in self._handshakes:
            task.cancel()

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(_AT_ONCE_MAX):
            try:
                accepted, peer = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                _log.error("no connection is accepted for %g s: %s", _PAUSE_S, error.strerror)
                self._loop.remove_reader(listening)
                self._loop.call_later(_PAUSE_S, self._resume, listening)
                return
            address = str(peer[0])
            if not self._connections.begin(address):
                accepted.close()
                self._connections.end(address)
                continue
            task = self._loop.create_task(self._shake_hands(accepted, address))
            self._handshakes.add(task)
            task.add_done_callback(self._handshakes.discard)

    def _resume(self, listening: socket.socket) -> None:
        if listening in self._sockets:
            self._loop.add_reader(listening, self._accept, listening)

    async def _shake_hands(self, accepted: socket.socket, address: str) -> None:
        connection = self._connection(address)
        try:
            accepted.setblocking(False)
            await self._loop.connect_accepted_socket(
                lambda: connection, accepted, ssl=self._context, ssl_handshake_timeout=_HANDSHAKE_S
            )
        except OSError as error:
            _log.debug("a handshake has failed: %s", type(error).__name__)
        finally:
            if not connection.is_made:
                self._connections.end(address)
