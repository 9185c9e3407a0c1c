"""The service for publishers: decode, call the command loop, encode."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import nullcontext
from typing import Any

from identity.expiry import ending
from identity.principal import Principal
from nearcast.errors import Reason, RefusedError
from nearcast.v1 import publisher_service_pb2, publisher_service_pb2_grpc
from nearcast.wire.errors import error_message
from server import command as c
from server.measures import now_us
from server.model import NewObject
from server.runtime.caller_locks import CallerLocks
from server.runtime.command_loop import CommandLoop
from server.transport import converters
from server.transport.admission import SMALL_BYTES, Admission, Context
from server.transport.authentication import principal
from server.transport.parsing import LargeRequest
from server.transport.publish_requests import AdmittedCount, PendingRequest, PublishRequests
from server.transport.received_bytes import ReceivedBytes
from server.transport.status import go_away_message
from server.transport.wire_walk import UnreadableError, address_of

_ACCEPTED = (("nearcast-accepted", "1"),)
_SEQUENCE = publisher_service_pb2.PublishRequest.SEQUENCE_FIELD_NUMBER


class PublisherServicer(publisher_service_pb2_grpc.PublisherServiceServicer):
    """Publish, Retract."""

    def __init__(self, command_loop: CommandLoop, admission: Admission) -> None:
        self._command_loop = command_loop
        self._admission = admission
        self._received = ReceivedBytes()
        self._converting = CallerLocks()
        self._streams: set[PublishRequests] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    def drain(self) -> None:
        """Admit no more requests; end each stream when its responses are sent and its client has left."""
        draining = RefusedError(Reason.DRAINING, "server", "stopping", "running; try again")
        for requests in self._streams:
            requests.drain(draining)

    def stop_waiting(self) -> None:
        """Stop waiting for clients to half-close."""
        for requests in self._streams:
            requests.stop_reading.set()

    async def idle(self) -> None:
        """Wait until no stream is open."""
        await self._idle.wait()

    async def Publish(  # noqa: N802
        self,
        request_iterator: AsyncIterator[publisher_service_pb2.PublishRequest],
        context: Context,
    ) -> AsyncIterator[publisher_service_pb2.PublishResponse]:
        """Accept objects, and respond in order, while reading continues.

        The initial metadata signal that the stream was accepted. A stream that ends because the server
        drains ends with that status: requests without a response were not executed.
        """
        caller = principal()
        caller.account.begin_stream()
        objects_max = self._command_loop.coordinator.limits.objects_per_request_max
        requests = PublishRequests(objects_max)
        self._streams.add(requests)
        self._idle.clear()
        reading: asyncio.Task[None] | None = None
        try:
            self._admission.require_serving()
            await context.send_initial_metadata(_ACCEPTED)
            reading = asyncio.create_task(self._read(request_iterator, requests, caller))
            with ending(caller, requests.drain, requests.stop_reading.set):
                async for response in requests.responses():
                    yield await self._message(response)
                await reading
            if requests.reason is not None:
                raise requests.reason
        finally:
            if reading is not None:
                reading.cancel()
            caller.account.end_stream()
            self._command_loop.gc_control.suspect()
            self._streams.discard(requests)
            if not self._streams:
                self._idle.set()

    async def _read(
        self,
        messages: AsyncIterator[publisher_service_pb2.PublishRequest],
        requests: PublishRequests,
        caller: Principal,
    ) -> None:
        try:
            async for message in _until(requests.stop_reading, messages):
                await caller.account.pace()
                if isinstance(message, LargeRequest):
                    size = len(message.data)
                    message = await self._parsed(message, caller)  # noqa: PLW2901 - its bytes are dropped
                else:
                    size = 0 if isinstance(message, UnreadableError) else message.ByteSize()
                if isinstance(message, UnreadableError):
                    await self._refuse(message, requests, caller)
                    continue
                count = len(message.objects)
                if await requests.admit(count):
                    ids = await self._submitted(message, size, caller)
                    requests.enqueue(PendingRequest(message.sequence, count, ids))
        finally:
            requests.end()

    async def _parsed(self, message: LargeRequest, caller: Principal) -> Any:  # noqa: ANN401 - or a refusal
        """Parse a request in its caller's turn, so that one of a caller is parsed between other tasks."""
        async with self._converting.of(caller.account):
            found = message.parsed()
            await asyncio.sleep(0)
            return found

    async def _refuse(self, error: UnreadableError, requests: PublishRequests, caller: Principal) -> None:
        """Respond to a request that breaks a bound, and continue; end the stream if it has no number."""
        address = address_of(error.head)
        if address is None or address.field != _SEQUENCE:
            raise error
        if await requests.admit(0):
            refusal: RefusedError = error
            try:
                caller.account.require(1)
                self._admission.charge_message(caller.account)
            except RefusedError as too_early:
                refusal = too_early
            requests.enqueue(PendingRequest(address.number, 0, refusal))

    async def _submitted(
        self, message: publisher_service_pb2.PublishRequest, size: int, caller: Principal
    ) -> asyncio.Future[list[int]] | RefusedError:
        """Submit a request of `size` bytes; return the future of its result, or its refusal."""
        read_us, read_ns = now_us(), time.time_ns()
        note = self._command_loop.coordinator.counters.measures.publication_us.note
        account = caller.account
        await self._received.add(account, size)
        ids: asyncio.Future[list[int]] | None = None
        try:
            if len(message.objects) <= converters.OBJECTS_AT_ONCE:
                command = self._small_command(message, size, caller)
            else:
                async with self._converting.of(account):
                    account.require(len(message.objects))
                    command = c.Publish(await self._objects(message, caller), caller)
            ids = await self._command_loop.submit(command)
        except RefusedError as error:
            return error
        finally:
            if ids is None:
                self._received.remove(account, size)
        if self._command_loop.traces is not None:
            self._command_loop.traces.read(command, read_ns)

        def note_result(done: asyncio.Future[list[int]]) -> None:
            self._received.remove(account, size)
            # The refusal is retrieved here, so that asyncio does not report it if the publisher has left.
            if not done.cancelled() and done.exception() is None:
                note(now_us() - read_us)

        ids.add_done_callback(note_result)
        return ids

    def _small_command(
        self, message: publisher_service_pb2.PublishRequest, size: int, caller: Principal
    ) -> c.Publish:
        """Return the command of a request that is converted at once."""
        account = caller.account
        account.require(len(message.objects) or 1)
        if not message.objects:
            self._admission.charge_message(account)
        limits = self._command_loop.coordinator.limits
        with nullcontext() if size <= SMALL_BYTES else self._admission.charging(account):
            objects = next(converters.objects_from(message, limits), ())
        return c.Publish(tuple(objects), caller)

    async def _objects(
        self, message: publisher_service_pb2.PublishRequest, caller: Principal
    ) -> tuple[NewObject, ...]:
        """Return the objects of a request; other tasks run between two batches of them."""
        chunks = converters.objects_from(message, self._command_loop.coordinator.limits)
        with self._admission.charging(caller.account):
            found = next(chunks)
        while len(found) < len(message.objects):
            await asyncio.sleep(0)
            with self._admission.charging(caller.account):
                found += next(chunks)
        return tuple(found)

    async def _message(
        self, response: PendingRequest | AdmittedCount
    ) -> publisher_service_pb2.PublishResponse:
        message = publisher_service_pb2.PublishResponse
        if isinstance(response, AdmittedCount):
            return message(go_away=go_away_message(response.reason, response.number))
        try:
            if isinstance(response.ids, RefusedError):
                raise response.ids
            ids = await response.ids
        except RefusedError as error:
            self._admission.note(error)
            return message(sequence=response.sequence, error=error_message(error))
        return message(sequence=response.sequence, ids=ids)

    async def Retract(  # noqa: N802
        self, request: publisher_service_pb2.RetractRequest, _context: Context
    ) -> publisher_service_pb2.RetractResponse:
        """Retract objects."""
        self._admission.require_serving()
        await self._command_loop.execute(converters.retract_from(request, principal()))
        return publisher_service_pb2.RetractResponse()


async def _until(
    event: asyncio.Event, requests: AsyncIterator[publisher_service_pb2.PublishRequest]
) -> AsyncIterator[publisher_service_pb2.PublishRequest]:
    """Yield requests until there are no more, or the event is set."""
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
