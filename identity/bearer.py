"""The token in the header of a call, or of an HTTP request."""

from __future__ import annotations

from collections.abc import Sequence

from nearcast.errors import Reason, RefusedError

HEADER = "authorization"
_SCHEME = "bearer"


def bearer_token(values: Sequence[str]) -> str | None:
    """Return the token in the values of the header `authorization`; None if there is none.

    Raises
    ------
    RefusedError
        UNAUTHENTICATED, if there are several, or it is no bearer token.
    """
    if not values:
        return None
    if len(values) > 1:
        raise RefusedError(Reason.UNAUTHENTICATED, HEADER, f"present {len(values)} times", "present once")
    scheme, _, token = values[0].partition(" ")
    if scheme.lower() != _SCHEME or not token:
        raise RefusedError(Reason.UNAUTHENTICATED, HEADER, "in another form", "Bearer and a token")
    return token.strip()
