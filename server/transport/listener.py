"""The gRPC server: services, health, reflection, one port."""

from __future__ import annotations

from dataclasses import dataclass

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from nearcast.v1 import (
    control_service_pb2,
    control_service_pb2_grpc,
    device_service_pb2,
    publisher_service_pb2,
    publisher_service_pb2_grpc,
)
from server.pump import Pump
from server.transport.access import Access
from server.transport.servicers import (
    ControlServicer,
    DeviceServicer,
    PublisherServicer,
    device_handler,
)

_KEEPALIVE_MS = 30_000
"""Between signs of life on a quiet connection; one that gives none is closed and its devices detached."""

_KEEPALIVE_TIMEOUT_MS = 10_000

_PING_INTERVAL_MIN_MS = 10_000
"""How often a client may ping. gRPC's default of five minutes would hang up on a careful one."""

_STREAMS_MAX = 1_000_000
"""HTTP/2 streams a connection: a gateway may carry each of its devices on one."""

SERVICES = (
    device_service_pb2.DESCRIPTOR.services_by_name["DeviceService"].full_name,
    publisher_service_pb2.DESCRIPTOR.services_by_name["PublisherService"].full_name,
    control_service_pb2.DESCRIPTOR.services_by_name["ControlService"].full_name,
)


class PortError(Exception):
    """The address cannot be listened on."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """The server's certificate chain and private key, PEM."""

    certificate: bytes
    key: bytes


class Listener:
    """A listening server.

    Parameters
    ----------
    pump
        What answers.
    access
        Who may speak.
    """

    def __init__(self, pump: Pump, access: Access) -> None:
        self._pump = pump
        # Without SO_REUSEPORT a port that is taken is an error and not a silent half of the traffic.
        self._server = grpc.aio.server(
            options=[
                ("grpc.so_reuseport", 0),
                ("grpc.max_concurrent_streams", _STREAMS_MAX),
                ("grpc.keepalive_time_ms", _KEEPALIVE_MS),
                ("grpc.keepalive_timeout_ms", _KEEPALIVE_TIMEOUT_MS),
                ("grpc.http2.min_ping_interval_without_data_ms", _PING_INTERVAL_MIN_MS),
                ("grpc.max_receive_message_length", pump.switchboard.limits.message_bytes_max),
                ("grpc.max_send_message_length", -1),
            ]
        )
        self._devices = DeviceServicer(pump, access)
        self._publishers = PublisherServicer(pump, access)
        self._health = health.aio.HealthServicer()
        self._server.add_generic_rpc_handlers((device_handler(self._devices),))
        publisher_service_pb2_grpc.add_PublisherServiceServicer_to_server(self._publishers, self._server)
        control_service_pb2_grpc.add_ControlServiceServicer_to_server(
            ControlServicer(pump, access, self._devices), self._server
        )
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        reflection.enable_server_reflection(
            (*SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME), self._server
        )

    async def start(self, host: str, port: int, tls: TlsFiles | None = None) -> int:
        """Listen; return the port (the one chosen, if `port` is 0).

        Raises
        ------
        PortError
            If the address cannot be listened on.
        """
        address = f"{host}:{port}"
        try:
            if tls is None:
                bound = self._server.add_insecure_port(address)
            else:
                credentials = grpc.ssl_server_credentials([(tls.key, tls.certificate)])
                bound = self._server.add_secure_port(address, credentials)
        except RuntimeError as error:
            raise PortError(
                f"port is {port}, must be free on host {host}: {address} cannot be listened on"
            ) from error
        await self._server.start()
        for name in ("", *SERVICES):
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)
        return int(bound)

    async def stop(self, grace_s: float) -> None:
        """Tell devices to reconnect, finish what is under way within the grace, stop listening."""
        await self._health.enter_graceful_shutdown()
        self._devices.drain()
        self._publishers.drain()
        await self._server.stop(grace_s)
