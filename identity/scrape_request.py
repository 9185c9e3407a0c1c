"""A request for metrics: the head of an HTTP request, parsed strictly, and the check of its host."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

from identity.host_header import is_own_host

HEAD_BYTES_MAX = 8 * 1024
"""Maximum size of a request, which has no body."""

_HEADERS_MAX = 100
_PARTS = len(("GET", "/metrics", "HTTP/1.1"))


class Scrape(NamedTuple):
    """A parsed request.

    Parameters
    ----------
    is_head
        Whether the response has no body.
    names
        The requested metrics; empty for all.
    accept
        The accepted formats.
    is_gzip
        Whether the response may be compressed.
    """

    is_head: bool
    names: tuple[str, ...]
    accept: str
    is_gzip: bool


class BadRequestError(Exception):
    """A request is refused.

    Parameters
    ----------
    status
        The status line of the response.
    """

    def __init__(self, status: str) -> None:
        super().__init__(status)
        self.status = status


def scrape_from(head: bytes, *, is_local: bool) -> Scrape:
    """Return the request in a head, which ends with an empty line.

    Parameters
    ----------
    head
        Its bytes.
    is_local
        Whether its host must be a name of the loopback interface.

    Raises
    ------
    BadRequestError
        If it is not valid, or must be refused.
    """
    first, *lines = head.decode("latin-1").split("\r\n")
    parts = first.split(" ")
    if len(parts) != _PARTS or not parts[2].startswith("HTTP/1."):
        raise BadRequestError("400 Bad Request")
    method, target, _ = parts
    if method not in ("GET", "HEAD"):
        raise BadRequestError("405 Method Not Allowed")
    headers = _headers([line for line in lines if line])
    if is_local and not is_own_host(headers.get("host")):
        raise BadRequestError("421 Misdirected Request")
    try:
        query = parse_qs(urlsplit(target).query, max_num_fields=_HEADERS_MAX)
    except ValueError:
        raise BadRequestError("400 Bad Request") from None
    return Scrape(
        method == "HEAD",
        tuple(query.get("name[]", ())),
        headers.get("accept", ""),
        "gzip" in headers.get("accept-encoding", ""),
    )


def _headers(lines: list[str]) -> dict[str, str]:
    """Return headers by their lower-case names."""
    if len(lines) > _HEADERS_MAX:
        raise BadRequestError("431 Request Header Fields Too Large")
    found: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        name = name.lower()
        if not colon or not name or name != name.strip() or (name == "host" and name in found):
            raise BadRequestError("400 Bad Request")
        found[name] = value.strip()
    return found
