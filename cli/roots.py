"""Root certificates to verify a server: from a file, or from the system."""

from __future__ import annotations

import ssl
from pathlib import Path

_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
"""Certificate files of common systems, used if OpenSSL has no file but perhaps a folder, which it reads
on demand."""
_BEGIN = b"-----BEGIN CERTIFICATE-----"


class RootsError(Exception):
    """The certificates cannot be used."""


def roots_of(path: Path) -> bytes:
    """Read certificates from a PEM file.

    Raises
    ------
    RootsError
        If the file cannot be read, has no certificate, or has one that cannot be decoded.
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
    """Return the certificates that programs on this machine trust; None for those of gRPC itself.

    `SSL_CERT_FILE` names another file, as for OpenSSL.
    """
    found = ssl.create_default_context().get_ca_certs(binary_form=True)
    if found:
        return "".join(map(ssl.DER_cert_to_PEM_cert, found)).encode("ascii")
    return next((path.read_bytes() for path in map(Path, _BUNDLES) if path.is_file()), None)
