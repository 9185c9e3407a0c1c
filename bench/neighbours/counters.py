"""Read the counters of the server, as an operator sees them."""

from __future__ import annotations

from typing import Any

import grpc

from bench.neighbours.tokens import metadata
from nearcast.v1 import control_service_pb2

_STATUS = "/nearcast.v1.ControlService/Status"
_WITHIN_S = 15.0


def counters(address: str, token: str) -> dict[str, int]:
    """Return the server's counters; none if it does not respond in time."""
    with grpc.insecure_channel(address) as channel:
        try:
            status: Any = channel.unary_unary(_STATUS)
            data = status(b"", timeout=_WITHIN_S, metadata=metadata(token))
        except grpc.RpcError:
            return {}
    return dict(control_service_pb2.StatusResponse.FromString(data).counters)
