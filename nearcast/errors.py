"""What can go wrong for a user of the SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING

from safe_region.reasons import Reason

if TYPE_CHECKING:
    from nearcast.v1 import errors_pb2

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

    @classmethod
    def from_wire(cls, error: errors_pb2.Error) -> RefusedError:
        """Read a refusal. A reason of a newer server becomes UNSPECIFIED."""
        number = int(error.reason)
        known = number in {int(reason) for reason in Reason}
        reason = Reason(number) if known else Reason.UNSPECIFIED
        return cls(reason, error.field, error.value, error.limit, error.message, error.retry_after_ms)


class UnavailableError(NearcastError):
    """The server cannot be reached, or the connection was lost before the answer."""


class ClosedError(NearcastError):
    """The client, device or subscription has been closed."""


def forgotten() -> RefusedError:
    """Return what ends a device of which all data was deleted."""
    return RefusedError(Reason.FORGOTTEN, "device", "forgotten", "attached again, as a new one")


def invalid(field: str, value: object, limit: str) -> RefusedError:
    """Return the refusal of a field that need not travel to be refused."""
    return RefusedError(Reason.INVALID_FIELD, field, repr(value), limit)
