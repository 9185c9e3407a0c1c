"""Names that an app gives: of devices, subscriptions and objects."""

from __future__ import annotations

from nearcast.errors import invalid

NAME_LENGTH_MAX = 128
"""What a server accepts unless it is told otherwise (`Limits.name_length_max`)."""


def checked_name(name: str, field: str, length_max: int = NAME_LENGTH_MAX, *, length_min: int = 1) -> str:
    """Return a name of printable characters.

    Raises
    ------
    RefusedError
        If it is none.
    """
    limit = f"a text of {length_min} to {length_max} printable characters"
    if not isinstance(name, str) or not length_min <= len(name) <= length_max:
        raise invalid(field, name, limit)
    if not name.isprintable():
        raise invalid(field, name, limit)
    return name


def subscription_name(name: str, length_max: int) -> str:
    """Return the name of a subscription; empty for none."""
    return checked_name(name, "name", length_max, length_min=0)
