"""Refusal and counting of requests that cannot be parsed, or break a bound on their bytes.

By default gRPC ends such a call with UNKNOWN and logs a traceback for each, from any sender. Here a
deserializer returns the refusal in place of a request, for every method of every service, and the call
ends with INVALID_ARGUMENT. Streams may send the refusal in the stream and continue.

Messages are parsed on the event loop: protobuf holds the interpreter while it parses, so that a thread
would block the loop as long. A message that is parsed has passed the bounds of its method. Large requests
of a stream are parsed by the service, so that those of many streams need not be parsed at once.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, NamedTuple

import grpc
from google.protobuf.descriptor_pool import Default
from google.protobuf.message import DecodeError

from identity.expiry import ending
from identity.quotas import UNLIMITED, Account
from nearcast.errors import RefusedError
from server.limits import Limits
from server.runtime.caller_locks import CallerLocks
from server.transport.admission import SMALL_BYTES, Admission, Context
from server.transport.answers import Answers, Draft, Reservation
from server.transport.authentication import OPEN, SERVICES, principal
from server.transport.first_message import FirstMessages
from server.transport.wire_walk import (
    NOT_PARSABLE,
    PARSABLE,
    MessageTypes,
    UnreadableError,
    Walker,
    address_of,
)

_LARGE_BYTES = 64 * 1_024
"""A message above this size takes milliseconds: most of them for the memory that it occupies."""

_OWN_PATIENCE = 2
"""Our services end their streams themselves; a stream whose client does not read is cancelled later."""

Carry = Callable[[Account, Any, Context], Awaitable[None]]
Handler = Callable[[Any, Context], Awaitable[None]]


class LargeRequest(NamedTuple):
    """A request that was received and is not parsed yet.

    Parameters
    ----------
    data
        The request.
    parse
        Returns the message, or the refusal in its place.
    """

    data: bytes
    parse: Callable[[bytes], Any]

    def parsed(self) -> Any:  # noqa: ANN401 - a message of any type
        """Return the message, or its refusal; raise the refusal if the request cannot be identified."""
        return _identified(self.parse(self.data))


class _Parsed:
    """The requests of a stream; raises the refusal of one that cannot be parsed.

    The refusal of a request that breaks a bound is returned in its place if the request can be
    identified.
    """

    def __init__(self, requests: AsyncIterator[Any]) -> None:
        self._requests = requests

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:  # noqa: ANN401 - a message of any type
        return _identified(await anext(self._requests))


class Parsing(grpc.aio.ServerInterceptor):
    """Refuses requests that cannot be parsed before they reach a service.

    Streams of services that read from their context, as those of devices do, check for a refusal among
    requests themselves, so that they need no second coroutine.

    Parameters
    ----------
    admission
        Refuses and counts.
    limits
        The limits from which the bounds of messages follow.
    """

    def __init__(self, admission: Admission, limits: Limits) -> None:
        self._admission = admission
        self._types = MessageTypes(limits)
        self._handlers: dict[str, Any] = {}  # by method, for methods that exist
        self._first_messages = FirstMessages()
        self._answers = Answers()
        self._building = CallerLocks()

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:  # noqa: ANN401 - gRPC has no type for it
        """Return the handler of a method, None if there is none."""
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        method = handler_call_details.method
        if method not in self._handlers:
            self._handlers[method] = self._guarded(handler, method)
        return self._handlers[method]

    def _guarded(self, handler: Any, method: str) -> Any:  # noqa: ANN401
        is_open = method in OPEN
        parse = self._forgiving(handler.request_deserializer, self._walker(method), is_open=is_open)
        if not handler.request_streaming:
            if handler.response_streaming:
                act = self._watching(handler.unary_stream)
                return grpc.stream_stream_rpc_method_handler(act, parse, handler.response_serializer)
            serialize = handler.response_serializer
            act = self._single(handler.unary_unary, serialize, is_open=is_open)
            return grpc.stream_stream_rpc_method_handler(act, parse)
        kind = "stream_stream" if handler.response_streaming else "stream_unary"
        act = getattr(handler, kind)
        if inspect.isasyncgenfunction(act):
            is_foreign = method.split("/")[1] not in SERVICES
            act = self._yielding(act, is_foreign=is_foreign)
            parse = parse if is_foreign else _later(parse)
        elif not handler.response_streaming:
            act = self._answering(act)
        return handler._replace(request_deserializer=parse, **{kind: act})

    def _walker(self, method: str) -> Walker:
        _, service, name = method.split("/")
        found = Default().FindServiceByName(service).methods_by_name[name]
        return self._types.walker(found.input_type, name)

    def _forgiving(
        self, deserializer: Callable[[bytes], Any], walker: Walker, *, is_open: bool
    ) -> Callable[[bytes], Any]:
        counters, admission = self._admission.counters, self._admission

        def parse(data: bytes) -> Any:  # noqa: ANN401
            if len(data) <= SMALL_BYTES or is_open:
                return parsed(data)
            with admission.charging(principal().account):
                return parsed(data)

        def parsed(data: bytes) -> Any:  # noqa: ANN401
            try:
                walker.verify(data)
                return deserializer(data)
            except UnreadableError as error:
                counters.requests_unparsable += 1
                return error.with_traceback(None)
            except DecodeError:
                counters.requests_unparsable += 1
                return UnreadableError("request", NOT_PARSABLE, PARSABLE)

        return parse

    def _single(
        self,
        act: Callable[[Any, Context], Awaitable[Any]],
        serialize: Callable[[Any], bytes],
        *,
        is_open: bool,
    ) -> Any:  # noqa: ANN401
        """Return the handler of a method with one request: on the wire it is a stream of one."""

        async def answer(_requests: object, context: Context) -> None:
            account = UNLIMITED if is_open else principal().account
            try:
                account.begin_call()
            except RefusedError as error:
                self._admission.refuse(context, error)
                return
            data = b""
            try:
                request = await self._first(context, is_open=is_open)
                async with self._answers.room(account) as room:
                    data = await self._serialized(await act(request, context), serialize, room)
                    account.answer_bytes = len(data)
                    self._answers.settle(room, len(data))
                    await context.write(data)
            except RefusedError as error:
                self._admission.refuse(context, error)
            except asyncio.CancelledError:
                self._admission.suspect_cancelled(len(data))
                raise
            finally:
                account.end_call()

        return answer

    async def _serialized(
        self,
        response: Any,  # noqa: ANN401
        serialize: Callable[[Any], bytes],
        room: Reservation,
    ) -> bytes:
        """Return the bytes of a response; a draft is built when there is capacity for it."""
        if not isinstance(response, Draft):
            return serialize(response)
        await self._answers.fit(room, response.size)
        charging, (first, *others) = self._admission.charging, response.parts
        if not others:
            with charging(room.account):
                return serialize(first())
        found: list[bytes] = []
        async with self._building.of(room.account):
            for build in response.parts:
                with charging(room.account):
                    found.append(serialize(build()))
                await asyncio.sleep(0)
        return b"".join(found)

    async def _first(self, context: Context, *, is_open: bool = False) -> Any:  # noqa: ANN401
        """Return the request of a call. Raises RefusedError if there is none."""
        request = await self._first_messages.read_one(context, is_open=is_open)
        if isinstance(request, RefusedError):
            raise request
        return request

    def _watching(self, act: Handler) -> Handler:
        """Return the handler of a method with one request and many responses."""

        async def carry(_account: Account, _requests: object, context: Context) -> None:
            await act(await self._first(context), context)

        return self._foreign(carry)

    def _foreign(self, carry: Carry) -> Handler:
        """Return a handler that counts a stream of a library's service as its caller's."""

        async def counted(account: Account, requests: Any, context: Context) -> None:  # noqa: ANN401
            account.begin_stream()
            try:
                await carry(account, requests, context)
            finally:
                account.end_stream()

        return self._ending(counted)

    def _ending(self, carry: Carry, patience: int = 1) -> Handler:
        """Return a handler whose stream ends with the token with which it started, read or not.

        Parameters
        ----------
        carry
            Serves the stream.
        patience
            How many times five seconds after the token the stream is cancelled.
        """

        async def answer(requests: object, context: Context) -> None:
            caller, task = principal(), asyncio.current_task()
            ended: list[RefusedError] = []
            try:
                with ending(caller, ended.append, task.cancel if task else _nobody, patience):
                    await carry(caller.account, requests, context)
            except RefusedError as error:
                self._admission.refuse(context, error)
            except asyncio.CancelledError:
                if not ended or (task is not None and task.uncancel()):
                    raise
                self._admission.refuse(context, ended[0])

        return answer

    def _answering(self, act: Callable[[Any, Context], Awaitable[Any]]) -> Any:  # noqa: ANN401
        """Return the handler of a method with many requests and one response."""

        async def answer(requests: AsyncIterator[Any], context: Context) -> Any:  # noqa: ANN401
            try:
                return await act(_Parsed(requests), context)
            except RefusedError as error:
                self._admission.refuse(context, error)

        return answer

    def _yielding(
        self, act: Callable[[Any, Context], AsyncGenerator[Any, None]], *, is_foreign: bool
    ) -> Handler:
        """Return the handler of a method with many requests and many responses."""

        async def carry(account: Account, requests: AsyncIterator[Any], context: Context) -> None:
            parsed: AsyncIterator[Any] = _Parsed(requests)
            if is_foreign:
                parsed = _paced(parsed, account)
            async with aclosing(act(parsed, context)) as answers:
                async for response in answers:
                    await context.write(response)

        return self._foreign(carry) if is_foreign else self._ending(carry, _OWN_PATIENCE)


async def _paced(requests: AsyncIterator[Any], account: Account) -> AsyncIterator[Any]:
    """Yield requests no faster than the caller's rate limit."""
    async for request in requests:
        await account.acquire(1)
        yield request


def _nobody() -> None:
    """Do nothing, in place of cancelling a task where there is none."""


def _later(parse: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    """Return a deserializer that leaves it to the service to parse a large request."""

    def receive(data: bytes) -> Any:  # noqa: ANN401
        return parse(data) if len(data) <= _LARGE_BYTES else LargeRequest(data, parse)

    return receive


def _identified(request: Any) -> Any:  # noqa: ANN401 - a message of any type
    """Return a request or its refusal; raise the refusal if the request cannot be identified."""
    if isinstance(request, RefusedError) and not _is_addressed(request):
        raise request
    return request


def _is_addressed(error: RefusedError) -> bool:
    """Return whether the refused request can be identified in its stream."""
    return isinstance(error, UnreadableError) and address_of(error.head) is not None
