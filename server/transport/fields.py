"""Refusals for fields of messages: missing, with an unknown choice, or not implemented."""

from __future__ import annotations

from enum import IntEnum
from typing import TypeVar

from nearcast.errors import Reason, RefusedError

_Choice = TypeVar("_Choice", bound=IntEnum)


def missing(field: str) -> RefusedError:
    """Return the refusal of a message without a required field."""
    return RefusedError(Reason.INVALID_FIELD, field, "absent", "present")


def unimplemented(field: str, limit: str, value: str = "present") -> RefusedError:
    """Return the refusal of a part of the protocol that this server does not implement."""
    return RefusedError(Reason.UNIMPLEMENTED, field, value, f"{limit}; other values are not supported")


def choice(kind: type[_Choice], value: int, field: str) -> _Choice:
    """Return an enumerated value.

    Raises
    ------
    RefusedError
        If it is none of the known ones.
    """
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(f"{one.value} ({one.name})" for one in kind)
        raise RefusedError(Reason.INVALID_FIELD, field, value, f"one of {known}") from None
