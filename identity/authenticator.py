"""Authentication: the identity of a caller. It runs once per call, and uses only the token."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping

from identity.principal import ANYBODY, NODE, Principal
from identity.quotas import Account
from identity.tokens import TokenVerifier
from nearcast.errors import Reason, RefusedError


def node_token(key: bytes, incarnation: bytes) -> str:
    """Return the token for a node: the key of the nodes does not travel.

    Parameters
    ----------
    key
        The secret of the nodes, which is in the servers of the log.
    incarnation
        Of the node that is called, so that no other one can use the token.
    """
    return "node." + hmac.new(key, b"nearcast node " + incarnation, "sha256").hexdigest()


class Authenticator:
    """Authenticates callers.

    Parameters
    ----------
    static_tokens
        Secrets for development: a caller with one may do everything, with any id of the default tenant.
    verifier
        Verifies signed tokens; None if there are none.
    """

    def __init__(self, static_tokens: Iterable[str] = (), verifier: TokenVerifier | None = None) -> None:
        self._static = [token.encode() for token in static_tokens]
        self._verifier = verifier
        self._node_token = b""

    @property
    def accounts(self) -> list[Account]:
        """The accounts of callers with signed tokens that are still connected."""
        return [] if self._verifier is None else self._verifier.accounts.all()

    @property
    def tenants(self) -> Mapping[str, Account]:
        """The accounts of the tenants whose callers have had signed tokens; a view."""
        return {} if self._verifier is None else self._verifier.accounts.tenants

    @property
    def is_open(self) -> bool:
        """Whether callers need no token."""
        return not self._static and self._verifier is None

    def accept_nodes(self, token: str) -> None:
        """Accept a token of other nodes of a cluster: its caller may copy the store."""
        self._node_token = token.encode()

    def principal(self, token: str | None) -> Principal:
        """Return the principal of a token. Comparisons with secrets take constant time.

        Raises
        ------
        RefusedError
            UNAUTHENTICATED or TOKEN_EXPIRED, without any part of the token.
        """
        if self.is_open:
            return ANYBODY
        if not token:
            raise RefusedError(Reason.UNAUTHENTICATED, "token", "absent", "a token of this server")
        given = token.encode(errors="surrogatepass")
        known = [hmac.compare_digest(given, expected) for expected in self._static]
        if any(known):
            return ANYBODY
        if self._node_token and hmac.compare_digest(given, self._node_token):
            return NODE
        if self._verifier is None:
            raise RefusedError(Reason.UNAUTHENTICATED, "token", "not known", "a token of this server")
        return self._verifier.principal(token)
