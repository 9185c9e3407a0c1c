"""A porter's process: gRPC on one side, frames on the other."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import grpc

from server.porter.frames import Kind, Metadata, Receipts, Window, Wire, packed, unpacked

Context = grpc.aio.ServicerContext[bytes, bytes]

_GRACE_S = 1.0
"""For clients to take what the server has said."""


@dataclass(slots=True)
class _Stream:
    """What has come from the server for one call."""

    window: Window = field(default_factory=Window)
    inbox: asyncio.Queue[tuple[Kind, bytes]] = field(default_factory=asyncio.Queue)


class Porter:
    """Carries calls to the server's process and back.

    Parameters
    ----------
    wire
        To the server's process.
    """

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._streams: dict[int, _Stream] = {}
        self._next = 1

    async def listen(self) -> None:
        """Deliver what the server says, until it has gone."""
        async for frames in self._wire.frames():
            for kind, number, body in frames:
                stream = self._streams.get(number)
                if stream is None:
                    continue
                if kind is Kind.CREDIT:
                    stream.window.give(body)
                else:
                    stream.inbox.put_nowait((kind, body))
        gone = packed([grpc.StatusCode.UNAVAILABLE.value[0], "the server has gone"], None)
        for stream in self._streams.values():
            stream.inbox.put_nowait((Kind.END, gone))

    async def carry(self, method: str, requests: AsyncIterator[bytes], context: Context) -> None:
        """Carry one call."""
        number, self._next = self._next, self._next + 1
        stream = self._streams[number] = _Stream()
        metadata = [(key, value) for key, value in context.invocation_metadata() or ()]
        self._wire.send(Kind.OPEN, number, packed([method, context.peer()], metadata))
        reading = asyncio.create_task(self._read(number, stream, requests))
        is_over = False
        receipts = Receipts(self._wire, number)
        try:
            while True:
                kind, body = await stream.inbox.get()
                if kind is Kind.DATA:
                    await context.write(body)
                    receipts.passed_on()
                elif kind is Kind.HEADERS:
                    await context.send_initial_metadata(_given(unpacked(body)[1]))
                else:
                    is_over = True
                    await _end(context, body)
                    return
        finally:
            reading.cancel()
            del self._streams[number]
            if not is_over:
                self._wire.send(Kind.CANCEL, number)

    async def _read(self, number: int, stream: _Stream, requests: AsyncIterator[bytes]) -> None:
        async for request in requests:
            await stream.window.take()
            self._wire.send(Kind.DATA, number, request)
        self._wire.send(Kind.HALF_CLOSE, number)


def _given(metadata: Metadata) -> Any:  # noqa: ANN401 - gRPC wants a tuple of pairs
    return tuple((key, value) for key, value in metadata)


async def _end(context: Context, body: bytes) -> None:
    (code, details), metadata = unpacked(body)
    if code == grpc.StatusCode.OK.value[0]:
        context.set_trailing_metadata(_given(metadata))
        return
    status = next(one for one in grpc.StatusCode if one.value[0] == code)
    await context.abort(status, str(details), _given(metadata))


class _AnyCall(grpc.GenericRpcHandler):
    """Every method is a stream of bytes both ways."""

    def __init__(self, porter: Porter) -> None:
        self._porter = porter

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[Any, Any]:
        method = details.method

        async def carry(requests: AsyncIterator[bytes], context: Context) -> None:
            await self._porter.carry(method, requests, context)

        return grpc.stream_stream_rpc_method_handler(carry)


async def run(
    socket: str, address: str, options: list[tuple[str, int]], tls: tuple[bytes, bytes] | None
) -> None:
    """Carry calls until the server's process closes the socket."""
    reader, writer = await asyncio.open_unix_connection(socket)
    wire = Wire(reader, writer)
    porter = Porter(wire)
    server = grpc.aio.server(options=options)
    server.add_generic_rpc_handlers((_AnyCall(porter),))
    if tls is None:
        server.add_insecure_port(address)
    else:
        server.add_secure_port(address, grpc.ssl_server_credentials([tls]))
    await server.start()
    wire.send(Kind.OPEN, 0)  # ready
    with contextlib.suppress(asyncio.CancelledError):
        await porter.listen()
    await server.stop(_GRACE_S)
