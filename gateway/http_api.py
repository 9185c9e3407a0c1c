"""HTTP with JSON: each request becomes one call of the server, with the token of its caller.

The gateway verifies the token, the role and the rate of the caller before it reads a body. The server
verifies them again, and decides about everything else, so rights, quotas and errors are the same as over
gRPC.

Conversion from and to JSON takes up to 0.1 ms a field. A longer body or response is converted beside the
event loop (`conversions.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
from collections.abc import Awaitable, Callable, Collection
from http import HTTPStatus
from typing import Any

import grpc
from aiohttp import web
from google.protobuf import descriptor_pool, json_format

from gateway.calls import CALLS, PUBLISH, Call, elements_of, stub_of
from gateway.conversions import Conversions
from gateway.counters import Counters
from gateway.handshake import header_token, require_origin, require_plain_address
from gateway.problems import plain_problem, problem
from identity.authenticator import Authenticator
from identity.quotas import Account
from identity.rules import require_action
from nearcast.errors import Reason, RefusedError
from nearcast.transport.calls import named_server, refusal, wire_error
from nearcast.transport.channel import Channel
from nearcast.transport.servers import Servers
from nearcast.v1 import errors_pb2, publisher_service_pb2

_log = logging.getLogger(__name__)

_KEY = "Idempotency-Key"
_JSON = "application/json"
_DEPTH_MAX = 100
_CALL_S = 30.0
"""How long a call may take at the server."""

_BODY_S = 10.0
"""How long a body may take to arrive."""

_SHOWN_MAX = 500
"""Characters of a parser's error that a problem shows: it may have a part of the body."""

_UNKNOWN_FIELD = re.compile(
    r'(?P<error>.*type "(?P<message>[\w.]+)" has no field .*)\s+Available Fields', re.DOTALL
)
"""A parser's error, which goes on with the names of fields in JSON."""

