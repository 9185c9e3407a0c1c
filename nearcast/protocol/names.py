"""Names that an app gives: of devices, subscriptions and objects."""

from __future__ import annotations

from nearcast.errors import invalid

LENGTH_MAX = 128
"""What a server accepts unless it is told otherwise (`Limits.name_length_max`)."""


def checked_name(name: str, field: str, length_max: int = LENGTH_MAX, *, optional: bool = False) -> str:
    """Return a name: printable characters, so that it can be written and read by people.

    Raises
    ------
    RefusedError
        If it is none.
    """
    limit = f"a text of {0 if optional else 1} to {length_max} printable characters"
    if not isinstance(name, str) or len(name) > length_max or not (name or optional):
        raise invalid(field, name, limit)
    if not name.isprintable():
        raise invalid(field, name, limit)
    return name
