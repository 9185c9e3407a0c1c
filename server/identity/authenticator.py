"""Authentication: who is it that begins a call? Asked once a call, of nothing but its token."""

from __future__ import annotations

import hmac
from collections.abc import Iterable

from server.errors import Reason, RefusalError
from server.identity.tokens import TokenVerifier
from server.principal import ANYBODY, Principal
from server.quotas import Account


class Authenticator:
    """Knows who may come in.

    Parameters
    ----------
    static_tokens
        Secrets for development: who presents one may do everything as anybody of the default tenant.
    verifier
        Of signed tokens; None if there are none.
    """

    def __init__(self, static_tokens: Iterable[str] = (), verifier: TokenVerifier | None = None) -> None:
        self._static = [token.encode() for token in static_tokens]
        self._verifier = verifier

    @property
    def accounts(self) -> list[Account]:
        """Those of callers that have shown signed tokens and are still there."""
        return [] if self._verifier is None else self._verifier.accounts.all()

    @property
    def is_open(self) -> bool:
        """Whether nobody is asked who he is."""
        return not self._static and self._verifier is None

    def principal(self, token: str | None) -> Principal:
        """Return whose token it is. Constant time for what is compared with secrets.

        Raises
        ------
        RefusalError
            UNAUTHENTICATED or TOKEN_EXPIRED, without a word of the token.
        """
        if self.is_open:
            return ANYBODY
        if not token:
            raise RefusalError(Reason.UNAUTHENTICATED, "token", "absent", "a token of this server")
        given = token.encode(errors="surrogatepass")
        known = [hmac.compare_digest(given, expected) for expected in self._static]
        if any(known):
            return ANYBODY
        if self._verifier is None:
            raise RefusalError(Reason.UNAUTHENTICATED, "token", "not known", "a token of this server")
        return self._verifier.principal(token)