_AT_ONCE_ELEMENTS = 50
_AT_ONCE_BYTES = 2048
"""Requests and responses up to these are converted on the event loop."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class HttpApi:
    """Serves the calls.

    Parameters
    ----------
    servers
        The servers, for calls with the tokens of their callers.
    authenticator
        Authenticates callers.
    counters
        The counters of the gateway.
    origins
        Origins of pages that may call.
    """

    def __init__(
        self,
        servers: Servers,
        authenticator: Authenticator,
        counters: Counters,
        origins: Collection[str],
    ) -> None:
        self._servers = servers
        self._authenticator = authenticator
        self._counters = counters
        self._origins = origins
        self._conversions = Conversions()

    def close(self) -> None:
        """Convert no more bodies."""
        self._conversions.close()

    def routes(self) -> list[web.RouteDef]:
        """Return the routes of all calls."""
        return [web.route(call.method, call.path, self._handler(call)) for call in CALLS]

    def _handler(self, call: Call) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            self._counters.requests += 1
            token, account = self._caller(request, call)
            account.require(1)
            account.begin_call()
            try:
                return await self._handle(request, call, token, account)
            finally:
                account.end_call()

        return handle

    async def _handle(
        self, request: web.Request, call: Call, token: str | None, account: Account
    ) -> web.StreamResponse:
        message = await self._message(request, call, account)
        metadata = [] if token is None else [("authorization", f"Bearer {token}")]
        try:
            response = await self._respond(call, message, metadata)
        except grpc.aio.AioRpcError as error:
            refused = wire_error(error)
            if refused is None:
                return plain_problem(HTTPStatus.BAD_GATEWAY, f"no answer: {error.code().name}")
            return problem(refused)
        if isinstance(response, errors_pb2.Error):
            return problem(response)
        if response.ByteSize() <= _AT_ONCE_BYTES:
            return web.json_response(text=_text(response))
        text = await self._conversions.converted(request, account, _text, response)
        return web.json_response(text=text)

    def _caller(self, request: web.Request, call: Call) -> tuple[str | None, Account]:
        """Return the token and the account of the caller.

        Raises
        ------
        RefusedError
            If the caller may not make the call.
        """
        require_plain_address(request)
        require_origin(request, self._origins)
        token = header_token(request)
        principal = self._authenticator.principal(token)
        require_action(principal, call.action)
        return token, principal.account

    async def _message(self, request: web.Request, call: Call, account: Account) -> Any:  # noqa: ANN401 - of the call's class
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
        body = await _body(request, call)
        count = elements_of(body)
        if count > call.elements_max:
            limit = f"at most {call.elements_max}"
            raise RefusedError(Reason.INVALID_FIELD, "body", f"{count} fields and entries", limit)
        if count <= _AT_ONCE_ELEMENTS and len(body) <= _AT_ONCE_BYTES:
            message = parsed(body, call)
        else:
            self._conversions.require_room(account)
            message = await self._conversions.converted(request, account, parsed, body, call)
        if call is PUBLISH:
            _set_key(request, message)
        return message

    async def _respond(self, call: Call, message: Any, metadata: list[tuple[str, str]]) -> Any:  # noqa: ANN401
        """Return the response of the server, or its refusal of a publication.

        A call that a server of a cluster refuses because another one serves the device goes on to that
        one. A call that changes nothing is repeated at another server if one does not respond.

        Raises
        ------
        RefusedError
            If a server names one whose address cannot be used.
        """

        async def attempt(channel: Channel) -> Any:  # noqa: ANN401
            method = stub_of(call, channel)
            try:
                if call is PUBLISH:
                    return await published(method(metadata=metadata, timeout=_CALL_S), message)
                return await method(message, metadata=metadata, timeout=_CALL_S)
            except grpc.aio.AioRpcError as error:
                self._servers.failed(channel, refusal(error, is_encrypted=channel.is_encrypted))
                raise

        others = len(self._servers.listed) - 1 if call.is_safe else 0
        for others_left in range(others, -1, -1):
            try:
                return await self._servers.follow(await self._servers.connected(), attempt)
            except RefusedError as error:
                _log.warning("%s: %s", call.name, error)
                raise
            except grpc.aio.AioRpcError as error:
                is_unavailable = error.code() is grpc.StatusCode.UNAVAILABLE and not named_server(error)
                if not others_left or not is_unavailable:
                    raise
        raise AssertionError("unreachable")


async def published(stream: Any, message: Any) -> Any:  # noqa: ANN401 - gRPC's
    """Publish over a stream of its own; return its only response, or the server's refusal.

    Raises
    ------
    grpc.aio.AioRpcError
        If the stream ends before; without a refusal if the server may have published.
    """
    try:
        await stream.write(message)
        response = await stream.read()
        with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
            await stream.done_writing()
        if response is not grpc.aio.EOF and response.go_away.admitted_count:
            response = await _response_due(stream)
    finally:
        stream.cancel()
    if response is grpc.aio.EOF:
        raise _unknown_outcome(grpc.StatusCode.UNAVAILABLE)
    if response.HasField("go_away"):
        return response.go_away.error
    return response.error if response.HasField("error") else response


async def _response_due(stream: Any) -> Any:  # noqa: ANN401 - gRPC's
    """Return the response to a request that the server has admitted, after its `GoAway`.

    Raises
    ------
    grpc.aio.AioRpcError
        If the stream ends before. The reason of its end does not apply to an admitted request.
    """
    try:
        return await stream.read()
    except grpc.aio.AioRpcError as error:
        raise _unknown_outcome(error.code()) from None


def _unknown_outcome(code: grpc.StatusCode) -> grpc.aio.AioRpcError:
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata())


def parsed(body: bytes, call: Call) -> Any:  # noqa: ANN401 - of the call's class
    """Return the message in a body.

    Raises
    ------
    RefusedError
        If there is none.
    """
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        raise RefusedError(Reason.INVALID_FIELD, "body", "no JSON", "a JSON object") from None
    try:
        return json_format.ParseDict(content, call.request(), max_recursion_depth=_DEPTH_MAX)
    except (json_format.ParseError, TypeError, ValueError, OverflowError, SystemError) as error:
        # SystemError: protobuf's response to a name that is no text
        text = " ".join(_with_proto_names(str(error)).split())
        shown = text[:_SHOWN_MAX].encode(errors="backslashreplace").decode()
        limit = f"a {call.request.DESCRIPTOR.name} in the JSON of protobuf: {shown}"
        raise RefusedError(Reason.INVALID_FIELD, "body", "of another form", limit) from None


def _with_proto_names(text: str) -> str:
    """Return a parser's error with the fields of a message as the .proto files name them."""
    found = _UNKNOWN_FIELD.match(text)
    if found is None:
        return text
    fields = descriptor_pool.Default().FindMessageTypeByName(found["message"]).fields
    return f"{found['error']} Its fields: {', '.join(one.name for one in fields)}"


async def _body(request: web.Request, call: Call) -> bytes:
    too_long = RefusedError(Reason.INVALID_FIELD, "body", "longer", f"at most {call.bytes_max} bytes")
    if (request.content_length or 0) > call.bytes_max:
        raise too_long
    try:
        async with asyncio.timeout(_BODY_S):
            body = await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise too_long from None
    except TimeoutError:
        limit = f"read within {_BODY_S:g} s; try again"
        raise RefusedError(Reason.RECOVERING, "body", "not whole", limit) from None
    if len(body) > call.bytes_max:
        raise too_long
    return body


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
    if not key.isprintable():
        raise RefusedError(Reason.INVALID_FIELD, _KEY, repr(key), "of printable characters")
    if len(message.objects) != 1:
        limit = "absent, unless the request has one object: it is the object's key"
        raise RefusedError(Reason.INVALID_FIELD, _KEY, f"with {len(message.objects)} objects", limit)
    if message.objects[0].key not in ("", key):
        limit = "the key of the object"
        raise RefusedError(Reason.INVALID_FIELD, _KEY, repr(key), limit)
    message.objects[0].key = key


def _text(message: Any) -> str:  # noqa: ANN401 - any message
    """Return a message in the JSON of protobuf, with the names of `proto/`."""
    return json.dumps(
        json_format.MessageToDict(
            message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
        )
    )
