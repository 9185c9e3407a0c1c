"""Root certificates from a file, to verify a server."""

from __future__ import annotations

import ssl
from pathlib import Path

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
