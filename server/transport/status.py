"""Refusals as gRPC statuses, with the only table of codes."""

from __future__ import annotations

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from nearcast.v1 import errors_pb2, streams_pb2
from nearcast.wire import errors
from server.errors import Reason, RefusalError

DOMAIN = "nearcast"
ERROR_METADATA = "nearcast-error-bin"
_DETAILS_METADATA = "grpc-status-details-bin"

CODES: dict[Reason, grpc.StatusCode] = {
    Reason.INVALID_FIELD: grpc.StatusCode.INVALID_ARGUMENT,
    Reason.OUT_OF_AREA: grpc.StatusCode.OUT_OF_RANGE,
    Reason.UNKNOWN_OBJECT: grpc.StatusCode.NOT_FOUND,
    Reason.UNKNOWN_SUBSCRIPTION: grpc.StatusCode.NOT_FOUND,
    Reason.SUBSCRIPTION_EXISTS: grpc.StatusCode.ALREADY_EXISTS,
    Reason.TOO_MANY: grpc.StatusCode.RESOURCE_EXHAUSTED,
    Reason.DEVICE_IN_USE: grpc.StatusCode.FAILED_PRECONDITION,
    Reason.SUPERSEDED: grpc.StatusCode.ABORTED,
    Reason.OUT_OF_ORDER: grpc.StatusCode.FAILED_PRECONDITION,
    Reason.UNAUTHENTICATED: grpc.StatusCode.UNAUTHENTICATED,
    Reason.NOT_VIRTUAL: grpc.StatusCode.FAILED_PRECONDITION,
    Reason.TIME_BACKWARDS: grpc.StatusCode.OUT_OF_RANGE,
    Reason.DRAINING: grpc.StatusCode.UNAVAILABLE,
    Reason.INTERNAL: grpc.StatusCode.INTERNAL,
    Reason.SILENT: grpc.StatusCode.DEADLINE_EXCEEDED,
    Reason.LEASE_EXPIRED: grpc.StatusCode.DEADLINE_EXCEEDED,
    Reason.RECOVERING: grpc.StatusCode.UNAVAILABLE,
    Reason.UNIMPLEMENTED: grpc.StatusCode.UNIMPLEMENTED,
    Reason.PERMISSION_DENIED: grpc.StatusCode.PERMISSION_DENIED,
    Reason.TOKEN_EXPIRED: grpc.StatusCode.UNAUTHENTICATED,
    Reason.RATE_LIMITED: grpc.StatusCode.RESOURCE_EXHAUSTED,
    Reason.FORGOTTEN: grpc.StatusCode.ABORTED,
}


def error_message(error: RefusalError) -> errors_pb2.Error:
    """Return the message of a refusal."""
    return errors.error_message(error, CODES[error.reason].value[0])


def go_away_message(error: RefusalError, admitted_count: int = 0) -> streams_pb2.GoAway:
    """Return the message that announces the end of a stream."""
    return streams_pb2.GoAway(error=error_message(error), admitted_count=admitted_count)


def trailing_metadata(error: RefusalError) -> tuple[tuple[str, bytes], ...]:
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
