"""TLS of the port: new connections get the certificate that was loaded last.

Each certificate gets a context of its own, which replaces the previous one only if OpenSSL has accepted
it. Loading into the context in use could leave it without a key if the files are exchanged meanwhile, and
would keep the previous certificate beside a new one with another kind of key.
"""

from __future__ import annotations

import logging
import ssl

from identity.certificates import Certificates
from identity.watched_file import FileError, WatchedFiles

_log = logging.getLogger(__name__)


class PortTls:
    """The TLS of the port.

    Parameters
    ----------
    certificates
        The files of the port.

    Raises
    ------
    FileError
        If OpenSSL does not accept them.
    """

    def __init__(self, certificates: WatchedFiles[Certificates]) -> None:
        self._certificates = certificates
        self._generation = certificates.generation
        self._failure = ""
        self._current = _loaded(certificates)
        self.context = _loaded(certificates)
        """The context to listen with."""
        self.context.sni_callback = self._choose

    def look(self) -> None:
        """Load the files if they have changed; log it if OpenSSL does not accept them."""
        self._certificates.look()
        if self._certificates.generation == self._generation:
            return
        generation = self._certificates.generation
        try:
            self._current = _loaded(self._certificates)
        except FileError as error:
            failure = str(error)
            if failure != self._failure:
                _log.error("the previous certificate stays in force: %s", failure)
            self._failure = failure
        else:
            self._generation, self._failure = generation, ""

    def _choose(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        """Give a connection the certificate that was loaded last."""
        connection.context = self._current


def _loaded(certificates: WatchedFiles[Certificates]) -> ssl.SSLContext:
    """Return a context with the certificate and key in the files.

    Raises
    ------
    FileError
        If OpenSSL does not accept them.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    certificate, key = certificates.paths[:2]
    try:
        context.load_cert_chain(certificate, key)
    except OSError as error:  # ssl.SSLError is one
        reason = error.reason if isinstance(error, ssl.SSLError) else error.strerror
        raise FileError(f"OpenSSL cannot use {certificate} with {key}: {reason}") from None
    return context
