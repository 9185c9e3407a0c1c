"""Fields of messages: what is missing, what is none of the choices, what is not built yet."""

from __future__ import annotations

from enum import IntEnum
from typing import TypeVar

from server.errors import Reason, RefusalError

_Choice = TypeVar("_Choice", bound=IntEnum)


def missing(field: str) -> RefusalError:
    """Return the refusal of a message without a field that it needs."""
    return RefusalError(Reason.INVALID_FIELD, field, "absent", "present")


def unimplemented(field: str, limit: str, value: str = "present") -> RefusalError:
    """Return the refusal of what the protocol has and this server has not built yet."""
    return RefusalError(Reason.UNIMPLEMENTED, field, value, f"{limit}; more is not built yet")


def choice(kind: type[_Choice], value: int, field: str) -> _Choice:
    """Read an enumerated value.

    Raises
    ------
    RefusalError
        If it is none of the known ones.
    """
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(f"{one.value} ({one.name})" for one in kind)
        raise RefusalError(Reason.INVALID_FIELD, field, value, f"one of {known}") from None
