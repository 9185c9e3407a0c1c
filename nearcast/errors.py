"""What can go wrong for a user of the SDK."""

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
    """Anything the SDK raises on its own account."""


class RefusedError(NearcastError):
    """A request was refused and has changed nothing.

    Parameters
    ----------
    reason
        The kind of refusal.
    field
        Path of the offending field, such as ``objects[3].keywords``.
    value
        The value it had, shortened.
    limit
        What would be allowed.
    message
        The sentence for people; made of the above if absent.
    retry_after_ms
        How long to wait before the same is tried again; 0 if waiting does not help.
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
        """Read a refusal. A reason of a newer server becomes UNSPECIFIED."""
        number = int(error.reason)
        known = number in {int(reason) for reason in Reason}
        reason = Reason(number) if known else Reason.UNSPECIFIED
        field = in_seconds(error.field)
        if field == error.field:
            value, limit = error.value, error.limit
            message = _SENTENCES.get((reason, field), error.message)
        else:  # a duration, which the app has given in seconds
            value, limit, message = _seconds(error.value), f"{_seconds(error.limit)} seconds", None
        return cls(reason, field, value, limit, message, error.retry_after_ms)


class UnavailableError(NearcastError):
    """The server cannot be reached, or the connection was lost before the answer.

    Parameters
    ----------
    message
        What has happened.
    hint
        What the app may have to change; empty for nothing that is known.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(f"{message}; {hint}" if hint else message)
        self.message = message
        self.hint = hint


class ClosedError(NearcastError):
    """The client, device or subscription has been closed."""


_SENTENCES = {
    (Reason.SUPERSEDED, "instance"): "another instance of the device took over, and this one has ended",
}
"""What is not an error in a value, in words."""

_SECONDS = {"ttl_ms": "ttl_s", "dwell_ms": "dwell_s", "window.duration_ms": "window.seconds"}
"""Fields of durations: how they end on the wire, and here."""


def in_seconds(field: str) -> str:
    """Return the path of a field as an app gives it; durations are in seconds there."""
    ending = next((one for one in _SECONDS if field.endswith(one)), "")
    return f"{field.removesuffix(ending)}{_SECONDS[ending]}" if ending else field


def _seconds(text: str) -> str:
    """Return a text whose numbers are milliseconds with seconds in their place."""
    return re.sub(r"-?\d+", lambda found: seconds_text(int(found[0]) / 1000.0), text)


def forgotten() -> RefusedError:
    """Return what ends a device of which all data was deleted."""
    return RefusedError(Reason.FORGOTTEN, "device", "forgotten", "attached again, as a new one")


def invalid(field: str, value: object, limit: str) -> RefusedError:
    """Return the refusal of a field that need not travel to be refused."""
    return RefusedError(Reason.INVALID_FIELD, field, _shown(value), limit)


def _shown(value: object) -> str:
    """Write a value, shortened."""
    try:
        text = repr(value)
    except ValueError:  # a whole number of more digits than Python writes
        return "a number of thousands of digits"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
