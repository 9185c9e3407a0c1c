"""Names that the app chooses: of devices, subscriptions and objects."""

from __future__ import annotations

from nearcast.checks import is_name
from nearcast.errors import invalid
from nearcast.limits import DEFAULT_LIMITS

LENGTH_MAX = DEFAULT_LIMITS.name_length_max


def checked_name(name: str, field: str, length_max: int = LENGTH_MAX, *, optional: bool = False) -> str:
    """Validate a name and return it. It must have printable characters only, for people to read.

    Raises
    ------
    RefusedError
        If the name is not valid.
    """
    limit = f"a text of {0 if optional else 1} to {length_max} printable characters"
    if not isinstance(name, str) or not (is_name(name, length_max) or (optional and not name)):
        raise invalid(field, name, limit)
    return name
