"""Identity according to the settings of a server or a gateway."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple, Protocol

from identity.authenticator import Authenticator
from identity.certificates import Certificates, watched_certificates
from identity.keys import read_keys
from identity.quotas import Accounts, Quota
from identity.tokens import Quotas, TokenPolicy, TokenVerifier
from identity.watched_file import WatchedFiles

DEVICE_STREAMS_MAX = 8
"""A phone has one stream, and another while it changes networks."""

DEVICE_CALLS_MAX = 64
"""Searches and similar calls that a device may have in progress."""

PUBLISHER_STREAMS_MAX = 64
"""The server may have read a request of 4 MiB from each before it can wait."""

_STREAMS_MAX = 10_000
"""Streams of any other caller: a gateway may have one for each of its devices."""


_WEIGHT_OF_MANY = 8.0
"""Turns for each one of a device when several callers wait: the caller acts for many."""


class Identity(NamedTuple):
    """The authentication of callers, and the certificates of the port."""

    authenticator: Authenticator
    certificates: WatchedFiles[Certificates] | None


class IdentitySettings(Protocol):
    """The settings of identity, which server and gateway declare alike (`identity/settings.py`)."""

    @property
    def tokens(self) -> Collection[str]:
        """Secrets for development."""

    @property
    def jwks(self) -> Path | None:
        """The file of public keys."""

    @property
    def token_audience(self) -> str:
        """The audience of tokens."""

    @property
    def token_issuer(self) -> str:
        """The issuer of tokens; empty for any."""

    @property
    def token_skew_s(self) -> float:
        """Tolerated difference of clocks."""

    @property
    def tenants(self) -> Collection[str]:
        """Tenants besides the default one."""

    @property
    def tls_certificate(self) -> Path | None:
        """The certificate chain of the port."""

    @property
    def tls_key(self) -> Path | None:
        """Its private key."""


def quota_of_device(rate: float, share: float) -> Quota:
    """Return the quota of a device."""
    return Quota(rate, DEVICE_STREAMS_MAX, share, DEVICE_CALLS_MAX)


def quota_of_many(rate: float, share: float, streams_max: int = _STREAMS_MAX) -> Quota:
    """Return the quota of a caller that acts for many."""
    return Quota(rate, streams_max, share, _STREAMS_MAX, _WEIGHT_OF_MANY)


def quota_of_publisher(rate: float, share: float) -> Quota:
    """Return the quota of a publisher."""
    return quota_of_many(rate, share, PUBLISHER_STREAMS_MAX)


def identity_of(
    settings: IdentitySettings,
    quotas: Quotas,
    accounts: Accounts,
    client_roots: Path | None = None,
) -> Identity:
    """Return the authenticator and certificates of the settings.

    Parameters
    ----------
    settings
        The settings of a server or a gateway.
    quotas
        The quotas of each role.
    accounts
        The accounts of callers.
    client_roots
        The roots that verify clients' certificates; None if clients need none.

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
        keys = WatchedFiles([path], lambda: read_keys(path))
        verifier = TokenVerifier(keys, policy, quotas, accounts=accounts)
    certificates = None
    if settings.tls_certificate is not None and settings.tls_key is not None:
        certificates = watched_certificates(settings.tls_certificate, settings.tls_key, client_roots)
    return Identity(Authenticator(settings.tokens, verifier), certificates)
