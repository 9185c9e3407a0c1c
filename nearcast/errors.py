"""Errors that the SDK raises.

Each has a `hint`, a suggestion of what to do next, if there is one. Tracebacks show it below the message.
"""

from __future__ import annotations

from safe_region.reasons import Reason

_VALUE_LENGTH_MAX = 80
"""Characters of a value that an error shows."""

__all__ = ["ClosedError", "NearcastError", "Reason", "RefusedError", "UnavailableError", "invalid"]


_HINTS = {
    Reason.OUT_OF_AREA: "positions are lon, lat; Device.frame.area is the service area of the server",
    Reason.UNKNOWN_OBJECT: "it has expired, was retracted or replaced, or belongs to another publisher",
    Reason.DEVICE_IN_USE: "end the other instance of the app, or replace it: attach(..., take_over=True)",
    Reason.SUPERSEDED: "ask the user before you attach again: that ends the other instance",
    Reason.UNAUTHENTICATED: "give connect a token that this server accepts: connect(..., token=...)",
    Reason.NOT_VIRTUAL: "start the server with --virtual-time",
    Reason.DRAINING: "the server is stopping: try again when it is back",
    Reason.RECOVERING: "the server is not ready yet: try again in some seconds",
    Reason.INTERNAL: "this is a fault of the server: its log has the details",
    Reason.PERMISSION_DENIED: "use a token with the role, tenant, device or publisher of the message",
    Reason.TOKEN_EXPIRED: "give connect a function that returns a token that is valid now",
    Reason.RATE_LIMITED: "try again after retry_after_ms milliseconds",
    Reason.FORGOTTEN: "attach again: the server then has a new device",
    Reason.ANOTHER_SERVER: "the SDK follows by itself; a program of yours sends its hello to `server`",
    Reason.LAGGING: "try again after retry_after_ms milliseconds: the servers of the log have no leader",
}
"""Suggestions for the reasons of refusals. A wrong field needs none: its limit is in the message."""


class NearcastError(Exception):
    """Base class of all errors of the SDK.

    Attributes
    ----------
    hint : str
        Suggestion of what to do next; empty if there is none.

    Examples
    --------
    ::

        try:
            await publisher.publish(offer)
        except nearcast.NearcastError as error:
            print(error, error.hint, sep="; ")
    """

    hint: str = ""


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
    server
        Address of the server to ask instead (ANOTHER_SERVER); else empty.

    Examples
    --------
    ::

        try:
            await device.subscribe(TopK({"tea"}, k=1000))
        except nearcast.RefusedError as error:
            print(error.reason, error.field, error.limit)  # INVALID_FIELD spec.top_k.k 1 to 100
    """

    def __init__(
        self,
        reason: Reason,
        field: str,
        value: object,
        limit: str,
        message: str | None = None,
        retry_after_ms: int = 0,
        server: str = "",
    ) -> None:
        self.retry_after_ms = retry_after_ms
        self.server = server
        self.reason = reason
        self.field = field
        self.value = _shortened(value)
        self.limit = limit
        self.hint = _HINTS.get(reason, "")
        super().__init__(message or f"{field} is {self.value}, must be {limit}")
        if self.hint:
            self.add_note(self.hint)

    def __reduce__(self) -> tuple[type[RefusedError], tuple[Reason, str, str, str, str, int, str]]:
        """Let processes send the error to each other."""
        fields = (self.reason, self.field, self.value, self.limit, str(self), self.retry_after_ms)
        return type(self), (*fields, self.server)

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
    """The client, publisher, device or subscription has been closed."""

    hint = "use it within its block, or connect and attach again"


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
