"""The connection of a node to the servers of a log.

nats-py 2.16.0 sends credentials without TLS to a server that offers none, waits for ever after a TLS
handshake that has failed, never connects again after credentials have expired, and writes to lost
connections in a way that fails with Python 3.12 and later. What is published without a connection is sent
when there is one again, however late. Methods of it that are extended here prevent this.
"""

from __future__ import annotations

import contextlib
import logging
import ssl
from collections.abc import Sequence
from typing import Any

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg

from cluster.access import TLS, LogAccess
from cluster.log import LogError, LogUnavailableError

_log = logging.getLogger(__name__)

_OPTIONS: dict[str, Any] = {
    "connect_timeout": 2,
    "reconnect_time_wait": 0.2,
    "max_reconnect_attempts": 3,
    "ping_interval": 2,
    "max_outstanding_pings": 2,
}
_NO_RIGHT = "permissions violation"
_ATTEMPTS = 5
"""How often to connect: a server that refuses credentials may end it before its reason is read."""


class Connection(Client):
    """A client that sends nothing to servers of `tls://` addresses without TLS."""

    def __init__(self) -> None:
        super().__init__()
        self.latest: Exception | None = None
        """The latest error."""

    @property
    def missing_right(self) -> str:
        """What a server has refused to this account latest; empty for nothing."""
        return str(self.latest) if self.latest and _NO_RIGHT in str(self.latest).lower() else ""

    async def log_error(self, error: Exception) -> None:
        """Log an error: a callback of the library."""
        self.latest = error
        level = logging.WARNING if self.missing_right else logging.INFO
        _log.log(level, "connection to the log: %r", error)

    async def publish(
        self, subject: str, payload: bytes = b"", reply: str = "", headers: dict[str, str] | None = None
    ) -> None:
        """Send a message; see `Client.publish`.

        Raises
        ------
        nats.errors.Error
            If there is no connection now.
        """
        self._require_connection()
        await super().publish(subject, payload, reply, headers)

    async def request(  # as the library has it
        self,
        subject: str,
        payload: bytes = b"",
        timeout: float = 0.5,  # noqa: ASYNC109
        old_style: bool = False,  # noqa: FBT001, FBT002
        headers: dict[str, Any] | None = None,
    ) -> Msg:
        """Send a request and return its response; see `Client.request`.

        Raises
        ------
        nats.errors.Error
            If there is no connection now. The library would keep a future for the response.
        """
        self._require_connection()
        return await super().request(subject, payload, timeout, old_style, headers)

    def _require_connection(self) -> None:
        if not (self.is_connected or self.is_closed):
            raise nats.errors.Error("no server of the log can be reached")

    async def forget(self) -> None:
        """Forget what was not sent before the connection was lost: a callback of the library."""
        self._pending.clear()
        self._pending_data_size = 0

    async def _process_connect_init(self) -> None:
        transport: Any = self._transport
        transport.writelines = lambda parts: transport.write(b"".join(parts))
        try:
            await super()._process_connect_init()
        except ssl.SSLError:
            transport._bare_io_writer.transport.abort()  # noqa: SLF001
            self._transport = None
            raise

    async def _process_err(self, err_msg: str) -> None:
        if self.is_connected and _NO_RIGHT not in err_msg.lower():
            await self._process_op_err(nats.errors.Error(f"nats: {err_msg}"))  # connects again
        else:
            await super()._process_err(err_msg)

    def _connect_command(self) -> bytes:
        server: Any = self._current_server
        if server.uri.scheme == TLS[:3] and not self._server_info.get("tls_required"):
            raise nats.errors.Error(f"{server.uri.hostname} offers no TLS")
        try:
            command: bytes = super()._connect_command()
        except ValueError as error:  # of a file of credentials that has changed
            raise nats.errors.Error(str(error)) from error
        return command


async def connected(servers: Sequence[str], access: LogAccess) -> Connection:
    """Connect to one of the servers.

    Raises
    ------
    LogError
        If none can be reached, or the message names the setting that is wrong.
    """
    options = {**_OPTIONS, **access.options()}
    if servers[0].startswith(TLS):
        options["tls"] = access.context()
    client = await _connected(servers, access, options)
    client.options["max_reconnect_attempts"] = -1
    return client


async def _connected(
    servers: Sequence[str], access: LogAccess, options: dict[str, Any], attempts: int = _ATTEMPTS
) -> Connection:
    client = Connection()
    try:
        await client.connect(
            list(servers), error_cb=client.log_error, disconnected_cb=client.forget, **options
        )
    except (nats.errors.Error, OSError, TimeoutError) as error:
        latest = client.latest or error
        if isinstance(latest, ConnectionResetError | BrokenPipeError) and attempts > 1:
            return await _connected(servers, access, options, attempts - 1)
        reason = access.refusal(client.latest)
        if reason:
            raise LogError(reason) from error
        raise LogUnavailableError(f"no server of the log can be reached: {latest}") from error
    return client


async def closed(client: Client) -> None:
    """End a connection, which may be lost already."""
    with contextlib.suppress(nats.errors.Error, OSError, TimeoutError):
        await client.close()
