"""The connections of the port: bounded in all and by address; silent and slow ones are closed.

Requests that the HTTP parser refuses never come to the application. They get a problem document, too, and
nothing of them is in it or in the log: a header that cannot be parsed may have a token.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from http import HTTPStatus
from typing import Any

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from gateway.counters import Counters
from gateway.problems import plain_problem

_REQUEST_S = 10.0
"""How long a connection may take from its start to its first request."""

_RESPONSE_S = 60.0
"""How long a client may take to read a response."""


class Connections:
    """Counts the connections.

    Parameters
    ----------
    counters
        The counters of the gateway.
    count_max
        Connections in all.
    address_count_max
        Connections of one address; 0 for any number.
    """

    def __init__(self, counters: Counters, count_max: int, address_count_max: int) -> None:
        self._counters = counters
        self._count_max = count_max
        self._address_count_max = address_count_max or count_max
        self._by_address: Counter[str] = Counter()

    def begin(self, address: str) -> bool:
        """Count a connection that starts; return whether there is room for it."""
        self._counters.connections += 1
        self._by_address[address] += 1
        is_within = self._counters.connections <= self._count_max
        is_within &= self._by_address[address] <= self._address_count_max
        self._counters.connections_refused += not is_within
        return is_within

    def end(self, address: str) -> None:
        """Count a connection that has ended."""
        self._counters.connections -= 1
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]


class Connection(RequestHandler):
    """A connection that is counted, and closed if no request comes in time.

    Parameters
    ----------
    connections
        Counts it.
    *args
        Those of aiohttp's class.
    address
        The address under which it counts already; None if it is to be counted when it is made.
    **options
        Those of aiohttp's class.
    """

    __slots__ = ("_address", "_connections", "_silence", "is_made")

    def __init__(
        self,
        connections: Connections,
        *args: Any,  # noqa: ANN401
        address: str | None = None,
        **options: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(*args, **options)
        self._connections = connections
        self._address = address
        self._silence: asyncio.TimerHandle | None = None
        self.is_made = False
        """Whether it was made, so that its loss ends its count."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count the connection; close it at once if there are too many."""
        super().connection_made(transport)
        self.is_made = True
        if self._is_within(transport):
            self._silence = asyncio.get_running_loop().call_later(_REQUEST_S, self._abort)
        else:
            self._abort()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Count the end of the connection."""
        self.note_request()
        self._connections.end(self._address or "")
        super().connection_lost(exc)

    def note_request(self) -> None:
        """Record that a request has come."""
        if self._silence is not None:
            self._silence.cancel()
            self._silence = None

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = HTTPStatus.INTERNAL_SERVER_ERROR,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Return the response to what is no HTTP request; it shows nothing of it."""
        if isinstance(exc, ConnectionError):
            raise exc  # the client has closed
        if status != HTTPStatus.BAD_REQUEST:
            return super().handle_error(request, status, exc, message)
        if request.writer.output_size:
            raise ConnectionError("a part of another response is sent already")
        response = plain_problem(HTTPStatus.BAD_REQUEST, "no HTTP request, or one beyond the limits")
        response.force_close()
        return response

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Write a response; close the connection of a client that does not read it."""
        if isinstance(resp, web.HTTPException):
            resp = plain_problem(HTTPStatus(resp.status), resp.reason)
        try:
            async with asyncio.timeout(_RESPONSE_S):
                return await super().finish_response(request, resp, start_time)
        except TimeoutError:
            self._abort()
            return resp, True

    def _is_within(self, transport: asyncio.BaseTransport) -> bool:
        """Return whether there is room for it; count it, unless it counts already."""
        if self._address is not None:
            return True
        peer = transport.get_extra_info("peername")
        self._address = str(peer[0]) if peer else ""
        return self._connections.begin(self._address)

    def _abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()


@web.middleware
async def noting(request: web.Request, handler: Any) -> web.StreamResponse:  # noqa: ANN401
    """Record on its connection that a request has come."""
    if isinstance(request.protocol, Connection):
        request.protocol.note_request()
    response: web.StreamResponse = await handler(request)
    return response
