"""The server's end of its porters: calls that come as frames are answered by the same services.

A call is looked up among the handlers that gRPC itself would use, and gets a context that says the same
things. Cost: some microseconds a message, where gRPC takes tens.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import grpc

from server.porter.frames import Kind, Metadata, Receipts, Window, Wire, packed, unpacked

_log = logging.getLogger(__name__)


class AbortedError(Exception):
    """A call was ended with a status; whoever carries it has noted which."""


@dataclass(frozen=True, slots=True)
class _Details:
    """What a handler asks of a call."""

    method: str
    invocation_metadata: Metadata


class Handlers:
    """Stands for a gRPC server when services are added to it; looks methods up."""

    def __init__(self) -> None:
        self._generic: list[Any] = []

    def add_generic_rpc_handlers(self, handlers: Sequence[Any]) -> None:
        """Take what a service offers."""
        self._generic += handlers

    def add_registered_method_handlers(self, _service: str, _handlers: object) -> None:
        """Do nothing: the same methods come as generic ones."""

    def find(self, method: str, metadata: Metadata) -> Any:  # noqa: ANN401 - gRPC has no type for it
        """Return the handler of a method, None if there is none."""
        details = _Details(method, metadata)
        found = (handler.service(details) for handler in self._generic)
        return next((one for one in found if one is not None), None)


class RelayContext:
    """What `grpc.aio.ServicerContext` is to a service.

    Parameters
    ----------
    wire, stream
        Where answers go.
    serialize
        How a message becomes bytes; None if it is bytes.
    peer
        Who calls.
    metadata
        Of the call.
    requests
        What the caller says.
    """

    def __init__(
        self,
        wire: Wire,
        stream: int,
        serialize: Callable[[Any], bytes] | None,
        peer: str,
        metadata: Metadata,
        requests: AsyncIterator[Any],
    ) -> None:
        self.requests = requests
        self._wire = wire
        self._stream = stream
        self._serialize = serialize
        self._peer = peer
        self._metadata = metadata
        self.window = Window()
        self.status = (grpc.StatusCode.OK, "", ())

    async def read(self) -> Any:  # noqa: ANN401
        """Return the next message, `grpc.aio.EOF` after the last."""
        return await anext(self.requests, grpc.aio.EOF)

    async def write(self, message: Any) -> None:  # noqa: ANN401
        """Send a message as soon as the client has taken most of those before."""
        await self.window.take()
        body = message if self._serialize is None else self._serialize(message)
        self._wire.send(Kind.DATA, self._stream, body)

    async def send_initial_metadata(self, metadata: Metadata) -> None:
        """Send metadata before the first message."""
        self._wire.send(Kind.HEADERS, self._stream, packed([], metadata))

    def invocation_metadata(self) -> Metadata:
        """Return what came with the call."""
        return self._metadata

    def peer(self) -> str:
        """Return who calls."""
        return self._peer

    def set_code(self, code: grpc.StatusCode) -> None:
        """Set the status the call will end with."""
        self.status = (code, *self.status[1:])

    def set_details(self, details: str) -> None:
        """Set the words the call will end with."""
        self.status = (self.status[0], details, self.status[2])

    def set_trailing_metadata(self, metadata: Any) -> None:  # noqa: ANN401
        """Set the metadata the call will end with."""
        self.status = (*self.status[:2], metadata)

    async def abort(
        self,
        code: grpc.StatusCode,
        details: str = "",
        trailing_metadata: Any = (),  # noqa: ANN401
    ) -> None:
        """End the call here."""
        self.status = (code, details, trailing_metadata)
        raise AbortedError(details)


@dataclass(slots=True)
class Call:
    """A call under way."""

    context: RelayContext
    inbox: asyncio.Queue[bytes | None]
    task: asyncio.Task[None]


class Relay:
    """Answers the calls of one porter.

    Parameters
    ----------
    handlers
        What is offered.
    wire
        To the porter.
    """

    def __init__(self, handlers: Handlers, wire: Wire) -> None:
        self._handlers = handlers
        self._wire = wire
        self._calls: dict[int, Call] = {}

    @property
    def calls(self) -> list[Call]:
        """The calls under way."""
        return list(self._calls.values())

    @property
    def call_count(self) -> int:
        """How many calls are under way."""
        return len(self._calls)

    async def run(self, on_ready: Callable[[], None]) -> None:
        """Answer until the porter has gone; then every call of it has been cancelled."""
        try:
            async for frames in self._wire.frames():
                for kind, stream, body in frames:
                    if kind is Kind.OPEN and stream == 0:
                        on_ready()
                    elif kind is Kind.OPEN:
                        self._open(stream, body)
                    elif (call := self._calls.get(stream)) is not None:
                        _deliver(call, kind, body)
        finally:
            tasks = [call.task for call in self._calls.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._wire.close()

    def _open(self, stream: int, body: bytes) -> None:
        (method, peer), metadata = unpacked(body)
        handler = self._handlers.find(str(method), metadata)
        serialize = None if handler is None else handler.response_serializer
        inbox: asyncio.Queue[bytes | None] = asyncio.Queue()
        requests = self._requests(stream, handler, inbox)
        context = RelayContext(self._wire, stream, serialize, str(peer), metadata, requests)
        task = asyncio.create_task(self._carry(stream, handler, str(method), context))
        self._calls[stream] = Call(context, inbox, task)

    async def _carry(
        self,
        stream: int,
        handler: Any,  # noqa: ANN401
        method: str,
        context: RelayContext,
    ) -> None:
        try:
            if handler is None:
                context.status = (grpc.StatusCode.UNIMPLEMENTED, f"no method {method}", ())
            else:
                await _answer(handler, context)
        except AbortedError:
            pass
        except asyncio.CancelledError:
            context.status = (grpc.StatusCode.CANCELLED, "", ())
            raise
        except Exception as error:  # noqa: BLE001 - as gRPC does: the call fails, the server goes on
            _log.exception("%s failed", method)
            context.status = (grpc.StatusCode.UNKNOWN, f"{type(error).__name__}: {error}", ())
        finally:
            del self._calls[stream]
            code, details, trailing = context.status
            self._wire.send(Kind.END, stream, packed([code.value[0], details], trailing))

    async def _requests(
        self,
        stream: int,
        handler: Any,  # noqa: ANN401
        inbox: asyncio.Queue[bytes | None],
    ) -> AsyncIterator[Any]:
        receipts = Receipts(self._wire, stream)
        while (body := await inbox.get()) is not None:
            receipts.passed_on()
            yield body if handler.request_deserializer is None else handler.request_deserializer(body)


def _deliver(call: Call, kind: Kind, body: bytes) -> None:
    if kind is Kind.DATA:
        call.inbox.put_nowait(body)
    elif kind is Kind.HALF_CLOSE:
        call.inbox.put_nowait(None)
    elif kind is Kind.CREDIT:
        call.context.window.give(body)
    elif kind is Kind.CANCEL:
        call.task.cancel()


async def _answer(handler: Any, context: RelayContext) -> None:  # noqa: ANN401
    """Call a service the way its method is declared."""
    argument: Any = context.requests
    if not handler.request_streaming:
        argument = await context.read()
        if argument is grpc.aio.EOF:
            await context.abort(grpc.StatusCode.CANCELLED, "no request")
    kind = (handler.request_streaming, handler.response_streaming)
    act = {
        (False, False): handler.unary_unary,
        (False, True): handler.unary_stream,
        (True, False): handler.stream_unary,
        (True, True): handler.stream_stream,
    }[kind]
    if inspect.isasyncgenfunction(act):
        async for response in act(argument, context):
            await context.write(response)
        return
    outcome: Awaitable[Any] = act(argument, context)
    response = await outcome
    if not handler.response_streaming:
        await context.write(response)
