"""The service for publishers: convert, call the pump, convert."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

from nearcast.v1 import publisher_service_pb2, publisher_service_pb2_grpc
from server.commands import command as c
from server.errors import RefusalError
from server.runtime.command_loop import CommandLoop
from server.transport import converters
from server.transport.admission import Admission, Context
from server.transport.status import error_message

_ACCEPTED = (("nearcast-accepted", "1"),)

_REQUESTS_MAX = 64
"""Under way on a stream: enough to share a commit, and not so many that others wait for long."""


@dataclass(slots=True)
class _Request:
    """What a publisher has asked for and has not been told of."""

    sequence: int
    size: int
    """How many objects."""
    ids: asyncio.Future[list[int]] | RefusalError


class _Requests:
    """The requests of a stream that are under way, oldest first: those that wait share a commit.

    Parameters
    ----------
    objects_max
        How many objects they may have together; a request that is alone may have more.
    """

    def __init__(self, objects_max: int) -> None:
        self._objects_max = objects_max
        self._count = 0
        self._size = 0
        self._queue: asyncio.Queue[_Request | None] = asyncio.Queue()
        self._left = asyncio.Event()

    async def room(self, size: int) -> None:
        """Wait until so many objects more may be under way."""
        while self._count and (self._count >= _REQUESTS_MAX or self._size + size > self._objects_max):
            self._left.clear()
            await self._left.wait()

    def put(self, request: _Request) -> None:
        """Append a request."""
        self._count += 1
        self._size += request.size
        self._queue.put_nowait(request)

    def end(self) -> None:
        """Note that there will be no more."""
        self._queue.put_nowait(None)

    async def __aiter__(self) -> AsyncIterator[_Request]:
        """Yield each, which is under way until the next is asked for."""
        while (request := await self._queue.get()) is not None:
            yield request
            self._count -= 1
            self._size -= request.size
            self._left.set()


class PublisherServicer(publisher_service_pb2_grpc.PublisherServiceServicer):
    """Publish, Retract."""

    def __init__(self, command_loop: CommandLoop, admission: Admission) -> None:
        self._command_loop = command_loop
        self._admission = admission
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
        """Accept objects, answering in order, while more is read.

        Its initial metadata say that the stream is taken on. One that ends because the server drains says
        so: what it has not answered was not done.
        """
        self._stream_count += 1
        self._idle.clear()
        requests = _Requests(self._command_loop.coordinator.limits.objects_per_request_max)
        reading: asyncio.Task[None] | None = None
        try:
            self._admission.require(context)
            await context.send_initial_metadata(_ACCEPTED)
            reading = asyncio.create_task(self._read(request_iterator, requests))
            async for request in requests:
                yield await self._answer(request)
            await reading
            if self._draining.is_set():
                self._admission.require_serving()
        except RefusalError as error:
            await self._admission.refuse(context, error)
        finally:
            if reading is not None:
                reading.cancel()
            self._command_loop.gc_control.suspect()
            self._stream_count -= 1
            if not self._stream_count:
                self._idle.set()

    async def _read(
        self,
        messages: AsyncIterator[publisher_service_pb2.PublishRequest],
        requests: _Requests,
    ) -> None:
        try:
            async for message in _until(self._draining, messages):
                size = len(message.objects)
                await requests.room(size)
                requests.put(_Request(message.sequence, size, await self._submitted(message)))
        finally:
            requests.end()

    async def _submitted(
        self, message: publisher_service_pb2.PublishRequest
    ) -> asyncio.Future[list[int]] | RefusalError:
        try:
            objects = [
                converters.new_object_from(one, f"objects[{i}]") for i, one in enumerate(message.objects)
            ]
            ids = await self._command_loop.submit(c.Publish(tuple(objects)))
        except RefusalError as error:
            return error
        # A refusal is no mishap if the publisher has left before it is told.
        ids.add_done_callback(lambda done: done.cancelled() or done.exception())
        return ids

    async def _answer(self, request: _Request) -> publisher_service_pb2.PublishResponse:
        try:
            if isinstance(request.ids, RefusalError):
                raise request.ids
            ids = await request.ids
        except RefusalError as error:
            self._admission.note(error)
            return publisher_service_pb2.PublishResponse(
                sequence=request.sequence, error=error_message(error)
            )
        return publisher_service_pb2.PublishResponse(sequence=request.sequence, ids=ids)

    async def Retract(  # noqa: N802
        self, request: publisher_service_pb2.RetractRequest, context: Context
    ) -> publisher_service_pb2.RetractResponse:
        """Take objects back."""
        try:
            self._admission.require(context)
            await self._command_loop.ask(c.Retract(tuple(request.ids)))
        except RefusalError as error:
            await self._admission.refuse(context, error)
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
