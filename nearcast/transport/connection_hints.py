"""Why a connection cannot be made, where gRPC's report shows it: TLS at one end, none at the other."""

from __future__ import annotations

_WITH_TLS = {
    "WRONG_VERSION_NUMBER": "does the server use TLS? If not, leave out tls=",
    "CERTIFICATE_VERIFY_FAILED": "its certificate is not from one of the roots: "
    "Tls(root_certificates=...) gives others",
    "Hostname Verification": "its certificate has another name: Tls(server_name=...) gives it",
}
"""By what gRPC reports."""
_NOT_CONNECTED = "failed to connect"
_WITHOUT_TLS = dict.fromkeys(
    ("Socket closed", "Connection reset"), "does the server ask for TLS? Give tls=nearcast.Tls(...)"
)
"""While there is no connection yet: one that was there breaks in the same words."""


def connection_hint(details: str, *, is_encrypted: bool) -> str:
    """Return what may be wrong with a connection, by gRPC's report; empty if nothing is known."""
    if not is_encrypted and _NOT_CONNECTED not in details:
        return ""
    hints = _WITH_TLS if is_encrypted else _WITHOUT_TLS
    return next((hint for phrase, hint in hints.items() if phrase in details), "")
