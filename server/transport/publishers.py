"""The service for publishers: convert, call the pump, convert."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from nearcast.v1 import publisher_service_pb2, publisher_service_pb2_grpc
from server import commands as c
from server.errors import RefusalError
from server.pump import Pump
from server.transport import converters
from server.transport.gate import Context, Gate
from server.transport.status import error_message

_ACCEPTED = (("nearcast-accepted", "1"),)


class PublisherServicer(publisher_service_pb2_grpc.PublisherServiceServicer):
    """Publish, Retract."""

    def __init__(self, pump: Pump, gate: Gate) -> None:
        self._pump = pump
        self._gate = gate
        self._draining = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._stream_count = 0

    def drain(self) -> None:
        """End streams between two requests."""
        self._draining.set()

    async def idle(self) -> None:
        """Wait until no stream is open."""
        await self._idle.wait()

    async def Publish(  # noqa: N802
        self,
        request_iterator: AsyncIterator[publisher_service_pb2.PublishRequest],
        context: Context,
    ) -> AsyncIterator[publisher_service_pb2.PublishResponse]:
        """Accept objects, answering in order.

        Its initial metadata say that the stream is taken on. One that ends because the server drains says
        so: what it has not answered was not done.
        """
        self._stream_count += 1
        self._idle.clear()
        try:
            self._gate.require(context)
            await context.send_initial_metadata(_ACCEPTED)
            async for request in _until(self._draining, request_iterator):
                yield await self._publish(request)
            if self._draining.is_set():
                self._gate.require_serving()
        except RefusalError as error:
            await self._gate.refuse(context, error)
        finally:
            self._stream_count -= 1
            if not self._stream_count:
                self._idle.set()

    async def _publish(
        self, request: publisher_service_pb2.PublishRequest
    ) -> publisher_service_pb2.PublishResponse:
        try:
            objects = [
                converters.new_object_from(message, f"objects[{i}]")
                for i, message in enumerate(request.objects)
            ]
            ids = await self._pump.ask(c.Publish(tuple(objects)))
        except RefusalError as error:
            self._gate.note(error)
            return publisher_service_pb2.PublishResponse(
                sequence=request.sequence, error=error_message(error)
            )
        return publisher_service_pb2.PublishResponse(sequence=request.sequence, ids=ids)

    async def Retract(  # noqa: N802
        self, request: publisher_service_pb2.RetractRequest, context: Context
    ) -> publisher_service_pb2.RetractResponse:
        """Take objects back."""
        try:
            self._gate.require(context)
            await self._pump.ask(c.Retract(tuple(request.ids)))
        except RefusalError as error:
            await self._gate.refuse(context, error)
        return publisher_service_pb2.RetractResponse()


async def _until(
    event: asyncio.Event, requests: AsyncIterator[publisher_service_pb2.PublishRequest]
) -> AsyncIterator[publisher_service_pb2.PublishRequest]:
    """Yield requests until there are no more, or the event has happened."""
    happened = asyncio.ensure_future(event.wait())
    try:
        while True:
            coming = asyncio.ensure_future(anext(requests, None))
            await asyncio.wait({coming, happened}, return_when=asyncio.FIRST_COMPLETED)
            request = coming.result() if coming.done() else None
            if request is None:
                coming.cancel()
                return
            yield request
    finally:
        happened.cancel()
