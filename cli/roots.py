"""Certificates to verify a server with: those of a file, or the system's."""

from __future__ import annotations

import ssl
from pathlib import Path

_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
"""Where systems keep theirs, if OpenSSL has no file: it may have a folder, and reads that when needed."""
_BEGIN = b"-----BEGIN CERTIFICATE-----"


class RootsError(Exception):
    """Certificates cannot be used."""


def roots_of(path: Path) -> bytes:
    """Read certificates in PEM.

    Raises
    ------
    RootsError
        If the file cannot be read or has none, or one that cannot be decoded.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise RootsError(f"{path} cannot be read: {error.strerror}") from None
    if _BEGIN not in content:
        raise RootsError(f"{path} has no certificate in PEM")
    try:
        text = content.decode("ascii")
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError):
        raise RootsError(f"{path} has a certificate that cannot be decoded") from None
    return content


def system_roots() -> bytes | None:
    """Return the certificates that programs of this machine trust; None for those that gRPC brings along.

    `SSL_CERT_FILE` names others, as for OpenSSL.
    """
    found = ssl.create_default_context().get_ca_certs(binary_form=True)
    if found:
        return "".join(map(ssl.DER_cert_to_PEM_cert, found)).encode("ascii")
    return next((path.read_bytes() for path in map(Path, _BUNDLES) if path.is_file()), None)
