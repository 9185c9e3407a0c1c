"""Parse the address of a server: a host, optionally with a port.

The SDK and the command line use the same rule.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

PORT = 7433
"""Default port of a server."""
_PORT_MAX = 65_535

_OF_GRPC = ("unix:", "unix-abstract:", "vsock:", "dns:", "ipv4:", "ipv6:", "xds:")
"""Prefixes of addresses in schemes that only gRPC can parse."""


class AddressError(ValueError):
    """A text is not the address of a server.

    Parameters
    ----------
    text
        The given text.
    limit
        Description of a valid address.
    scheme
        Scheme at the start of the text, as in addresses of web pages; empty if there is none.
    """

    def __init__(self, text: str, limit: str, scheme: str = "") -> None:
        super().__init__(f"{text!r} must be {limit}")
        self.limit = limit
        self.scheme = scheme


def server_address(text: str) -> str:
    """Return ``HOST:PORT`` for ``HOST`` or ``HOST:PORT``; the default port is 7433.

    Raises
    ------
    AddressError
        If the text is not an address, or has a scheme.
    """
    scheme, separator, rest = text.partition("://")
    if separator:
        host = rest.partition("/")[0] or "localhost"
        raise AddressError(text, f"HOST[:PORT] without {scheme}://, such as {host}: it is gRPC", scheme)
    host, port = _parts(text)
    if not host or any(one.isspace() or one in "/@?#[]" for one in host):
        raise AddressError(text, f"HOST[:PORT], such as localhost or [::1]:{PORT}")
    if not (port.isascii() and port.isdecimal() and 1 <= int(port) <= _PORT_MAX):
        raise AddressError(text, f"HOST[:PORT] with a port from 1 to {_PORT_MAX}, and not {port!r}")
    return joined_address(host, port)


def joined_address(host: str, port: int | str) -> str:
    """Return ``HOST:PORT``, with [ ] around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def grpc_target(text: str) -> str:
    """Return the target for gRPC: the address of a server, or an address in a scheme of gRPC.

    Raises
    ------
    AddressError
        If the text is neither.
    """
    return text if text.startswith(_OF_GRPC) else server_address(text.strip())


def address_texts(addresses: str | Iterable[str]) -> list[str]:
    """Return the addresses in a text with commas, or in a collection; they are not validated.

    An address in a scheme of gRPC may itself have commas.
    """
    if not isinstance(addresses, str):
        return list(addresses)
    return [addresses] if addresses.startswith(_OF_GRPC) else addresses.split(",")


def _parts(text: str) -> tuple[str, str]:
    """Split an address into host and port; use the default port if none is given."""
    if _is_ipv6(text):
        return text, str(PORT)
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        is_right = _is_ipv6(host) and rest[:1] in ("", ":")
        return host if is_right else "", rest[1:] if rest else str(PORT)
    host, colon, port = text.rpartition(":")
    return ("" if ":" in host else host, port) if colon else (text, str(PORT))


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True
