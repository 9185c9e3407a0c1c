"""HTTP with JSON: each request becomes one call of the server, with the token of its caller.

The gateway verifies the token and the role before it reads a body. The server verifies both again, and
decides about everything else, so rights, quotas and errors are the same as over gRPC.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Collection
from http import HTTPStatus
from typing import Any

import grpc
from aiohttp import web
from google.protobuf import json_format

from gateway.calls import CALLS, PUBLISH, Call, stub_of
from gateway.counters import Counters
from gateway.handshake import header_token, require_origin, require_plain_address
from gateway.problems import plain_problem, problem
from identity.authenticator import Authenticator
from identity.rules import require_action
from nearcast.errors import Reason, RefusedError
from nearcast.transport.calls import wire_error
from nearcast.transport.channel import Channel
from nearcast.v1 import errors_pb2, publisher_service_pb2

_KEY = "Idempotency-Key"
_JSON = "application/json"
_DEPTH_MAX = 100
_CALL_S = 30.0
"""How long a call may take at the server."""

_BODY_S = 10.0
"""How long a body may take to arrive."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class HttpApi:
    """Serves the calls.

    Parameters
    ----------
    channel
        The connection to the server, for calls with the tokens of their callers.
    authenticator
        Authenticates callers.
    counters
        The counters of the gateway.
    origins
        Origins of pages that may call.
    """

    def __init__(
        self,
        channel: Channel,
        authenticator: Authenticator,
        counters: Counters,
        origins: Collection[str],
    ) -> None:
        self._channel = channel
        self._authenticator = authenticator
        self._counters = counters
        self._origins = origins

    def routes(self) -> list[web.RouteDef]:
        """Return the routes of all calls."""
        return [web.route(call.method, call.path, self._handler(call)) for call in CALLS]

    def _handler(self, call: Call) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            self._counters.requests += 1
            metadata = self._metadata(request, call)
            message = await _message(request, call)
            try:
                response = await self._respond(call, message, metadata)
            except grpc.aio.AioRpcError as error:
                refused = wire_error(error)
                if refused is None:
                    return plain_problem(HTTPStatus.BAD_GATEWAY, f"no answer: {error.code().name}")
                return problem(refused)
            if isinstance(response, errors_pb2.Error):
                return problem(response)
            return web.json_response(_plain(response))

        return handle

    def _metadata(self, request: web.Request, call: Call) -> list[tuple[str, str]]:
        """Return the metadata of the call.

        Raises
        ------
        RefusedError
            If the caller may not make it.
        """
        require_plain_address(request)
        require_origin(request, self._origins)
        token = header_token(request)
        require_action(self._authenticator.principal(token), call.action)
        return [] if token is None else [("authorization", f"Bearer {token}")]

    async def _respond(self, call: Call, message: Any, metadata: list[tuple[str, str]]) -> Any:  # noqa: ANN401
        """Return the response of the server, or its refusal of a publication."""
        method = stub_of(call, self._channel)
        if call is PUBLISH:
            return await _published(method(metadata=metadata, timeout=_CALL_S), message)
        return await method(message, metadata=metadata, timeout=_CALL_S)


async def _published(stream: Any, message: Any) -> Any:  # noqa: ANN401 - gRPC's
    """Publish over a stream of its own; return its only response."""
    try:
        await stream.write(message)
        response = await stream.read()
        with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
            await stream.done_writing()
    finally:
        stream.cancel()
    if response is grpc.aio.EOF:
        raise grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), grpc.aio.Metadata())
    if response.HasField("go_away"):
        return response.go_away.error
    return response.error if response.HasField("error") else response


async def _message(request: web.Request, call: Call) -> Any:  # noqa: ANN401 - of the call's class
    """Return the message in the body of a request.

    Raises
    ------
    RefusedError
        If there is none.
    """
    if not call.bytes_max:
        return call.request()
    if request.content_type != _JSON:
        raise RefusedError(Reason.INVALID_FIELD, "Content-Type", repr(request.content_type), _JSON)
    content = await _content(request, call)
    try:
        message = json_format.ParseDict(content, call.request(), max_recursion_depth=_DEPTH_MAX)
    except (json_format.ParseError, TypeError, ValueError, OverflowError) as error:
        limit = f"a {call.request.DESCRIPTOR.name} in the JSON of protobuf: {error}"
        raise RefusedError(Reason.INVALID_FIELD, "body", "of another form", limit) from None
    if call is PUBLISH:
        _set_key(request, message)
    return message


async def _content(request: web.Request, call: Call) -> Any:  # noqa: ANN401 - JSON
    too_long = RefusedError(Reason.INVALID_FIELD, "body", "longer", f"at most {call.bytes_max} bytes")
    if (request.content_length or 0) > call.bytes_max:
        raise too_long
    try:
        async with asyncio.timeout(_BODY_S):
            body = await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise too_long from None
    except TimeoutError:
        limit = f"there within {_BODY_S:g} s"
        raise RefusedError(Reason.INVALID_FIELD, "body", "not whole", limit) from None
    if len(body) > call.bytes_max:
        raise too_long
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise RefusedError(Reason.INVALID_FIELD, "body", "no JSON", "a JSON object") from None


def _set_key(request: web.Request, message: publisher_service_pb2.PublishRequest) -> None:
    """Put the key of the header into the only object of a request.

    Raises
    ------
    RefusedError
        If there is another number of objects, or the object has another key.
    """
    key = request.headers.get(_KEY)
    if key is None:
        return
    if len(message.objects) != 1:
        limit = "absent, unless the request has one object: it is the object's key"
        raise RefusedError(Reason.INVALID_FIELD, _KEY, f"with {len(message.objects)} objects", limit)
    if message.objects[0].key not in ("", key):
        limit = "the key of the object"
        raise RefusedError(Reason.INVALID_FIELD, _KEY, repr(key), limit)
    message.objects[0].key = key


def _plain(message: Any) -> dict[str, Any]:  # noqa: ANN401 - any message
    """Return a message in the JSON of protobuf, with the names of `proto/`."""
    found: dict[str, Any] = json_format.MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    return found
