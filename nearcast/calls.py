"""Failed calls as SDK errors."""

from __future__ import annotations

import grpc

from nearcast.errors import NearcastError, RefusedError, UnavailableError
from nearcast.v1 import errors_pb2

_ERROR_METADATA = "nearcast-error-bin"


def refusal(error: grpc.aio.AioRpcError) -> NearcastError:
    """Return what a failed call means."""
    for key, value in error.trailing_metadata() or ():
        if key == _ERROR_METADATA and isinstance(value, bytes):
            return RefusedError.from_wire(errors_pb2.Error.FromString(value))
    return UnavailableError(f"{error.code().name}: {error.details()}")
