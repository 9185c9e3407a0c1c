"""Names that the app chooses: of devices, subscriptions and objects."""

from __future__ import annotations

from nearcast.errors import invalid

LENGTH_MAX = 128
"""Default of the server's limit `Limits.name_length_max`."""


def checked_name(name: str, field: str, length_max: int = LENGTH_MAX, *, optional: bool = False) -> str:
    """Validate a name and return it. It must have printable characters only, for people to read.

    Raises
    ------
    RefusedError
        If the name is not valid.
    """
    limit = f"a text of {0 if optional else 1} to {length_max} printable characters"
    if not isinstance(name, str) or len(name) > length_max or not (name or optional):
        raise invalid(field, name, limit)
    if not name.isprintable():
        raise invalid(field, name, limit)
    return name
