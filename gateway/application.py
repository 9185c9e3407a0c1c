"""The HTTP application: its routes, and refusals as problem documents."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from aiohttp import hdrs, web

from gateway.attachment import Attachment
from gateway.connections import noting
from gateway.counters import Counters
from gateway.cross_origin import cross_origin
from gateway.handshake import ANY_ORIGIN
from gateway.http_api import HttpApi
from gateway.openapi import document, page
from gateway.problems import plain_problem, problem
from gateway.refused_origins import RefusedOrigins
from gateway.watching import Watching
from identity.host_header import host_name, is_own_host
from nearcast.errors import Reason, RefusedError
from nearcast.wire.errors import error_message

_log = logging.getLogger(__name__)

_BODY_BYTES_MAX = 4 * 1024 * 1024
"""Of any request; calls have bounds of their own below."""

ATTACH = "/v1/attach"
WATCH = "/v1/watch"
HEALTH = "/healthz"
READINESS = "/readyz"
_HEALTH_PATHS = (HEALTH, READINESS)
DESCRIPTION = "/v1/openapi.json"
DOCS = "/v1/docs"

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    "X-Content-Type-Options": "nosniff",
}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Readiness:
    """Whether this gateway takes devices."""

    def __init__(self) -> None:
        self.is_draining = False
        self.is_server_serving = False

    @property
    def is_ready(self) -> bool:
        """Whether a load balancer should send devices here."""
        return self.is_server_serving and not self.is_draining


def application(
    attachment: Attachment,
    watching: Watching,
    api: HttpApi,
    readiness: Readiness,
    counters: Counters,
    origins: Collection[str],
    map_pages: Iterable[web.RouteDef],
) -> web.Application:
    """Return the application.

    Parameters
    ----------
    attachment
        Serves the WebSockets of devices.
    watching
        Serves the WebSockets of watchers.
    api
        Serves calls.
    readiness
        The state of the gateway.
    counters
        The counters of the gateway.
    origins
        Origins of pages that may call.
    map_pages
        The routes of the live map.
    """
    refused = RefusedOrigins()
    app = web.Application(
        middlewares=(
            noting,
            cross_origin(origins, refused),
            _refusals(counters, refused),
            _draining(readiness),
        ),
        client_max_size=_BODY_BYTES_MAX,
    )
    app.add_routes(
        [
            web.get(ATTACH, attachment.handle),
            web.get(WATCH, watching.handle),
            web.get(HEALTH, _health),
            web.get(READINESS, _readiness(readiness)),
            web.get(DESCRIPTION, _description),
            web.get(DOCS, _docs),
            *api.routes(),
            *map_pages,
        ]
    )
    return app


def _refusals(counters: Counters, origins: RefusedOrigins) -> Any:  # noqa: ANN401 - aiohttp's
    @web.middleware
    async def respond(request: web.Request, handler: Handler) -> web.StreamResponse:
        """Respond to refusals and to errors with problem documents."""
        try:
            return await handler(request)
        except RefusedError as error:
            counters.refused[error.reason.name] += 1
            if error.field == hdrs.ORIGIN:
                origins.note(request.headers[hdrs.ORIGIN])
            return problem(error_message(error))
        except web.HTTPException as error:
            return plain_problem(HTTPStatus(error.status), error.reason)
        except Exception as error:
            if isinstance(error, ConnectionError):
                raise
            _log.exception("a request has failed")
            return plain_problem(HTTPStatus.INTERNAL_SERVER_ERROR, "a fault of the gateway; see its log")

    return respond


def _draining(readiness: Readiness) -> Any:  # noqa: ANN401 - aiohttp's
    @web.middleware
    async def respond(request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse requests once the gateway is stopping."""
        if readiness.is_draining and request.path not in _HEALTH_PATHS:
            return plain_problem(HTTPStatus.SERVICE_UNAVAILABLE, "the gateway is stopping")
        return await handler(request)

    return respond


def own_hosts(origins: Collection[str]) -> Any:  # noqa: ANN401 - aiohttp's
    """Return a middleware for a gateway on the loopback interface that requires no token.

    It refuses requests to other names than those of that interface and of allowed origins, which a proxy
    may have (`identity/host_header.py` has the reason). Checks of health are for all.

    Parameters
    ----------
    origins
        Origins of pages that may call; `*` allows any name, because these pages can read every response.
    """
    hosts = {urlsplit(origin).hostname for origin in origins}

    @web.middleware
    async def respond(request: web.Request, handler: Handler) -> web.StreamResponse:
        """Raise RefusedError for a request to another name."""
        header = request.headers.get(hdrs.HOST)
        is_allowed = is_own_host(header) or host_name(header or "") in hosts or ANY_ORIGIN in origins
        if not is_allowed and request.path not in _HEALTH_PATHS:
            limit = "a name of this machine, such as localhost, or that of an --origin"
            raise RefusedError(Reason.PERMISSION_DENIED, hdrs.HOST, repr(header), limit)
        return await handler(request)

    return respond


async def _health(_request: web.Request) -> web.Response:
    return web.json_response({"status": "alive"})


def _readiness(readiness: Readiness) -> Handler:
    async def respond(_request: web.Request) -> web.Response:
        content = {"draining": readiness.is_draining, "server_serving": readiness.is_server_serving}
        status = HTTPStatus.OK if readiness.is_ready else HTTPStatus.SERVICE_UNAVAILABLE
        return web.json_response(content, status=status)

    return respond


async def _description(_request: web.Request) -> web.Response:
    return web.json_response(document(), headers=_HEADERS)


async def _docs(_request: web.Request) -> web.Response:
    return web.Response(text=page(), content_type="text/html", headers=_HEADERS)
