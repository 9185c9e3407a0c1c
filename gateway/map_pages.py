"""The live map: a page of static files, and the map file with the roads or the run that it draws.

The page makes calls and opens WebSockets of this gateway only; its policy (Content-Security-Policy) lets
the browser load nothing from another address. The files are those of the folder `map`, listed when the
gateway starts, so no path of a request reaches the disk.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from pathlib import Path

from aiohttp import web

from gateway.handshake import header_token
from identity.authenticator import Authenticator
from identity.rules import Action, require_action

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

PAGE = "/map/"
_BASE = "/map/base"
_FOLDER = Path(__file__).with_name("map")
_INDEX = "index.html"

_TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".json": "application/json",
    ".mjs": "text/javascript",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
}
"""Files with other ends are not served."""

_HEADERS = {
    "Cache-Control": "no-cache",  # a browser keeps files, and asks each time whether they have changed
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; worker-src 'self'; "
    "style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def map_routes(map_file: Path | None, authenticator: Authenticator) -> list[web.RouteDef]:
    """Return the routes of the page.

    Parameters
    ----------
    map_file
        GeoJSON with roads, or a recorded run, which the page draws; None for plain ground.
    authenticator
        Verifies the tokens of callers that read the map file.
    """
    files = {path.relative_to(_FOLDER).as_posix(): path for path in _FOLDER.rglob("*")}
    served = {name: path for name, path in files.items() if path.suffix in _TYPES}
    return [
        # Not permanently: at this address there may be another program later.
        web.get("/", _redirect(HTTPStatus.TEMPORARY_REDIRECT)),
        web.get(PAGE.rstrip("/"), _redirect(HTTPStatus.PERMANENT_REDIRECT)),
        web.get(_BASE, _base(map_file, authenticator)),
        web.get(PAGE, _file(served[_INDEX])),
        *(web.get(PAGE + name, _file(path)) for name, path in served.items() if name != _INDEX),
    ]


def _redirect(status: HTTPStatus) -> Handler:
    async def respond(_request: web.Request) -> web.Response:
        return web.Response(status=status, headers={"Location": PAGE})

    return respond


def _file(path: Path) -> Handler:
    headers = {**_HEADERS, "Content-Type": f"{_TYPES[path.suffix]}; charset=utf-8"}

    async def respond(_request: web.Request) -> web.StreamResponse:
        return web.FileResponse(path, headers=headers)

    return respond


def _base(path: Path | None, authenticator: Authenticator) -> Handler:
    headers = {**_HEADERS, "Content-Type": "application/octet-stream"}

    async def respond(request: web.Request) -> web.StreamResponse:
        if path is None:
            return web.Response(status=HTTPStatus.NO_CONTENT, headers=_HEADERS)
        require_action(authenticator.principal(header_token(request)), Action.WATCH)
        return web.FileResponse(path, headers=headers)

    return respond
