"""Hints about failed connections from gRPC's report, such as TLS at one end only."""

from __future__ import annotations

_REFUSED = "Connection refused"
_UNRESOLVED = ("errors resolving", "DNS resolution failed")
ADDRESS_HINTS = {
    _REFUSED: "is a server running at this address?",
    **dict.fromkeys(_UNRESOLVED, "is the name of the host right, and does this machine know it?"),
}
"""Hints about the address, by parts of gRPC's report."""
_ONE_OF_SEVERAL = "is a server running at this address, with TLS at both ends or at neither?"
"""gRPC reports one address of a host, such as the one by IPv6, where nothing may listen."""
_WITH_TLS = {
    "WRONG_VERSION_NUMBER": "does the server use TLS? If not, leave out tls=",
    "CERTIFICATE_VERIFY_FAILED": "its certificate is not from one of the roots: set others with "
    "Tls(root_certificates=...)",
    "Hostname Verification": "its certificate has another name: set it with Tls(server_name=...)",
    **ADDRESS_HINTS,
}
"""Hints by parts of gRPC's report."""
_NOT_CONNECTED = ("failed to connect", *_UNRESOLVED)
_WITHOUT_TLS = {
    **dict.fromkeys(
        ("Socket closed", "Connection reset"), "does the server require TLS? Set tls=nearcast.Tls(...)"
    ),
    **ADDRESS_HINTS,
}
"""Hints for the first connection only: a connection that breaks later has the same report."""


def connection_hint(details: str, *, is_encrypted: bool) -> str:
    """Return the likely mistake behind gRPC's report of a failed connection; empty if unknown."""
    if not is_encrypted and not any(phrase in details for phrase in _NOT_CONNECTED):
        return ""
    if _REFUSED in details and "ipv6:" in details:
        return _ONE_OF_SEVERAL
    hints = _WITH_TLS if is_encrypted else _WITHOUT_TLS
    return next((hint for phrase, hint in hints.items() if phrase in details), "")
