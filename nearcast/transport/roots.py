"""The root certificates that this machine trusts, which gRPC does not read by itself."""

from __future__ import annotations

import ssl
from functools import cache
from pathlib import Path

_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
"""Certificate files of common systems, used if OpenSSL has no file but perhaps a folder, which it reads
on demand."""


@cache
def system_roots() -> bytes | None:
    """Return the certificates that programs on this machine trust, PEM; None for those of gRPC itself.

    `SSL_CERT_FILE` names another file, as for OpenSSL. They are read once in a process: some 50 ms.
    """
    found = ssl.create_default_context().get_ca_certs(binary_form=True)
    if found:
        return "".join(map(ssl.DER_cert_to_PEM_cert, found)).encode("ascii")
    return next((path.read_bytes() for path in map(Path, _BUNDLES) if path.is_file()), None)
