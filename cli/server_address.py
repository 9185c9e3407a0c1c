"""Where a server is, as people write it: a host, perhaps with a port."""

from __future__ import annotations

import ipaddress
from typing import Any

import click

PORT = 7433
"""The server's, unless it is given another."""
_PORT_MAX = 65_535


class ServerAddress(click.ParamType[Any]):
    """HOST or HOST:PORT, without a scheme; becomes HOST:PORT."""

    name = "HOST[:PORT]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ANN401
        """Read it."""
        text = str(value).strip()
        scheme, separator, rest = text.partition("://")
        if separator:
            host = rest.partition("/")[0]
            self.fail(
                f"{text!r} must be HOST[:PORT] without {scheme}://, such as {host or 'localhost'}: "
                "it is gRPC, and --tls asks for TLS",
                param,
                ctx,
            )
        host, port = _parts(text)
        if not host or any(one.isspace() or one in "/@?#[]" for one in host):
            self.fail(f"{text!r} must be HOST[:PORT], such as localhost or [::1]:{PORT}", param, ctx)
        if not (port.isascii() and port.isdecimal() and 1 <= int(port) <= _PORT_MAX):
            self.fail(f"the port of {text!r} is {port!r}, must be 1 to {_PORT_MAX}", param, ctx)
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


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
