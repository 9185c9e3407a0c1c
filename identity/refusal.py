"""A refusal: the field, its wrong value, and the allowed values.

Server and gateway have this one exception; their transports turn it into status codes, ErrorInfo,
rejection messages and problem documents.
"""

from __future__ import annotations

from safe_region.reasons import Reason

__all__ = ["Reason", "RefusalError"]

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


def _shortened(value: object) -> str:
    text = str(value)
    return text if len(text) <= _VALUE_LENGTH_MAX else text[: _VALUE_LENGTH_MAX - 3] + "..."
