"""Refusals as messages, with the only table of codes. Server and gateway write them."""

from __future__ import annotations

from typing import Protocol

from nearcast.v1 import errors_pb2
from safe_region.reasons import Reason

CODES: dict[Reason, int] = {
    Reason.INVALID_FIELD: 3,
    Reason.OUT_OF_AREA: 11,
    Reason.UNKNOWN_OBJECT: 5,
    Reason.UNKNOWN_SUBSCRIPTION: 5,
    Reason.SUBSCRIPTION_EXISTS: 6,
    Reason.TOO_MANY: 8,
    Reason.DEVICE_IN_USE: 9,
    Reason.SUPERSEDED: 10,
    Reason.OUT_OF_ORDER: 9,
    Reason.UNAUTHENTICATED: 16,
    Reason.NOT_VIRTUAL: 9,
    Reason.TIME_BACKWARDS: 11,
    Reason.DRAINING: 14,
    Reason.INTERNAL: 13,
    Reason.SILENT: 4,
    Reason.LEASE_EXPIRED: 4,
    Reason.RECOVERING: 14,
    Reason.UNIMPLEMENTED: 12,
    Reason.PERMISSION_DENIED: 7,
    Reason.TOKEN_EXPIRED: 16,
    Reason.RATE_LIMITED: 8,
    Reason.FORGOTTEN: 10,
}
"""The `google.rpc.Code` of each reason."""


class Refusal(Protocol):
    """An error that a message can carry; its text is the sentence for people."""

    reason: Reason
    field: str
    value: str
    limit: str
    retry_after_ms: int


def error_message(error: Refusal) -> errors_pb2.Error:
    """Return the message of a refusal."""
    return errors_pb2.Error(
        reason=errors_pb2.ErrorReason.Name(int(error.reason)),
        message=str(error),
        field=error.field,
        value=error.value,
        limit=error.limit,
        code=CODES[error.reason],
        retry_after_ms=error.retry_after_ms,
    )
