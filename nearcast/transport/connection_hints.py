"""Hints about failed connections from gRPC's report, such as TLS at one end only."""

from __future__ import annotations

from typing import NamedTuple

_REFUSED = "Connection refused"
_UNRESOLVED = ("errors resolving", "DNS resolution failed")
_NOT_CONNECTED = ("failed to connect", *_UNRESOLVED)
_OF_ADDRESSES = {
    _REFUSED: "is a server running at this address?",
    **dict.fromkeys(_UNRESOLVED, "is the name of the host right, and does this machine know it?"),
}
_ONE_OF_SEVERAL = "is a server running at this address, with TLS at both ends or at neither?"
"""gRPC reports one address of a host, such as the one by IPv6, where nothing may listen."""


class Remedies(NamedTuple):
    """What a user does about a mistake, in the words of the program; empty for nothing to say."""

    no_tls: str = ""
    needless_tls: str = ""
    unknown_root: str = ""
    other_name: str = ""


SDK = Remedies(
    "Set tls=nearcast.Tls(...)",
    "If not, leave out tls=",
    "set others with Tls(root_certificates=...)",
    "set it with Tls(server_name=...)",
)


def connection_hint(details: str, *, is_encrypted: bool) -> str:
    """Return the likely mistake of an app behind gRPC's report of a failed connection; empty if unknown.

    Without TLS only the first connection has a hint: one that breaks later has the same report.
    """
    if not is_encrypted and not any(phrase in details for phrase in _NOT_CONNECTED):
        return ""
    return likely_mistake(details, SDK, is_encrypted=is_encrypted)


def likely_mistake(details: str, remedies: Remedies, *, is_encrypted: bool) -> str:
    """Return the likely mistake behind gRPC's report of a failed connection; empty if unknown."""
    if _REFUSED in details and "ipv6:" in details:
        return _ONE_OF_SEVERAL
    hints = (_with_tls(remedies) if is_encrypted else _without_tls(remedies)) | _OF_ADDRESSES
    return next((hint for phrase, hint in hints.items() if phrase in details), "")


def _with_tls(remedies: Remedies) -> dict[str, str]:
    """Return hints for connections with TLS, by parts of gRPC's report."""
    return {
        "WRONG_VERSION_NUMBER": f"does the server use TLS? {remedies.needless_tls}".rstrip(),
        "CERTIFICATE_VERIFY_FAILED": _joined(
            "its certificate is not from one of the roots", remedies.unknown_root
        ),
        "Hostname Verification": _joined("its certificate has another name", remedies.other_name),
    }


def _without_tls(remedies: Remedies) -> dict[str, str]:
    """Return hints for connections without TLS, by parts of gRPC's report."""
    hint = f"does the server require TLS? {remedies.no_tls}".rstrip()
    return dict.fromkeys(("Socket closed", "Connection reset"), hint)


def _joined(mistake: str, remedy: str) -> str:
    return f"{mistake}: {remedy}" if remedy else mistake
