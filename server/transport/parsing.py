"""Requests that cannot be parsed: refused like any other, and counted.

Left to itself gRPC ends such a call with UNKNOWN and logs a traceback for each, whoever sends them. Here
a deserializer that fails returns `UNPARSABLE` instead, for every method of every service, and the call
ends with INVALID_ARGUMENT.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from server.errors import Reason, RefusalError
from server.transport.admission import Admission, Context


class Unparsable:
    """What a request is that cannot be parsed."""


UNPARSABLE = Unparsable()


def unparsable() -> RefusalError:
    """Return the refusal of a request that cannot be parsed."""
    limit = "a message of the type that the method takes"
    return RefusalError(Reason.INVALID_FIELD, "request", "not parsable", limit)


class _Parsed:
    """The requests of a stream; raises the refusal of one that cannot be parsed."""

    def __init__(self, requests: AsyncIterator[Any]) -> None:
        self._requests = requests

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:  # noqa: ANN401 - a message of whatever type
        request = await anext(self._requests)
        if request is UNPARSABLE:
            raise unparsable()
        return request


class Parsing(grpc.aio.ServerInterceptor):
    """Refuses requests that cannot be parsed before a service sees them.

    Streams of services that read from their context, as those of devices do, look for `UNPARSABLE`
    themselves: they need no second coroutine for as long as they last.

    Parameters
    ----------
    admission
        Refuses and counts.
    """

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._handlers: dict[str, Any] = {}  # by method, of those that exist

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
            self._handlers[method] = self._guarded(handler)
        return self._handlers[method]

    def _guarded(self, handler: Any) -> Any:  # noqa: ANN401
        directions = (handler.request_streaming, handler.response_streaming)
        kind = "_".join("stream" if is_streaming else "unary" for is_streaming in directions)
        act = getattr(handler, kind)
        parse = self._forgiving(handler.request_deserializer)
        if inspect.isasyncgenfunction(act):
            act = self._yielding(act, is_stream=handler.request_streaming)
        elif not handler.request_streaming:
            act = self._returning(act)
        return handler._replace(request_deserializer=parse, **{kind: act})

    def _forgiving(self, deserializer: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
        counters = self._admission.counters

        def parse(data: bytes) -> Any:  # noqa: ANN401
            try:
                return deserializer(data)
            except DecodeError:
                counters.requests_unparsable += 1
                return UNPARSABLE

        return parse

    def _returning(self, act: Callable[[Any, Context], Awaitable[Any]]) -> Any:  # noqa: ANN401
        async def answer(request: Any, context: Context) -> Any:  # noqa: ANN401
            if request is UNPARSABLE:
                await self._admission.refuse(context, unparsable())
            return await act(request, context)

        return answer

    def _yielding(
        self,
        act: Callable[[Any, Context], AsyncGenerator[Any, None]],
        *,
        is_stream: bool,
    ) -> Any:  # noqa: ANN401
        async def answer(request: Any, context: Context) -> AsyncIterator[Any]:  # noqa: ANN401
            try:
                if request is UNPARSABLE:
                    raise unparsable()
                async with aclosing(act(_Parsed(request) if is_stream else request, context)) as answers:
                    async for response in answers:
                        yield response
            except RefusalError as error:
                await self._admission.refuse(context, error)

        return answer
