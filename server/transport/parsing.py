"""Requests that cannot be parsed, or break a bound on their bytes: refused like any other, and counted.

Left to itself gRPC ends such a call with UNKNOWN and logs a traceback for each, whoever sends them. Here
a deserializer returns the refusal in place of a request, for every method of every service, and the call
ends with INVALID_ARGUMENT. Streams may tell the refusal in the stream and go on.

Messages are parsed on the event loop: protobuf holds the interpreter while it does, so that a thread
would hold up the loop as long. What is parsed has passed the bounds of its method.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

import grpc
from google.protobuf.descriptor_pool import Default
from google.protobuf.message import DecodeError

from server.errors import RefusalError
from server.limits import Limits
from server.transport.admission import Admission, Context
from server.transport.door import OPEN
from server.transport.first_message import FirstMessages
from server.transport.wire_walk import (
    NOT_PARSABLE,
    PARSABLE,
    MessageTypes,
    UnreadableError,
    Walker,
    address_of,
)


class _Parsed:
    """The requests of a stream; raises the refusal of one that cannot be parsed.

    One that breaks a bound, and of which it can be told which it is, is handed on as its refusal.
    """

    def __init__(self, requests: AsyncIterator[Any]) -> None:
        self._requests = requests

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:  # noqa: ANN401 - a message of whatever type
        request = await anext(self._requests)
        if isinstance(request, RefusalError) and not _is_addressed(request):
            raise request
        return request


class Parsing(grpc.aio.ServerInterceptor):
    """Refuses requests that cannot be parsed before a service sees them.

    Streams of services that read from their context, as those of devices do, look for a refusal among
    requests themselves: they need no second coroutine for as long as they last.

    Parameters
    ----------
    admission
        Refuses and counts.
    limits
        What bounds of messages follow from.
    """

    def __init__(self, admission: Admission, limits: Limits) -> None:
        self._admission = admission
        self._types = MessageTypes(limits)
        self._handlers: dict[str, Any] = {}  # by method, of those that exist
        self._first_messages = FirstMessages()

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
        parse = self._forgiving(handler.request_deserializer, self._walker(method))
        if not handler.request_streaming:
            act = self._single(handler.unary_stream or handler.unary_unary, is_open=method in OPEN)
            return grpc.stream_stream_rpc_method_handler(act, parse, handler.response_serializer)
        kind = "stream_stream" if handler.response_streaming else "stream_unary"
        act = getattr(handler, kind)
        if inspect.isasyncgenfunction(act):
            act = self._yielding(act)
        elif not handler.response_streaming:
            act = self._answering(act)
        return handler._replace(request_deserializer=parse, **{kind: act})

    def _walker(self, method: str) -> Walker:
        _, service, name = method.split("/")
        found = Default().FindServiceByName(service).methods_by_name[name]
        return self._types.walker(found.input_type, name)

    def _forgiving(self, deserializer: Callable[[bytes], Any], walker: Walker) -> Callable[[bytes], Any]:
        counters = self._admission.counters

        def parse(data: bytes) -> Any:  # noqa: ANN401
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

    def _single(self, act: Callable[[Any, Context], Any], *, is_open: bool) -> Any:  # noqa: ANN401
        """Return what carries out a method of one request: on the wire it is a stream of one."""

        async def answer(_requests: object, context: Context) -> None:
            try:
                request = await self._first_messages.read_one(context, is_open=is_open)
                if isinstance(request, RefusalError):
                    raise request
            except RefusalError as error:
                await self._admission.refuse(context, error)
            if not inspect.isasyncgenfunction(act):
                await context.write(await act(request, context))
                return
            async with aclosing(act(request, context)) as answers:
                async for response in answers:
                    await context.write(response)

        return answer

    def _answering(self, act: Callable[[Any, Context], Awaitable[Any]]) -> Any:  # noqa: ANN401
        """Return what carries out a method of many requests and one answer."""

        async def answer(requests: AsyncIterator[Any], context: Context) -> Any:  # noqa: ANN401
            try:
                return await act(_Parsed(requests), context)
            except RefusalError as error:
                await self._admission.refuse(context, error)

        return answer

    def _yielding(
        self,
        act: Callable[[Any, Context], AsyncGenerator[Any, None]],
    ) -> Any:  # noqa: ANN401
        async def answer(requests: AsyncIterator[Any], context: Context) -> AsyncIterator[Any]:
            try:
                async with aclosing(act(_Parsed(requests), context)) as answers:
                    async for response in answers:
                        yield response
            except RefusalError as error:
                await self._admission.refuse(context, error)

        return answer


def _is_addressed(error: RefusalError) -> bool:
    """Whether it can be told which request of its stream is refused."""
    return isinstance(error, UnreadableError) and address_of(error.head) is not None
