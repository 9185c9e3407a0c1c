"""Loopback addresses: data sent to them does not leave this machine."""

from __future__ import annotations

import ipaddress
from urllib.parse import unquote

_LOCAL_SCHEMES = ("unix", "unix-abstract")
_LISTS = ("ipv4", "ipv6")


def is_loopback(target: str) -> bool:
    """Return whether an address reaches this machine only. A name may belong to any machine."""
    scheme, colon, rest = target.partition(":")
    if colon and scheme in _LOCAL_SCHEMES:
        return True
    if colon and scheme in _LISTS:
        return all(_is_local(_host(one)) for one in rest.removeprefix("///").split(","))
    if colon and scheme == "dns":
        rest = rest.rpartition("/")[2] if rest.startswith("//") else rest
        return _is_local(_host(rest))
    return _is_local(_host(target))


def _host(address: str) -> str:
    """Return the host of ``HOST``, ``HOST:PORT`` or ``[HOST]:PORT``."""
    address = unquote(address)
    if address.startswith("["):
        return address[1:].partition("]")[0]
    host, colon, _ = address.rpartition(":")
    return host if colon and ":" not in host else address


def _is_local(host: str) -> bool:
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False
