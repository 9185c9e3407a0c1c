"""Who may speak: bearer tokens."""

from __future__ import annotations

import hmac
from collections.abc import Iterable

from server.errors import Reason, RefusalError

_SCHEME = "Bearer "


class Auth:
    """Knows the tokens. Without any, everybody may speak.

    Parameters
    ----------
    tokens
        Shared secrets; a caller must present one of them.
    """

    def __init__(self, tokens: Iterable[str] = ()) -> None:
        self._tokens = [token.encode() for token in tokens]

    def require(self, token: str) -> None:
        """Raise RefusalError (UNAUTHENTICATED) unless the token is known. Constant time a token."""
        given = token.encode()
        known = [hmac.compare_digest(given, expected) for expected in self._tokens]
        if self._tokens and not any(known):
            shown = "absent" if not token else "not known"
            raise RefusalError(Reason.UNAUTHENTICATED, "token", shown, "a token of this server")

    def require_metadata(self, metadata: Iterable[tuple[str, str | bytes]] | None) -> None:
        """Like `require`, for a call's ``authorization: Bearer`` metadata."""
        values = dict(metadata or ())
        header = str(values.get("authorization", ""))
        self.require(header.removeprefix(_SCHEME))
