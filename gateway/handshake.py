"""The handshake of a WebSocket: its address, its origin, its subprotocols and its token."""

from __future__ import annotations

from collections.abc import Collection

from aiohttp import web

from gateway.counters import Counters
from identity.bearer import HEADER, bearer_token
from nearcast.errors import Reason, RefusedError

PROTOCOL = "nearcast.v1"
_CLOSE_S = 5.0
"""How long to wait for the close frame of a client."""
_BEARER = "bearer."
_ORIGIN = "Origin"
_PROTOCOLS = "Sec-WebSocket-Protocol"
_TEXTS = ("Connection", "Upgrade", "Sec-WebSocket-Version", "Sec-WebSocket-Key")
"""Headers that aiohttp reads, or repeats in its response."""
ANY_ORIGIN = "*"
_WRITER_LIMIT = 256 * 1024


def require_handshake(request: web.Request, origins: Collection[str]) -> None:
    """Verify the address, the origin, the subprotocol and the text of a handshake.

    Raises
    ------
    RefusedError
        INVALID_FIELD, or PERMISSION_DENIED for the origin.
    """
    require_plain_address(request)
    require_origin(request, origins)
    if PROTOCOL not in _offered(request):
        limit = f"offered: this gateway speaks {PROTOCOL} only"
        raise RefusedError(Reason.INVALID_FIELD, _PROTOCOLS, "of another kind", limit)
    for name in _TEXTS:
        if not request.headers.get(name, "").isascii():
            raise RefusedError(Reason.INVALID_FIELD, name, "of another form", "ASCII, as in RFC 6455")


def accepted(
    request: web.Request,
    origins: Collection[str],
    counters: Counters,
    heartbeat_s: float,
    frame_bytes_max: int,
    writer_limit: int = _WRITER_LIMIT,
) -> web.WebSocketResponse:
    """Return the WebSocket of a valid handshake, which the caller prepares; count one that is refused.

    Parameters
    ----------
    request
        The handshake.
    origins
        Origins of pages that may connect.
    counters
        Count refused handshakes.
    heartbeat_s
        Seconds between two pings to the client.
    frame_bytes_max
        Maximum size of a frame in bytes.
    writer_limit
        Bytes that wait to be written, beyond which sending waits.

    Raises
    ------
    RefusedError
        See `require_handshake`.
    """
    try:
        require_handshake(request, origins)
    except RefusedError:
        counters.handshakes_refused += 1
        raise
    return web.WebSocketResponse(
        timeout=_CLOSE_S,
        heartbeat=heartbeat_s,
        protocols=(PROTOCOL,),
        compress=False,
        autoping=False,
        max_msg_size=frame_bytes_max + 1,  # of which a frame must stay below
        writer_limit=writer_limit,
    )


def require_plain_address(request: web.Request) -> None:
    """Raise RefusedError if an address has a query: a token in it would be in logs of proxies."""
    if request.rel_url.query_string:
        limit = f"absent: a token goes into the header {_PROTOCOLS} or {HEADER}"
        raise RefusedError(Reason.INVALID_FIELD, "query", "there", limit)


def require_origin(request: web.Request, origins: Collection[str]) -> None:
    """Raise RefusedError if the page of a browser may not use this gateway."""
    origin = request.headers.get(_ORIGIN)
    if origin is not None and not is_allowed(origin, origins):
        limit = "one that --origin allows"
        raise RefusedError(Reason.PERMISSION_DENIED, _ORIGIN, repr(origin), limit)


def is_allowed(origin: str, origins: Collection[str]) -> bool:
    """Return whether the pages of an origin may use this gateway."""
    return origin in origins or ANY_ORIGIN in origins


def header_token(request: web.Request) -> str | None:
    """Return the token in the headers of a request; None if there is none.

    Raises
    ------
    RefusedError
        UNAUTHENTICATED, if there are several, or it has characters that no token has.
    """
    found = [one.removeprefix(_BEARER) for one in _offered(request) if one.startswith(_BEARER)]
    token = bearer_token(request.headers.getall(HEADER, []))
    found += [] if token is None else [token]
    if len(found) > 1:
        limit = "there once"
        raise RefusedError(Reason.UNAUTHENTICATED, "token", f"there {len(found)} times", limit)
    if not found:
        return None
    (token,) = found
    if not (token.isascii() and token.isprintable()):
        raise RefusedError(Reason.UNAUTHENTICATED, "token", "in another form", "of printable characters")
    return token


def _offered(request: web.Request) -> list[str]:
    values = request.headers.getall(_PROTOCOLS, [])
    return [one.strip() for value in values for one in value.split(",")]
