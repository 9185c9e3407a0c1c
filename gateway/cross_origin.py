"""Calls of pages from other origins (CORS).

A browser asks before it makes a call for a page, and shows the page only responses that allow its origin.
The allowed origins are those that may open WebSockets (`--origin`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Any

from aiohttp import hdrs, web

from gateway.handshake import is_allowed
from gateway.refused_origins import RefusedOrigins
from identity.settings import is_loopback

_METHODS = "GET, POST"
_REQUEST_HEADERS = "Authorization, Content-Type, Idempotency-Key"
_MAX_AGE_S = "600"
"""How long a browser may keep the answer."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def cross_origin(origins: Collection[str], refused: RefusedOrigins) -> Any:  # noqa: ANN401 - aiohttp's
    """Return a middleware that answers browsers and names the allowed origin in responses.

    Parameters
    ----------
    origins
        Origins of pages that may call.
    refused
        Logs the origin of a preflight request that is not allowed: the browser then makes no call.
    """

    @web.middleware
    async def respond(request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer a browser that asks, or add the allowed origin to the response of a call."""
        origin = request.headers.get(hdrs.ORIGIN)
        if origin is None:
            return await handler(request)
        is_options = request.method == hdrs.METH_OPTIONS
        is_preflight = is_options and hdrs.ACCESS_CONTROL_REQUEST_METHOD in request.headers
        if not is_allowed(origin, origins):
            if is_preflight:
                refused.note(origin)
            return await handler(request)
        if is_preflight:
            return web.Response(status=204, headers=_allowed(origin) | _PREFLIGHT)
        response = await handler(request)
        if not response.prepared:
            response.headers.update(_allowed(origin))
        return response

    return respond


_PREFLIGHT = {
    hdrs.ACCESS_CONTROL_ALLOW_METHODS: _METHODS,
    hdrs.ACCESS_CONTROL_ALLOW_HEADERS: _REQUEST_HEADERS,
    hdrs.ACCESS_CONTROL_MAX_AGE: _MAX_AGE_S,
}


def _allowed(origin: str) -> dict[str, str]:
    return {
        hdrs.ACCESS_CONTROL_ALLOW_ORIGIN: origin,
        hdrs.ACCESS_CONTROL_EXPOSE_HEADERS: hdrs.RETRY_AFTER,
        hdrs.VARY: hdrs.ORIGIN,
    }


def own_origins(host: str, port: int, *, has_tls: bool) -> set[str]:
    """Return the origins of this gateway's own pages, as far as only this machine can have them.

    Beyond the loopback interface a gateway does not know its names: `--origin` gives them. It cannot
    follow the header `Host`, because a page of a foreign name can point that name at this address.
    """
    if not is_loopback(host):
        return set()
    scheme = "https" if has_tls else "http"
    return {f"{scheme}://{name}:{port}" for name in ("localhost", "127.0.0.1", "[::1]")}
