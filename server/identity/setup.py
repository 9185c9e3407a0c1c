"""Identity according to the settings."""

from __future__ import annotations

from typing import NamedTuple

from server.identity.authenticator import Authenticator
from server.identity.certificates import Certificates, watched_certificates
from server.identity.keys import read_keys
from server.identity.tokens import TokenPolicy, TokenVerifier
from server.identity.watched_file import WatchedFiles
from server.principal import Role
from server.quotas import Accounts, Quota
from server.settings import ServerSettings

DEVICE_STREAMS_MAX = 8
"""A phone has one stream, and another while it changes networks."""

DEVICE_CALLS_MAX = 64
"""Searches and similar calls that a device may have in progress."""

_STREAMS_MAX = 10_000
"""Streams of any other caller: a gateway may have one for each of its devices."""


_WEIGHT_OF_MANY = 8.0
"""Turns for each one of a device when several callers wait: the caller acts for many."""


class Identity(NamedTuple):
    """The authentication of callers, and the server's certificates."""

    authenticator: Authenticator
    certificates: WatchedFiles[Certificates] | None


def _quota_of_many(rate: float, share: float) -> Quota:
    """Return the quota of a caller that acts for many."""
    return Quota(rate, _STREAMS_MAX, share, _STREAMS_MAX, _WEIGHT_OF_MANY)


def identity_of(settings: ServerSettings) -> Identity:
    """Return the authenticator and certificates of the settings.

    Raises
    ------
    FileError
        If a key or certificate cannot be used.
    """
    verifier = None
    if settings.jwks is not None:
        path = settings.jwks
        policy = TokenPolicy(
            settings.token_audience, settings.token_issuer, settings.token_skew_s, settings.tenants
        )
        quotas = {
            Role.DEVICE: Quota(
                settings.device_rate, DEVICE_STREAMS_MAX, settings.device_share, DEVICE_CALLS_MAX
            ),
            Role.GATEWAY: _quota_of_many(settings.gateway_rate, settings.gateway_share),
            Role.PUBLISHER: _quota_of_many(settings.publisher_rate, settings.publisher_share),
            Role.OPERATOR: _quota_of_many(settings.operator_rate, settings.operator_share),
        }
        keys = WatchedFiles([path], lambda: read_keys(path))
        verifier = TokenVerifier(keys, policy, quotas, accounts=Accounts(settings.tenant_share))
    certificates = None
    if settings.tls_certificate is not None and settings.tls_key is not None:
        certificates = watched_certificates(
            settings.tls_certificate, settings.tls_key, settings.tls_client_roots
        )
    return Identity(Authenticator(settings.tokens, verifier), certificates)
