"""The connection to a server, which is replaced when the network has changed."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import grpc

from nearcast.errors import UnavailableError, invalid
from nearcast.transport.cancellation import is_cancelled
from nearcast.transport.roots import system_roots
from nearcast.v1 import (
    control_service_pb2_grpc,
    device_service_pb2_grpc,
    publisher_service_pb2_grpc,
)

_MESSAGE_BYTES_MAX = 64 * 1024 * 1024
_KEEPALIVE_TIMEOUT_S = 10.0
"""Time to wait for the response to a ping of the connection."""

_CONNECT_MS = 3000
"""Time limit of a connection attempt if there are other servers to try; that of gRPC is 20 s."""

_PEM = b"-----BEGIN "

_IDEMPOTENT = [
    {"service": "nearcast.v1.DeviceService", "method": "Search"},
    {"service": "nearcast.v1.DeviceService", "method": "ForgetDevice"},
    {"service": "nearcast.v1.ControlService", "method": "Sync"},
    {"service": "nearcast.v1.ControlService", "method": "AdvanceClock"},
]
"""Methods that gRPC retries, regardless of the outcome of the first attempt.

Search changes nothing, Sync waits, setting the same time twice has no effect, and a device can be
forgotten twice. Retract is not retried: an object cannot be retracted twice. Status is not retried: it
returns the present state. Streams are resumed, not retried.
"""
_RETRY_POLICY = {
    # The largest number that gRPC allows. Five attempts take some eight seconds; a server with 300,000
    # objects restarts in six.
    "maxAttempts": 5,
    "initialBackoff": "0.2s",
    "backoffMultiplier": 3,
    "maxBackoff": "5s",
    "retryableStatusCodes": ["UNAVAILABLE"],
}
_SERVICE_CONFIG = json.dumps({"methodConfig": [{"name": _IDEMPOTENT, "retryPolicy": _RETRY_POLICY}]})


_DECIDED = (
    grpc.ChannelConnectivity.READY,
    grpc.ChannelConnectivity.TRANSIENT_FAILURE,
    grpc.ChannelConnectivity.SHUTDOWN,
)
"""States in which a connection attempt has ended."""

PRINTABLE = "text of printable ASCII characters on one line"
"""Description of a valid token."""

TokenSource = str | Callable[[], str | Awaitable[str]]
"""A token, or a function that returns a valid token, called whenever a call starts."""


@dataclass(frozen=True, slots=True)
class Tls:
    """Certificates to verify the server, and to authenticate this client.

    Certificates and keys are the contents of PEM files, as bytes: ``Path("roots.pem").read_bytes()``.

    Parameters
    ----------
    root_certificates
        Root certificates, PEM; None for those that programs on this machine trust.
    server_name
        Name in the server's certificate, if it differs from the address.
    certificate, key
        Certificate and key of this client, PEM, for servers that request a client certificate.

    Examples
    --------
    ::

        tls = nearcast.Tls(root_certificates=Path("roots.pem").read_bytes())
        client = nearcast.connect("nearcast.example.org", token="...", tls=tls)
    """

    root_certificates: bytes | None = field(default=None, repr=False)
    server_name: str | None = None
    certificate: bytes | None = field(default=None, repr=False)
    key: bytes | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        limit = 'the bytes of a PEM file, such as Path("chain.pem").read_bytes(), or None'
        for name in ("root_certificates", "certificate", "key"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, bytes) and _PEM in value):
                raise invalid(f"tls.{name}", type(value).__name__ if name == "key" else value, limit)
        if (self.certificate is None) != (self.key is None):
            lacking = "key" if self.key is None else "certificate"
            raise invalid(f"tls.{lacking}", None, "given too: a certificate needs its key")
        if not isinstance(self.server_name, str | None):
            raise invalid("tls.server_name", self.server_name, "a text, or None")


def credentials_of(tls: Tls) -> grpc.ChannelCredentials:
    """Return the credentials with which a channel verifies a server and identifies this client."""
    roots = system_roots() if tls.root_certificates is None else tls.root_certificates
    return grpc.ssl_channel_credentials(roots, tls.key, tls.certificate)


class TokenError(UnavailableError):
    """The token function failed or returned no valid token. Apps see `UnavailableError`."""


def stripped_token(token: object) -> str | None:
    """Return a token without blanks and newlines around it, as in files; None if it is not valid."""
    text = token.strip() if isinstance(token, str) else ""
    return text if isinstance(token, str) and text.isascii() and text.isprintable() else None


class Channel:
    """A channel and the stubs on it.

    Parameters
    ----------
    target
        Address of the server.
    token
        Token of this client; empty for a server that does not require one.
    tls
        How to verify the server; None for a connection without encryption.
    keepalive_s
        Time without data after which the connection itself sends a ping; devices do not send these.
    keepalive_timeout_s
        How long such a ping may stay without a response; None for as long as `keepalive_s`, at most ten
        seconds.
    has_retries
        Whether gRPC repeats calls that are safe to repeat. If not, the caller uses another server.
    """

    def __init__(
        self,
        target: str,
        token: TokenSource,
        tls: Tls | None,
        keepalive_s: float,
        *,
        keepalive_timeout_s: float | None = None,
        has_retries: bool = True,
    ) -> None:
        self._token = token
        self._target = target
        self._tls = tls
        timeout_ms = round(1000 * (keepalive_timeout_s or min(keepalive_s, _KEEPALIVE_TIMEOUT_S)))
        self._options: list[tuple[str, int | str]] = [
            ("grpc.max_receive_message_length", _MESSAGE_BYTES_MAX),
            ("grpc.keepalive_time_ms", round(1000 * keepalive_s)),
            ("grpc.keepalive_timeout_ms", timeout_ms),
            # Pings have a separate timeout of a minute, which the keepalive timeout does not shorten.
            ("grpc.http2.ping_timeout_ms", timeout_ms),
            # By default gRPC stops after two pings until the client sends data.
            ("grpc.http2.max_pings_without_data", 0),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 5000),
            # A new channel opens a new connection; the connection of another channel may be dead.
            ("grpc.use_local_subchannel_pool", 1),
        ]
        if has_retries:
            self._options.append(("grpc.service_config", _SERVICE_CONFIG))
        else:
            self._options.append(("grpc.min_reconnect_backoff_ms", _CONNECT_MS))
        self._open()

    @property
    def target(self) -> str:
        """Address of the server."""
        return self._target

    @property
    def is_encrypted(self) -> bool:
        """Whether the connection is encrypted."""
        return self._tls is not None

    @property
    def can_renew_token(self) -> bool:
        """Whether the client can get another token when one is no longer valid."""
        return not isinstance(self._token, str)

    @property
    def is_connected(self) -> bool:
        """Whether the connection is open, as far as is known."""
        return bool(self._channel.get_state() is grpc.ChannelConnectivity.READY)

    async def connects(self) -> bool:
        """Open the connection, if it is not open; return whether it is.

        A server that could not be reached shortly before, less than the time of gRPC's next attempt ago,
        counts as not reachable.
        """
        channel = self._channel
        with contextlib.suppress(grpc.aio.UsageError):  # it was closed meanwhile
            while (state := channel.get_state(try_to_connect=True)) not in _DECIDED:
                await channel.wait_for_state_change(state)
            return bool(state is grpc.ChannelConnectivity.READY)
        return False

    async def metadata(self) -> list[tuple[str, str]]:
        """Return the metadata of a call, which has the token.

        Raises
        ------
        TokenError
            If there is no token: the function failed, or something that it awaits was cancelled.
        """
        token = self._token
        if not isinstance(token, str):
            try:
                found = token()
                token = found if isinstance(found, str) else await found
            except (Exception, asyncio.CancelledError) as error:
                if isinstance(error, asyncio.CancelledError) and is_cancelled():
                    raise
                raise TokenError(f"no token is available: {type(error).__name__}") from error
            stripped = stripped_token(token)
            if stripped is None:
                raise TokenError(f"no token is available: the function did not return {PRINTABLE}")
            token = stripped
        return [("authorization", f"Bearer {token}")] if token else []

    def stream(self, method: str, request: Any, response: Any) -> Any:  # noqa: ANN401 - gRPC's
        """Return a stream of both directions, for messages of other classes than the stubs have."""
        return self._channel.stream_stream(
            method,
            request_serializer=request.SerializeToString,
            response_deserializer=response.FromString,
        )

    def byte_stream(self, method: str) -> Any:  # noqa: ANN401 - gRPC's
        """Return a stream of both directions, with requests and responses as bytes."""
        return self._channel.stream_stream(method)

    def call(self, method: str) -> Any:  # noqa: ANN401 - gRPC's
        """Return a method with one request and one response, both as bytes."""
        return self._channel.unary_unary(method)

    def renew(self) -> grpc.aio.Channel:
        """Replace the connection; return the old one, which the caller closes."""
        old = self._channel
        self._open()
        return old

    async def close(self) -> None:
        """Close the connection."""
        await self._channel.close()

    def _open(self) -> None:
        tls = self._tls
        if tls is None:
            channel = grpc.aio.insecure_channel(self._target, self._options)
        else:
            options = list(self._options)
            if tls.server_name:
                options.append(("grpc.ssl_target_name_override", tls.server_name))
            channel = grpc.aio.secure_channel(self._target, credentials_of(tls), options)
        self._channel = channel
        self.devices: Any = device_service_pb2_grpc.DeviceServiceStub(channel)
        self.publishers: Any = publisher_service_pb2_grpc.PublisherServiceStub(channel)
        self.control: Any = control_service_pb2_grpc.ControlServiceStub(channel)
