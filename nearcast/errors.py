"""Errors that the SDK raises."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nearcast.milliseconds import seconds_text
from safe_region.reasons import Reason

if TYPE_CHECKING:
    from nearcast.v1 import errors_pb2

_SHOWN = 200
"""Characters of a value that an error shows."""

__all__ = ["ClosedError", "NearcastError", "Reason", "RefusedError", "UnavailableError", "invalid"]


class NearcastError(Exception):
    """Base class of all errors of the SDK."""


class RefusedError(NearcastError):
    """The SDK or the server refused a request; the request changed nothing.

    Parameters
    ----------
    reason
        Kind of refusal.
    field
        Path of the wrong field, such as ``objects[3].keywords``.
    value
        Value of the field, shortened.
    limit
        Description of the allowed values.
    message
        Sentence for people; the default is made of field, value and limit.
    retry_after_ms
        Time to wait before a retry of the same request; 0 if waiting does not help.
    """

    def __init__(
        self,
        reason: Reason,
        field: str,
        value: str,
        limit: str,
        message: str | None = None,
        retry_after_ms: int = 0,
    ) -> None:
        self.retry_after_ms = retry_after_ms
        self.reason = reason
        self.field = field
        self.value = value
        self.limit = limit
        super().__init__(message or f"{field} is {value}, must be {limit}")

    def __repr__(self) -> str:
        return f"RefusedError({self.reason}: {self})"

    @classmethod
    def from_wire(cls, error: errors_pb2.Error) -> RefusedError:
        """Convert a refusal from the wire. A reason of a newer server becomes UNSPECIFIED."""
        number = int(error.reason)
        known = number in {int(reason) for reason in Reason}
        reason = Reason(number) if known else Reason.UNSPECIFIED
        field = in_seconds(error.field)
        if field == error.field:
            value, limit = error.value, error.limit
            message = _SENTENCES.get((reason, field), error.message)
        else:  # a duration, which the app sets in seconds
            value, limit, message = _seconds(error.value), f"{_seconds(error.limit)} seconds", None
        return cls(reason, field, value, limit, message, error.retry_after_ms)


class UnavailableError(NearcastError):
    """The server cannot be reached, or the connection broke before the response.

    Parameters
    ----------
    message
        Description of the failure.
    hint
        Likely mistake in the settings; empty if none is known.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(f"{message}; {hint}" if hint else message)
        self.message = message
        self.hint = hint


class ClosedError(NearcastError):
    """The client, device or subscription has been closed."""


_SENTENCES = {
    (Reason.SUPERSEDED, "instance"): "another instance of the device took over; this one is closed",
}
"""Messages of refusals that are not about the value of a field."""

_SECONDS = {"ttl_ms": "ttl_s", "dwell_ms": "dwell_s", "window.duration_ms": "window.seconds"}
"""Endings of the paths of durations: on the wire, and in the SDK."""


def in_seconds(field: str) -> str:
    """Return the path of a field in the SDK, where durations are in seconds."""
    ending = next((one for one in _SECONDS if field.endswith(one)), "")
    return f"{field.removesuffix(ending)}{_SECONDS[ending]}" if ending else field


def _seconds(text: str) -> str:
    """Return a text with its numbers converted from milliseconds to seconds."""
    return re.sub(r"-?\d+", lambda found: seconds_text(int(found[0]) / 1000.0), text)


def forgotten() -> RefusedError:
    """Return the error that ends a device after the deletion of its data."""
    return RefusedError(Reason.FORGOTTEN, "device", "forgotten", "attached again, as a new one")


def invalid(field: str, value: object, limit: str) -> RefusedError:
    """Return a local refusal of a field, before anything is sent."""
    return RefusedError(Reason.INVALID_FIELD, field, _shown(value), limit)


def _shown(value: object) -> str:
    """Return a shortened `repr` of a value."""
    try:
        text = repr(value)
    except ValueError:  # an integer with more digits than Python converts
        return "a number with thousands of digits"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
