"""The connections to the server or the cluster, and the tokens of this gateway."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import grpc

from gateway.settings import GatewaySettings, targets_of
from identity.authenticator import Authenticator
from identity.certificates import read_chain
from identity.principal import DEFAULT_TENANT, Role
from identity.watched_file import FileError, read_bytes
from nearcast.errors import RefusedError
from nearcast.transport.channel import Channel, Tls
from nearcast.transport.connection_hints import Remedies, likely_mistake
from nearcast.transport.servers import Servers

_CHECK = "/grpc.health.v1.Health/Check"
_SERVING = b"\x08\x01"
"""A serialized HealthCheckResponse with the status SERVING."""

_CHECK_S = 2.0
_KEEPALIVE_S = 1.0
_KEEPALIVE_TIMEOUT_S = 3.0
"""A gateway notices within some four seconds that a server is gone or does not respond, for a ping a
second on each connection with streams."""


class Upstream:
    """The server, or the servers of a cluster, as this gateway reaches them.

    Parameters
    ----------
    settings
        The settings of the gateway.
    authenticator
        Verifies the gateway's own tokens, which are of the same keys.

    Raises
    ------
    FileError
        If a token or the roots cannot be used.
    """

    def __init__(self, settings: GatewaySettings, authenticator: Authenticator) -> None:
        self._targets = targets_of(settings.server)
        self._tls = _tls(settings)
        self._is_insecure = settings.insecure
        self._health = self._servers("")
        self.mistake = ""
        """The likely mistake behind the last failed check; empty if unknown."""
        self.calls = self._servers("", has_callers_tokens=True)
        """For calls with the tokens of their callers."""
        tokens = {_tenant(path, authenticator): path for path in settings.server_token_file}
        self.fleets = {tenant: self._servers(_reader(path)) for tenant, path in tokens.items()}
        """For fleet streams with this gateway's tokens, by tenant."""
        if not tokens:
            self.fleets[DEFAULT_TENANT] = self._servers("")

    def _servers(self, token: str | Callable[[], str], *, has_callers_tokens: bool = False) -> Servers:
        return Servers(
            self._targets,
            token,
            self._tls,
            _KEEPALIVE_S,
            keepalive_timeout_s=_KEEPALIVE_TIMEOUT_S,
            insecure=self._is_insecure,
            has_callers_tokens=has_callers_tokens,
        )

    async def is_serving(self) -> bool:
        """Return whether a server of the list can be reached and serves; keep the reason why not."""
        checks = [asyncio.create_task(self._serves(channel)) for channel in self._health.listed]
        try:
            for check in asyncio.as_completed(checks):
                if await check:
                    return True
            return False
        finally:
            for check in checks:
                check.cancel()
            await asyncio.gather(*checks, return_exceptions=True)

    async def _serves(self, channel: Channel) -> bool:
        check = channel.call(_CHECK)
        try:
            return bool(await check(b"", timeout=_CHECK_S) == _SERVING)
        except grpc.aio.AioRpcError as error:
            details = error.details() or ""
            self.mistake = likely_mistake(details, Remedies(), is_encrypted=self._tls is not None)
            return False

    async def close(self) -> None:
        """Close the connections, except those of the fleet streams."""
        await self._health.close()
        await self.calls.close()


def _tls(settings: GatewaySettings) -> Tls | None:
    if not settings.has_server_tls:
        return None
    pem = None
    if settings.server_tls_roots is not None:
        pem = read_bytes(settings.server_tls_roots)
        read_chain(pem, settings.server_tls_roots)
    return Tls(root_certificates=pem, server_name=settings.server_tls_name or None)


def _reader(path: Path) -> Callable[[], str]:
    """Return a function that reads a token whenever a stream starts."""
    return lambda: path.read_text(encoding="utf-8")


def _tenant(path: Path, authenticator: Authenticator) -> str:
    """Return the tenant of one of this gateway's own tokens.

    Raises
    ------
    FileError
        If the token is none of a gateway.
    """
    try:
        caller = authenticator.principal(read_bytes(path).decode().strip())
    except (RefusedError, UnicodeDecodeError) as error:
        reason = str(error) if isinstance(error, RefusedError) else "it is no text"
        raise FileError(f"{path} has no token of this gateway's own: {reason}") from None
    if Role.GATEWAY not in caller.roles:
        raise FileError(f"{path} has a token without the role gateway")
    return caller.tenant
