"""Refusals: the field, its wrong value, and the allowed values.

One exception for the whole server; the transport turns it into status codes, ErrorInfo and rejection
messages.
"""

from __future__ import annotations

from safe_region.reasons import Reason

__all__ = ["Reason", "RefusalError", "StoreError"]

_VALUE_LENGTH_MAX = 80


class RefusalError(Exception):
    """A command is refused and has changed nothing.

    Parameters
    ----------
    reason
        The kind of refusal.
    field
        Path of the offending field, such as ``objects[3].keywords``.
    value
        The offending value; shortened for display. Text from others comes as its repr.
    limit
        The allowed values, as a phrase that follows "must be".
    retry_after_ms
        When the same may be allowed; 0 if that does not depend on time.
    """

    def __init__(
        self, reason: Reason, field: str, value: object, limit: str, *, retry_after_ms: int = 0
    ) -> None:
        self.reason = reason
        self.retry_after_ms = retry_after_ms
        self.field = field
        self.value = _shortened(value)
        self.limit = limit
        super().__init__(f"{field} is {self.value}, must be {limit}")


class StoreError(Exception):
    """The store cannot be used: it is of another frame or version, in use, damaged or full."""


def _shortened(value: object) -> str:
    text = str(value)
    return text if len(text) <= _VALUE_LENGTH_MAX else text[: _VALUE_LENGTH_MAX - 3] + "..."


class BridgeError(Exception):
    """The source or the sink cannot be used."""


class MetricsPortError(Exception):
    """The server cannot listen on the port for metrics."""


class TracingError(Exception):
    """Traces are requested and cannot be made."""
