"""Refusals as gRPC statuses."""

from __future__ import annotations

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from nearcast.errors import RefusedError
from nearcast.v1 import streams_pb2
from nearcast.wire.errors import CODES as CODE_NUMBERS
from nearcast.wire.errors import error_message

DOMAIN = "nearcast"
ERROR_METADATA = "nearcast-error-bin"
_DETAILS_METADATA = "grpc-status-details-bin"

_STATUSES = {status.value[0]: status for status in grpc.StatusCode}

CODES = {reason: _STATUSES[code] for reason, code in CODE_NUMBERS.items()}
"""The status of each reason."""


def go_away_message(error: RefusedError, admitted_count: int = 0) -> streams_pb2.GoAway:
    """Return the message that announces the end of a stream."""
    return streams_pb2.GoAway(error=error_message(error), admitted_count=admitted_count)


def trailing_metadata(error: RefusedError) -> tuple[tuple[str, bytes], ...]:
    """Return the metadata of a failed call: nearcast's error, and ErrorInfo for generic clients."""
    info = ErrorInfo(
        reason=error.reason.name,
        domain=DOMAIN,
        metadata={"field": error.field, "value": error.value, "limit": error.limit},
    )
    details = [AnyMessage()]
    details[0].Pack(info)
    if error.retry_after_ms:
        retry = RetryInfo()
        retry.retry_delay.FromMilliseconds(error.retry_after_ms)
        details.append(AnyMessage())
        details[1].Pack(retry)
    status = Status(code=CODES[error.reason].value[0], message=str(error), details=details)
    return (
        (ERROR_METADATA, error_message(error).SerializeToString()),
        (_DETAILS_METADATA, status.SerializeToString()),
    )
