"""The server's certificate and key, and the roots that verify clients' certificates. PEM files."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)

from identity.watched_file import FileError, WatchedFiles, read_bytes


@dataclass(frozen=True, slots=True)
class Certificates:
    """The content of the files."""

    chain: bytes
    key: bytes
    client_roots: bytes | None = None
    """The roots that verify clients' certificates; None if clients need none."""


def watched_certificates(
    chain: Path, key: Path, client_roots: Path | None = None
) -> WatchedFiles[Certificates]:
    """Return certificates that are read again when their files change.

    Raises
    ------
    FileError
        If they cannot be used now.
    """
    paths = [one for one in (chain, key, client_roots) if one is not None]
    return WatchedFiles(paths, lambda: read_certificates(chain, key, client_roots))


def read_certificates(chain: Path, key: Path, client_roots: Path | None = None) -> Certificates:
    """Return the certificates in files.

    Raises
    ------
    FileError
        If one is broken or not valid now, or the key does not belong to the certificate.
    """
    chain_pem, key_pem = read_bytes(chain), read_bytes(key)
    certificates = read_chain(chain_pem, chain)
    private = read_private_key(key_pem, key)
    if _spki(private.public_key()) != _spki(certificates[0].public_key()):
        raise FileError(f"{key} does not belong to the certificate {chain}")
    _require_valid_now(certificates[0], chain)
    if client_roots is None:
        return Certificates(chain_pem, key_pem)
    roots_pem = read_bytes(client_roots)
    for one in read_chain(roots_pem, client_roots):
        _require_valid_now(one, client_roots)
    return Certificates(chain_pem, key_pem, roots_pem)


def read_private_key(pem: bytes, path: Path) -> PrivateKeyTypes:
    """Return the private key in a file.

    Raises
    ------
    FileError
        If there is none that can be used.
    """
    try:
        return load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise FileError(f"{path} is not a private key in PEM without a password") from None


def read_chain(pem: bytes, path: Path) -> list[x509.Certificate]:
    """Return the certificates in a file.

    Raises
    ------
    FileError
        If there are none, or one is broken.
    """
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError:
        raise FileError(f"{path} has no certificate in PEM, or a damaged one") from None


def _require_valid_now(certificate: x509.Certificate, path: Path) -> None:
    now = datetime.now(UTC)
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if not begin <= now <= end:
        raise FileError(
            f"{path} is valid from {begin:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} UTC, and the clock of "
            f"this machine shows {now:%Y-%m-%d %H:%M}: renew the certificate, or correct the clock"
        )


def _spki(key: object) -> bytes:
    encoded: bytes = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)  # type: ignore[attr-defined]
    return encoded
