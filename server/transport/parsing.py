"""Requests that cannot be parsed, or are too large to be: refused like any other, and counted.

Left to itself gRPC ends such a call with UNKNOWN and logs a traceback for each, whoever sends them. Here
a deserializer returns the refusal in place of a request, for every method of every service, and the call
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
from server.transport.door import OPEN, is_for_many
from server.transport.first_message import FirstMessages


class _Parsed:
    """The requests of a stream; raises the refusal of one that cannot be parsed."""

    def __init__(self, requests: AsyncIterator[Any]) -> None:
        self._requests = requests

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:  # noqa: ANN401 - a message of whatever type
        request = await anext(self._requests)
        if isinstance(request, RefusalError):
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
    bytes_max
        Of a request of who is a device and nothing else, or of who need not say who he is.
    """

    def __init__(self, admission: Admission, bytes_max: int) -> None:
        self._admission = admission
        self._bytes_max = bytes_max
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
        parse = self._forgiving(handler.request_deserializer)
        if not handler.request_streaming:
            act = self._single(handler.unary_stream or handler.unary_unary, is_open=method in OPEN)
            return grpc.stream_stream_rpc_method_handler(act, parse, handler.response_serializer)
        kind = "stream_stream" if handler.response_streaming else "stream_unary"
        act = getattr(handler, kind)
        if inspect.isasyncgenfunction(act):
            act = self._yielding(act)
        elif not handler.response_streaming:
            act = _reading(act)
        return handler._replace(request_deserializer=parse, **{kind: act})

    def _forgiving(self, deserializer: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
        counters, bytes_max = self._admission.counters, self._bytes_max

        def parse(data: bytes) -> Any:  # noqa: ANN401
            # To parse all that gRPC takes would hold everybody up: only who serves many may ask for it.
            if len(data) > bytes_max and not is_for_many():
                counters.requests_unparsable += 1
                return _refused(f"{len(data)} bytes", f"at most {bytes_max} bytes")
            try:
                return deserializer(data)
            except DecodeError:
                counters.requests_unparsable += 1
                return _refused("not parsable", "a message of the type that the method takes")

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


def _reading(act: Callable[[AsyncIterator[Any], Context], Awaitable[Any]]) -> Any:  # noqa: ANN401
    """Return what carries out a method of many requests and one answer, which refuses what is raised."""

    async def answer(requests: AsyncIterator[Any], context: Context) -> Any:  # noqa: ANN401
        return await act(_Parsed(requests), context)

    return answer


def _refused(shown: str, limit: str) -> RefusalError:
    return RefusalError(Reason.INVALID_FIELD, "request", shown, limit)
