"""The services: convert, call the pump, convert."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from typing import Any, NoReturn

import grpc

from nearcast.v1 import (
    control_service_pb2,
    control_service_pb2_grpc,
    device_service_pb2,
    device_service_pb2_grpc,
    publisher_service_pb2,
    publisher_service_pb2_grpc,
)
from server import commands as c
from server.errors import Reason, RefusalError
from server.model import TopK
from server.pump import Pump
from server.session import Connection, Detached, Event
from server.transport import converters
from server.transport.access import Access
from server.transport.outlet import Outlet
from server.transport.status import CODES, error_message, trailing_metadata
from server.transport.writer import EventWriter

_log = logging.getLogger(__name__)

Context = grpc.aio.ServicerContext[Any, Any]


async def abort(context: Context, error: RefusalError) -> NoReturn:
    """End a call with the status, the error and the ErrorInfo of a refusal."""
    await context.abort(CODES[error.reason], str(error), trailing_metadata(error))


class DeviceServicer(device_service_pb2_grpc.DeviceServiceServicer):
    """Attach, AttachFleet, Search."""

    def __init__(self, pump: Pump, access: Access) -> None:
        self._pump = pump
        self._access = access
        board = pump.switchboard
        self._writer = EventWriter(
            board.frame,
            board.limits,
            virtual_time=board.virtual_time,
            lease_ms=board.leases.lease_ms,
        )
        self.outlets: set[Outlet] = set()

    async def Attach(  # noqa: N802
        self, request_iterator: AsyncIterator[device_service_pb2.AttachRequest], context: Context
    ) -> None:
        """Carry one device."""
        writer = self._writer

        async def write(events: Sequence[tuple[str, Event]]) -> None:
            for _, event in events:
                await context.write(writer.response(event))

        outlet = Outlet(self._pump.switchboard, write, single=True)
        await self._carry(outlet, self._read_one(outlet.connection, request_iterator))

    async def AttachFleet(  # noqa: N802
        self,
        request_iterator: AsyncIterator[device_service_pb2.AttachFleetRequest],
        context: Context,
    ) -> None:
        """Carry many devices."""
        writer = self._writer

        async def write(events: Sequence[tuple[str, Event]]) -> None:
            await context.write(writer.fleet_response(events))

        outlet = Outlet(self._pump.switchboard, write, single=False)
        await self._carry(outlet, self._read_fleet(outlet.connection, request_iterator))

    async def Search(  # noqa: N802
        self, request: device_service_pb2.SearchRequest, context: Context
    ) -> device_service_pb2.SearchResponse:
        """Evaluate once."""
        try:
            self._access.require_metadata(context.invocation_metadata())
            spec = converters.top_k_from(request.spec)
            lon, lat = converters.position_from(
                request.position, "position", present=request.HasField("position")
            )
            ranked, now_ms = await self._pump.ask(c.Search(spec, lon, lat))
        except RefusalError as error:
            await abort(context, error)
        return converters.search_message(spec, ranked, self._pump.switchboard.frame, now_ms)

    def drain(self) -> None:
        """Tell every attached device that the server is stopping, and end the streams."""
        error = RefusalError(Reason.DRAINING, "server", "stopping", "running; reconnect")
        for outlet in self.outlets:
            for session in list(outlet.connection.devices.values()):
                session.say(Detached(error))
            outlet.finish()

    async def _carry(self, outlet: Outlet, reading: Any) -> None:  # noqa: ANN401
        """Read and write until either side ends; then detach what is still attached here."""
        self.outlets.add(outlet)
        tasks = [asyncio.ensure_future(reading), asyncio.ensure_future(outlet.run())]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            # Also reached by cancellation, when the client has gone: nothing here may wait.
            for task in tasks:
                task.cancel()
            outlet.close()
            self.outlets.discard(outlet)
            for device_id in list(outlet.connection.devices):
                self._pump.tell_now(c.Detach(outlet.connection, device_id))

    async def _read_one(
        self, connection: Connection, requests: AsyncIterator[device_service_pb2.AttachRequest]
    ) -> None:
        device_id = ""
        async for request in requests:
            if not device_id:
                device_id = request.hello.device_id
            command = self._command(connection, device_id, request)
            if command is not None and not self._pump.tell_at_once(command):
                await self._pump.tell(command)

    async def _read_fleet(
        self,
        connection: Connection,
        requests: AsyncIterator[device_service_pb2.AttachFleetRequest],
    ) -> None:
        async for request in requests:
            for entry in request.entries:
                command: c.DeviceCommand | None
                if entry.HasField("request"):
                    command = self._command(connection, entry.device_id, entry.request)
                else:
                    command = c.Detach(connection, entry.device_id)
                if command is not None and not self._pump.tell_at_once(command):
                    await self._pump.tell(command)

    def _command(
        self, connection: Connection, device_id: str, request: device_service_pb2.AttachRequest
    ) -> c.DeviceCommand | None:
        """Read what a device says; None if that cannot be read, which it is told."""
        self._pump.heard(connection, device_id)
        try:
            if request.HasField("hello"):
                self._access.require(request.hello.token)
                self._require_same_device(device_id, request.hello.device_id)
            return converters.device_command_from(connection, device_id, request)
        except RefusalError as error:
            self._pump.switchboard.reject(_outline(connection, device_id, request), error)
            return None

    @staticmethod
    def _require_same_device(device_id: str, hello_id: str) -> None:
        if device_id != hello_id:
            raise RefusalError(
                Reason.INVALID_FIELD,
                "hello.device_id",
                repr(hello_id),
                f"the entry's, {device_id!r}",
            )


def device_handler(servicer: DeviceServicer) -> grpc.GenericRpcHandler:
    """Return the service's methods, of which the streams answer with what is written already."""
    pb2 = device_service_pb2
    methods: dict[str, Any] = {
        "Attach": grpc.stream_stream_rpc_method_handler(
            servicer.Attach, request_deserializer=pb2.AttachRequest.FromString
        ),
        "AttachFleet": grpc.stream_stream_rpc_method_handler(
            servicer.AttachFleet, request_deserializer=pb2.AttachFleetRequest.FromString
        ),
        "Search": grpc.unary_unary_rpc_method_handler(
            servicer.Search,
            request_deserializer=pb2.SearchRequest.FromString,
            response_serializer=pb2.SearchResponse.SerializeToString,
        ),
    }
    name = pb2.DESCRIPTOR.services_by_name["DeviceService"].full_name
    return grpc.method_handlers_generic_handler(name, methods)


