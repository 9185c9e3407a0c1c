"""Refusals. Durations are in milliseconds in messages, and in seconds in the errors that apps get."""

from __future__ import annotations

import re

from nearcast.errors import Reason, RefusedError
from nearcast.milliseconds import seconds_text
from nearcast.v1 import errors_pb2

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
    Reason.ANOTHER_SERVER: 14,
    Reason.LAGGING: 14,
}
"""The `google.rpc.Code` of each reason."""

_SENTENCES = {
    (Reason.SUPERSEDED, "instance"): "another instance of the device took over; this one is closed",
}
"""Messages of refusals that are not about the value of a field."""

_SECONDS = {"ttl_ms": "ttl_s", "dwell_ms": "dwell_s", "window.duration_ms": "window.seconds"}
"""Endings of the paths of durations: on the wire, and in the SDK."""


def refusal_from(message: errors_pb2.Error) -> RefusedError:
    """Return the refusal in a message, for apps. A reason of a newer server becomes UNSPECIFIED."""
    number = int(message.reason)
    known = number in {int(reason) for reason in Reason}
    reason = Reason(number) if known else Reason.UNSPECIFIED
    field = _in_seconds(message.field)
    if field == message.field:
        value, limit = message.value, message.limit
        sentence = _SENTENCES.get((reason, field), message.message)
    else:  # a duration, which the app sets in seconds
        value, limit, sentence = _seconds(message.value), f"{_seconds(message.limit)} seconds", None
    return RefusedError(
        reason,
        field,
        value,
        limit,
        sentence,
        retry_after_ms=message.retry_after_ms,
        server=message.server,
    )


def error_message(error: RefusedError) -> errors_pb2.Error:
    """Return the message of a refusal."""
    return errors_pb2.Error(
        reason=errors_pb2.ErrorReason.Name(int(error.reason)),
        message=str(error),
        field=error.field,
        value=error.value,
        limit=error.limit,
        code=CODES[error.reason],
        retry_after_ms=error.retry_after_ms,
        server=error.server,
    )


def _in_seconds(field: str) -> str:
    """Return the path of a field in the SDK, where durations are in seconds."""
    ending = next((one for one in _SECONDS if field.endswith(one)), "")
    return f"{field.removesuffix(ending)}{_SECONDS[ending]}" if ending else field


def _seconds(text: str) -> str:
    """Return a text with its numbers converted from milliseconds to seconds."""
    return re.sub(r"-?\d+", lambda found: seconds_text(int(found[0]) / 1000.0), text)
