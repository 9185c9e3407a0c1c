"""Signed tokens: a JSON Web Token becomes a principal.

Verification takes about 0.1 ms; verified tokens are cached for a while.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import jwt

from identity.keys import Keys
from identity.lru_cache import LruCache
from identity.principal import DEFAULT_TENANT, Principal, Role
from identity.quotas import Accounts, Quota
from identity.watched_file import WatchedFiles
from nearcast import checks
from nearcast.errors import Reason, RefusedError
from nearcast.limits import DEFAULT_LIMITS

_KEPT_MAX = 10_000
"""Tokens that each of two generations caches, so that a caller costs one verification."""

TOKEN_LENGTH_MAX = 6_000
"""Characters. gRPC refuses calls with metadata larger than 8 kB anyway."""

NAME_LENGTH_MAX = DEFAULT_LIMITS.name_length_max
_TIME_MAX_S = 1e11
"""The year 5138: milliseconds would be beyond."""

Quotas = Mapping[Role, Quota]


def is_name(name: object) -> bool:
    """Return whether a token may be for a name."""
    return isinstance(name, str) and checks.is_name(name, NAME_LENGTH_MAX)


@dataclass(frozen=True, slots=True)
class TokenPolicy:
    """The requirements for a token."""

    audience: str
    issuer: str = ""
    """Empty for any."""
    skew_s: float = 30.0
    """Tolerated difference between the clocks of the signer and of this server."""
    tenants: Collection[str] = ()
    """Tenants besides the default one."""


class TokenVerifier:
    """Verifies tokens.

    Parameters
    ----------
    keys
        The file of public keys.
    policy
        The requirements for tokens.
    quotas
        The quotas of callers, by role.
    clock
        Seconds since 1970.
    accounts
        The accounts of callers.
    """

    def __init__(
        self,
        keys: WatchedFiles[Keys],
        policy: TokenPolicy,
        quotas: Quotas,
        clock: Callable[[], float] = time.time,
        accounts: Accounts | None = None,
    ) -> None:
        self._keys = keys
        self._policy = policy
        self._quotas = quotas
        self._clock = clock
        self.accounts = accounts or Accounts()
        self._generation = keys.generation
        self._kept: LruCache[bytes, Principal] = LruCache(_KEPT_MAX)

    def principal(self, token: str) -> Principal:
        """Return the principal of a token.

        Raises
        ------
        RefusedError
            UNAUTHENTICATED or TOKEN_EXPIRED. It names the flaw, without any content of the token.
        """
        keys = self._keys.look()
        if self._keys.generation != self._generation:
            self._generation = self._keys.generation
            self._kept = LruCache(_KEPT_MAX)
        if len(token) > TOKEN_LENGTH_MAX:
            raise _wrong("token", f"{len(token)} characters", f"at most {TOKEN_LENGTH_MAX}")
        digest = hashlib.sha256(token.encode(errors="surrogatepass")).digest()
        found = self._kept.get(digest)
        if found is None:
            claims = self._claims(token, keys)
            found = self._principal(claims)
            self._kept.put(digest, found)
        if found.expires_s <= self._clock():
            raise expired()
        return found

    def _claims(self, token: str, keys: Keys) -> dict[str, Any]:
        policy = self._policy
        try:
            key_id = jwt.get_unverified_header(token).get("kid")
            key = keys.get(key_id) if isinstance(key_id, str) else None
            if key is None:
                raise _wrong("token.kid", "absent or not known", "that of a key of this server")
            return jwt.decode(
                token,
                key,
                algorithms=[key.algorithm_name],
                audience=policy.audience,
                issuer=policy.issuer or None,
                leeway=policy.skew_s,
                options={"require": ["exp", "sub", "aud"], "verify_exp": False},
            )
        except jwt.ImmatureSignatureError:
            limit = f"at most {policy.skew_s:g} s ahead of this server's clock"
            raise _wrong("token.nbf or token.iat", "in the future", limit) from None
        except jwt.InvalidAudienceError:
            raise _wrong("token.aud", "another", "the audience of this server") from None
        except jwt.InvalidIssuerError:
            raise _wrong("token.iss", "another", "the issuer of this server") from None
        except jwt.MissingRequiredClaimError as error:
            raise _wrong(f"token.{error.claim}", "absent", "there") from None
        except jwt.exceptions.InvalidSubjectError:
            raise _wrong("token.sub", "not a text", "a text") from None
        except (jwt.PyJWTError, ValueError, TypeError, LookupError, RecursionError):
            raise _wrong("token", "not known", "signed with a key of this server") from None

    def _principal(self, claims: Mapping[str, Any]) -> Principal:
        name = claims["sub"]
        if not is_name(name):
            raise _wrong("token.sub", "not a name", f"1 to {NAME_LENGTH_MAX} printable characters")
        roles = _roles(claims.get("roles"))
        tenant = claims.get("tenant", DEFAULT_TENANT)
        if tenant != DEFAULT_TENANT and tenant not in self._policy.tenants:
            raise _wrong("token.tenant", repr(tenant), "absent, or a tenant of this server")
        expires_s = claims["exp"]
        is_number = isinstance(expires_s, int | float) and not isinstance(expires_s, bool)
        if not is_number or not 0 < expires_s < _TIME_MAX_S:  # false for NaN, too
            raise _wrong("token.exp", "not a time", "seconds since 1970")
        quota = max((self._quotas.get(role, Quota()) for role in roles), key=_width)
        account = self.accounts.account(tenant, name, quota)
        return Principal(name, roles, tenant, float(expires_s) + self._policy.skew_s, account)


def expired() -> RefusedError:
    """Return the refusal of an expired token."""
    return RefusedError(
        Reason.TOKEN_EXPIRED, "token.exp", "in the past", "in the future; use another token"
    )


def _roles(found: Any) -> frozenset[Role]:  # noqa: ANN401 - JSON
    known = {role.value: role for role in Role}
    limit = f"a list of one or more of {', '.join(known)}"
    if not isinstance(found, list) or not found:
        raise _wrong("token.roles", "absent or not a list", limit)
    for one in found:
        if not isinstance(one, str) or one not in known:
            raise _wrong("token.roles", repr(one), limit)
    return frozenset(known[one] for one in found)


def _width(quota: Quota) -> tuple[float, float]:
    return quota.operations_per_s, quota.streams_max


def _wrong(field: str, shown: str, limit: str) -> RefusedError:
    return RefusedError(Reason.UNAUTHENTICATED, field, shown, limit)