def _outline(
    connection: Connection, device_id: str, request: device_service_pb2.AttachRequest
) -> c.DeviceCommand:
    """Return a stand-in for a command that could not be read: enough to address its rejection."""
    match request.WhichOneof("command"):
        case "hello":
            return c.Hello(connection, device_id, b"", 0, 0.0, 0.0)
        case "report":
            return c.Report(connection, device_id, request.report.sequence, 0.0, 0.0, ())
        case "subscribe":
            # An unsubscribe is addressed by the same number; only the kind differs.
            number = request.subscribe.subscription_id
            return c.Subscribe(connection, device_id, number, _NO_SPEC, 0.0, 0.0)
        case _:
            return c.Ping(connection, device_id, 0)


_NO_SPEC = TopK((), 0, 0.0)


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


class PublisherServicer(publisher_service_pb2_grpc.PublisherServiceServicer):
    """Publish, Retract."""

    def __init__(self, pump: Pump, access: Access) -> None:
        self._pump = pump
        self._access = access
        self._draining = asyncio.Event()

    def drain(self) -> None:
        """End streams between two requests."""
        self._draining.set()

    async def Publish(  # noqa: N802
        self,
        request_iterator: AsyncIterator[publisher_service_pb2.PublishRequest],
        context: Context,
    ) -> AsyncIterator[publisher_service_pb2.PublishResponse]:
        """Accept objects, answering in order."""
        try:
            self._access.require_metadata(context.invocation_metadata())
        except RefusalError as error:
            await abort(context, error)
        async for request in _until(self._draining, request_iterator):
            try:
                objects = [
                    converters.new_object_from(message, f"objects[{i}]")
                    for i, message in enumerate(request.objects)
                ]
                ids = await self._pump.ask(c.Publish(tuple(objects)))
                yield publisher_service_pb2.PublishResponse(sequence=request.sequence, ids=ids)
            except RefusalError as error:
                yield publisher_service_pb2.PublishResponse(
                    sequence=request.sequence, error=error_message(error)
                )

    async def Retract(  # noqa: N802
        self, request: publisher_service_pb2.RetractRequest, context: Context
    ) -> publisher_service_pb2.RetractResponse:
        """Take objects back."""
        try:
            self._access.require_metadata(context.invocation_metadata())
            await self._pump.ask(c.Retract(tuple(request.ids)))
        except RefusalError as error:
            await abort(context, error)
        return publisher_service_pb2.RetractResponse()


class ControlServicer(control_service_pb2_grpc.ControlServiceServicer):
    """Sync, AdvanceClock."""

    def __init__(self, pump: Pump, access: Access, devices: DeviceServicer) -> None:
        self._pump = pump
        self._access = access
        self._devices = devices

    async def Sync(  # noqa: N802
        self, _request: control_service_pb2.SyncRequest, context: Context
    ) -> control_service_pb2.SyncResponse:
        """Wait until all that was accepted before has been sent."""
        try:
            self._access.require_metadata(context.invocation_metadata())
            time_ms = await self._pump.ask(c.Sync())
        except RefusalError as error:
            await abort(context, error)
        await self._pump.answered()
        await asyncio.gather(*(outlet.flush() for outlet in list(self._devices.outlets)))
        return control_service_pb2.SyncResponse(time_ms=time_ms)

    async def AdvanceClock(  # noqa: N802
        self, request: control_service_pb2.AdvanceClockRequest, context: Context
    ) -> control_service_pb2.AdvanceClockResponse:
        """Set the virtual time."""
        try:
            self._access.require_metadata(context.invocation_metadata())
            time_ms = await self._pump.ask(c.AdvanceClock(request.time_ms))
        except RefusalError as error:
            await abort(context, error)
        return control_service_pb2.AdvanceClockResponse(time_ms=time_ms)
