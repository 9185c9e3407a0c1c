"""Where a server is, as people write it: a host, perhaps with a port.

The rule is that of the SDK and of the command line.
"""

from __future__ import annotations

import ipaddress

PORT = 7433
"""The server's, unless it is given another."""
_PORT_MAX = 65_535

_OF_GRPC = ("unix:", "unix-abstract:", "vsock:", "dns:", "ipv4:", "ipv6:", "xds:")
"""How addresses begin that only gRPC knows to read."""


class AddressError(ValueError):
    """A text is not the address of a server.

    Parameters
    ----------
    text
        What was given.
    limit
        What would be an address.
    scheme
        What the text begins with, as addresses of web pages do; empty for nothing.
    """

    def __init__(self, text: str, limit: str, scheme: str = "") -> None:
        super().__init__(f"{text!r} must be {limit}")
        self.limit = limit
        self.scheme = scheme


def server_address(text: str) -> str:
    """Return HOST:PORT of HOST or HOST:PORT, with the server's usual port where none is given.

    Raises
    ------
    AddressError
        If it is no address, or has a scheme.
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
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def grpc_target(text: str) -> str:
    """Return what gRPC connects to: the address of a server, or a name that only gRPC knows to read.

    Raises
    ------
    AddressError
        If it is neither.
    """
    return text if text.startswith(_OF_GRPC) else server_address(text.strip())


def _parts(text: str) -> tuple[str, str]:
    """Divide an address into host and port, the usual one where none is given."""
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
