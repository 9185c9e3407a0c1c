"""The Host header of an HTTP request to a port on the loopback interface.

A browser that shows a foreign page may send requests to ports of its own machine, and the page can read
the responses if a name of its owner resolves to this machine: the Host header then has that name. So a
port on the loopback interface that requires no token only accepts names of the loopback interface.
"""

from __future__ import annotations

from identity.settings import is_loopback


def host_name(header: str) -> str:
    """Return the name in a Host header in lower case, without the port and the [ ] of an IPv6 address."""
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return (header.rpartition(":")[0] or header).lower().rstrip(".")


def is_own_host(header: str | None) -> bool:
    """Return whether a Host header is absent, as in HTTP/1.0, or has a name of the loopback interface."""
    return header is None or is_loopback(host_name(header))
