"""Credentials of the port: certificate files are checked again for each new connection."""

from __future__ import annotations

import grpc

from identity.certificates import Certificates
from identity.watched_file import WatchedFiles


def credentials_of(files: WatchedFiles[Certificates]) -> grpc.ServerCredentials:
    """Return credentials that follow their files. Open connections are not affected."""
    current = files.content
    needs_clients = current.client_roots is not None

    def fetch() -> grpc.ServerCertificateConfiguration | None:
        """Return another configuration if the files have changed. A thread of gRPC calls this."""
        nonlocal current
        found = files.look()
        if found is current:
            return None
        current = found
        return _configuration(found)

    return grpc.dynamic_ssl_server_credentials(
        _configuration(current),
        fetch,  # type: ignore[arg-type] # None is allowed, for unchanged files
        require_client_authentication=needs_clients,
    )


def _configuration(certificates: Certificates) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration(
        [(certificates.key, certificates.chain)], certificates.client_roots
    )
