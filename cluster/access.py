"""How a node reaches the servers of a log: TLS, and credentials from files.

Errors start with the name of the setting, as `server/settings.py` has it.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.credentials import read_credentials
from cluster.log import LogError

TLS = "tls://"
"""Addresses that start with this are of servers that must offer TLS."""


@dataclass(frozen=True, slots=True)
class LogAccess:
    """The files that a node needs at the servers of the log, and at their monitoring ports."""

    ca: Path | None = None
    """Root certificates of the servers, PEM; None for those of this machine."""
    certificate: Path | None = None
    key: Path | None = None
    """Certificate of the node, and its private key, PEM."""
    credentials: Path | None = None
    """A credentials file of NATS."""
    user: str = ""
    password_file: Path | None = None
    token_file: Path | None = None

    def context(self) -> ssl.SSLContext:
        """Return what verifies servers.

        Raises
        ------
        LogError
            If a file cannot be used.
        """
        try:
            found = ssl.create_default_context(cafile=self.ca)
        except OSError as error:
            raise LogError(f"log_ca is {str(self.ca)!r}, has no root certificates: {error}") from error
        if self.certificate is not None:
            try:
                found.load_cert_chain(self.certificate, self.key)
            except OSError as error:
                name = str(self.certificate)
                raise LogError(f"log_cert is {name!r}, cannot be used with its key: {error}") from error
        return found

    def options(self) -> dict[str, Any]:
        """Return the credentials as arguments of `nats.connect`.

        Raises
        ------
        LogError
            If a file cannot be read.
        """
        if self.credentials is not None:
            return self._signing(self.credentials)
        if self.token_file is not None:
            return {"token": _secret("log_token_file", self.token_file)}
        if self.password_file is not None:
            return {"user": self.user, "password": _secret("log_password_file", self.password_file)}
        return {}

    def _signing(self, path: Path) -> dict[str, Any]:
        """Return functions that read the file whenever the node connects: it may be renewed."""
        try:
            read_credentials(path)
        except (OSError, ValueError) as error:
            raise LogError(f"log_credentials is {str(path)!r}, cannot be used: {error}") from error

        def jwt() -> bytes:
            return read_credentials(path).jwt.encode()

        def signature(nonce: str) -> bytes:
            return read_credentials(path).signature(nonce)

        return {"user_jwt_cb": jwt, "signature_cb": signature}

    def refusal(self, error: Exception | None) -> str:
        """Return why servers were not reached if it is a matter of access; empty otherwise."""
        if isinstance(error, ssl.SSLCertVerificationError):
            reason = f"does not verify the certificate of a server of the log: {error.verify_message}"
            return f"log_ca is {None if self.ca is None else str(self.ca)!r}, {reason}"
        if isinstance(error, ssl.SSLError):
            return f"log_cert is missing or not accepted: a server of the log ends TLS: {error.reason}"
        if error is not None and "authorization violation" in str(error).lower():
            return f"{self._given()} not accepted by a server of the log"
        return ""

    def _given(self) -> str:
        """Return the start of a message about credentials."""
        if self.credentials is not None:
            return f"log_credentials is {str(self.credentials)!r},"
        if self.token_file is not None:
            return f"log_token_file is {str(self.token_file)!r},"
        if self.password_file is not None:
            return f"log_user is {self.user!r},"
        return "log_credentials, log_user and log_token_file are empty,"


def _secret(setting: str, path: Path) -> str:
    try:
        found = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError) as error:
        raise LogError(f"{setting} is {str(path)!r}, cannot be read: {error}") from error
    if not found:
        raise LogError(f"{setting} is {str(path)!r}, must not be empty")
    return found
