"""Errors that the SDK raises."""

from __future__ import annotations

from safe_region.reasons import Reason

_VALUE_LENGTH_MAX = 80
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
        Value of the field; shortened for display. Text from others comes as its repr.
    limit
        Description of the allowed values, as a phrase that follows "must be".
    message
        Sentence for people; the default is made of field, value and limit.
    retry_after_ms
        Time to wait before a retry of the same request; 0 if waiting does not help.
    """

    def __init__(
        self,
        reason: Reason,
        field: str,
        value: object,
        limit: str,
        message: str | None = None,
        retry_after_ms: int = 0,
    ) -> None:
        self.retry_after_ms = retry_after_ms
        self.reason = reason
        self.field = field
        self.value = _shortened(value)
        self.limit = limit
        super().__init__(message or f"{field} is {self.value}, must be {limit}")

    def __repr__(self) -> str:
        return f"RefusedError({self.reason}: {self})"


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


def forgotten() -> RefusedError:
    """Return the error that ends a device after the deletion of its data."""
    return RefusedError(Reason.FORGOTTEN, "device", "forgotten", "attached again, as a new one")


def invalid(field: str, value: object, limit: str) -> RefusedError:
    """Return a local refusal of a field, before anything is sent."""
    try:
        shown = repr(value)
    except ValueError:  # an integer with more digits than Python converts
        shown = "a number with thousands of digits"
    return RefusedError(Reason.INVALID_FIELD, field, shown, limit)


def _shortened(value: object) -> str:
    text = str(value)
    return text if len(text) <= _VALUE_LENGTH_MAX else text[: _VALUE_LENGTH_MAX - 3] + "..."
