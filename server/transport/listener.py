"""The gRPC server: services, health, reflection, one port."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc

from identity.authenticator import Authenticator
from identity.certificates import Certificates
from identity.watched_file import WatchedFiles
from nearcast.address import joined_address
from nearcast.v1 import control_service_pb2_grpc, publisher_service_pb2_grpc
from server.limits import keepalive_timeout_ms
from server.monitoring.readings import Readings
from server.runtime.command_loop import CommandLoop
from server.runtime.gc_control import GcControl
from server.transport.admission import Admission
from server.transport.authentication import SERVICES, AuthenticationInterceptor
from server.transport.control_service import ControlServicer
from server.transport.credentials import credentials_of
from server.transport.device_service import DeviceServicer, device_handler
from server.transport.parsing import Parsing
from server.transport.publisher_service import PublisherServicer

_HANDSHAKE_MS = 10_000
"""How long a connection may take for its handshake: TLS, then HTTP/2."""

_IDLE_MS = 60_000
"""How long a connection without calls may stay open; clients reconnect for the next call."""

_PING_INTERVAL_MIN_MS = 500
"""Minimum interval of pings: gateways send one a second. gRPC's default of five minutes would disconnect
them."""

_STREAMS_MAX = 1_000_000
"""HTTP/2 streams per connection: a gateway may use one stream for each of its devices."""

_AHEAD_BYTES = 256 * 1024
"""Bytes of a stream that are received before the server reads them."""


class PortError(Exception):
    """The server cannot listen on the address."""


def _why_not(host: str, port: int) -> str:
    """Return why the server cannot listen on an address, which gRPC does not report."""
    try:
        family, kind, protocol, _, (address, *_) = socket.getaddrinfo(
            host, None, type=socket.SOCK_STREAM
        )[0]
    except OSError:
        return (
            f"host is {host!r}, must be an address or a name of this machine: the name cannot be resolved"
        )
    try:
        with socket.socket(family, kind, protocol) as probe:
            probe.bind((address, port))
    except PermissionError:
        return f"port is {port}, must be a port on which this user may listen"
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return f"port is {port}, must be free on host {host}: another program listens on it"
        reason = os.strerror(error.errno or 0).lower()
        return f"host is {host!r}, must be an address or a name of this machine: {reason}"
    return f"port is {port}, must be free on host {host}: {joined_address(host, port)} is not available"


class _Beginnings(grpc.aio.ServerInterceptor):
    """Notifies the collector of every call that starts: it may leave cycles."""

    def __init__(self, gc_control: GcControl) -> None:
        self._gc_control = gc_control

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:  # noqa: ANN401 - any handler
        self._gc_control.suspect()
        return await continuation(handler_call_details)


class Listener:
    """A listening server.

    Parameters
    ----------
    command_loop
        Executes the commands.
    authenticator
        Authenticates callers.
    keepalive_ms
        Interval between keepalive pings on a quiet connection; a connection without a response is closed,
        and its devices are detached.
    readings
        The content of `Status`.
    reflects
        Whether clients may list the services (reflection).
    """

    def __init__(
        self,
        command_loop: CommandLoop,
        authenticator: Authenticator,
        keepalive_ms: int,
        readings: Readings,
        *,
        reflects: bool = False,
    ) -> None:
        limits = command_loop.coordinator.limits
        timeout_ms = keepalive_timeout_ms(keepalive_ms)
        options = [
            # Without SO_REUSEPORT a port in use is an error instead of a silent loss of half of the
            # traffic.
            ("grpc.so_reuseport", 0),
            ("grpc.max_concurrent_streams", _STREAMS_MAX),
            ("grpc.keepalive_time_ms", keepalive_ms),
            ("grpc.keepalive_timeout_ms", timeout_ms),
            # Pings have their own timeout, a minute, which the other one does not shorten.
            ("grpc.http2.ping_timeout_ms", timeout_ms),
            ("grpc.http2.min_ping_interval_without_data_ms", _PING_INTERVAL_MIN_MS),
            ("grpc.max_receive_message_length", limits.message_bytes_max),
            # With probes of the bandwidth, gRPC increases the flow-control window of every stream to
            # megabytes, and receives as many of a caller's next messages although none of them is read.
            ("grpc.http2.bdp_probe", 0),
            ("grpc.http2.lookahead_bytes", _AHEAD_BYTES),
            ("grpc.max_allowed_incoming_connections", limits.connections_max),
            ("grpc.server_handshake_timeout_ms", _HANDSHAKE_MS),
            ("grpc.max_connection_idle_ms", _IDLE_MS),
            ("grpc.max_send_message_length", -1),
        ]
        admission = Admission(command_loop)
        interceptors = (
            _Beginnings(command_loop.gc_control),
            AuthenticationInterceptor(authenticator, admission),
            Parsing(admission, limits),
        )
        self._server = grpc.aio.server(
            options=options, interceptors=interceptors, maximum_concurrent_rpcs=limits.streams_max
        )
        self.devices = DeviceServicer(command_loop, admission)
        self.publishers = PublisherServicer(command_loop, admission)
        self._health = health.aio.HealthServicer()
        names = (*SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME)
        self._server.add_generic_rpc_handlers((device_handler(self.devices),))
        publisher_service_pb2_grpc.add_PublisherServiceServicer_to_server(self.publishers, self._server)
        self.control = ControlServicer(command_loop, admission, self.devices, readings)
        control_service_pb2_grpc.add_ControlServiceServicer_to_server(self.control, self._server)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        if reflects:
            reflected = reflection.aio.ReflectionServicer(names)
            reflection_pb2_grpc.add_ServerReflectionServicer_to_server(reflected, self._server)

    def add(self, handler: grpc.GenericRpcHandler) -> None:
        """Add a service, before the start."""
        self._server.add_generic_rpc_handlers((handler,))

    async def start(self, host: str, port: int, tls: WatchedFiles[Certificates] | None = None) -> int:
        """Listen; return the port (the one chosen, if `port` is 0). The health status is NOT_SERVING.

        Raises
        ------
        PortError
            If the server cannot listen on the address.
        """
        address = joined_address(host, port)
        await self._set_health(health_pb2.HealthCheckResponse.NOT_SERVING)
        try:
            if tls is None:
                bound = self._server.add_insecure_port(address)
            else:
                bound = self._server.add_secure_port(address, credentials_of(tls))
        except (RuntimeError, OSError) as error:
            raise PortError(await asyncio.to_thread(_why_not, host, port)) from error
        await self._server.start()
        return int(bound)

    async def serve(self) -> None:
        """Set the health status to SERVING, and let the waiting streams start."""
        self.devices.serve()
        await self._set_health(health_pb2.HealthCheckResponse.SERVING)

    async def report_health(self, is_healthy: bool) -> None:  # noqa: FBT001 - a callback
        """Set the health status of a server that serves; streams continue."""
        status = health_pb2.HealthCheckResponse
        await self._set_health(status.SERVING if is_healthy else status.NOT_SERVING)

    async def drain(self, grace_s: float) -> None:
        """Set the health status to NOT_SERVING, send GoAway, end streams; wait for them up to `grace_s`.

        Calls still get a response: that the server is draining.
        """
        await self._health.enter_graceful_shutdown()
        self.devices.drain()
        self.publishers.drain()
        self.control.watching.drain()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                await self.devices.idle()
                await self.publishers.idle()
        self.devices.stop_waiting()
        self.publishers.stop_waiting()

    async def stop(self, grace_s: float) -> None:
        """Stop listening; cancel calls in progress after the grace period."""
        await self._server.stop(grace_s)

    async def _set_health(self, status: health_pb2.HealthCheckResponse.ServingStatus) -> None:
        for name in ("", *SERVICES):
            await self._health.set(name, status)
