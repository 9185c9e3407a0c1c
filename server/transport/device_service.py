"""The service for devices: convert, call the pump, convert; streams that end when the server drains."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import Any

import grpc

from nearcast.v1 import device_service_pb2, device_service_pb2_grpc
from server.commands import command as c
from server.errors import Reason, RefusalError
from server.model import TopK
from server.runtime.command_loop import Pump
from server.session import Connection, Detached, Event
from server.transport import converters
from server.transport.admission import Context, Gate
from server.transport.event_encoder import EventWriter
from server.transport.stream_sender import Outlet


class DeviceServicer(device_service_pb2_grpc.DeviceServiceServicer):
    """Attach, AttachFleet, Search."""

    def __init__(self, pump: Pump, gate: Gate) -> None:
        self._pump = pump
        self._gate = gate
        board = pump.switchboard
        self._writer = EventWriter(
            board.frame,
            board.limits,
            virtual_time=board.virtual_time,
            lease_ms=board.leases.lease_ms,
        )
        self.outlets: set[Outlet] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    async def Attach(  # noqa: N802
        self, _requests: AsyncIterator[device_service_pb2.AttachRequest], context: Context
    ) -> None:
        """Carry one device."""
        writer = self._writer

        async def write(events: Sequence[tuple[str, Event]]) -> None:
            for _, event in events:
                await context.write(writer.response(event))

        await self._require_serving(context)
        outlet = Outlet(self._pump.switchboard, write, single=True)
        await self._carry(outlet, self._read_one(outlet, context))

    async def AttachFleet(  # noqa: N802
        self,
        _requests: AsyncIterator[device_service_pb2.AttachFleetRequest],
        context: Context,
    ) -> None:
        """Carry many devices."""
        writer = self._writer

        async def write(events: Sequence[tuple[str, Event]]) -> None:
            await context.write(writer.fleet_response(events))

        await self._require_serving(context)
        outlet = Outlet(self._pump.switchboard, write, single=False)
        await self._carry(outlet, self._read_fleet(outlet, context))

    async def Search(  # noqa: N802
        self, request: device_service_pb2.SearchRequest, context: Context
    ) -> device_service_pb2.SearchResponse:
        """Evaluate once."""
        try:
            self._gate.require(context)
            spec = converters.top_k_from(request.spec)
            lon, lat = converters.position_from(
                request.position, "position", present=request.HasField("position")
            )
            ranked, now_ms = await self._pump.ask(c.Search(spec, lon, lat))
        except RefusalError as error:
            await self._gate.refuse(context, error)
        return converters.search_message(spec, ranked, self._pump.switchboard.frame, now_ms)

    def drain(self) -> None:
        """Tell every attached device that the server is stopping, and end the streams."""
        error = RefusalError(Reason.DRAINING, "server", "stopping", "running; reconnect")
        for outlet in self.outlets:
            for session in list(outlet.connection.devices.values()):
                session.say(Detached(error))
            outlet.finish()

    async def idle(self) -> None:
        """Wait until no stream is open."""
        await self._idle.wait()

    async def _require_serving(self, context: Context) -> None:
        try:
            self._gate.require_serving()
        except RefusalError as error:
            await self._gate.refuse(context, error)

    async def _carry(self, outlet: Outlet, reading: Coroutine[None, None, None]) -> None:
        """Read and write until either side ends; then detach what is still attached here."""
        self.outlets.add(outlet)
        self._idle.clear()
        try:
            await outlet.carry(reading)
        finally:
            self.outlets.discard(outlet)
            self._pump.collector.suspect()
            if not self.outlets:
                self._idle.set()
            for device_id in list(outlet.connection.devices):
                self._pump.tell_now(c.Detach(outlet.connection, device_id))

    async def _read_one(self, outlet: Outlet, context: Context) -> None:
        device_id = ""
        while (request := await context.read()) is not grpc.aio.EOF:
            self._pump.listen()
            if not device_id:
                device_id = request.hello.device_id
            command = self._command(outlet.connection, device_id, request)
            if command is not None and not self._pump.tell_at_once(command):
                await self._pump.tell(command)
            await outlet.room()

    async def _read_fleet(self, outlet: Outlet, context: Context) -> None:
        connection = outlet.connection
        while (request := await context.read()) is not grpc.aio.EOF:
            self._pump.listen()
            for entry in request.entries:
                command: c.DeviceCommand | None
                if entry.HasField("request"):
                    command = self._command(connection, entry.device_id, entry.request)
                else:
                    command = c.Detach(connection, entry.device_id)
                if command is not None and not self._pump.tell_at_once(command):
                    await self._pump.tell(command)
            await outlet.room()

    def _command(
        self, connection: Connection, device_id: str, request: device_service_pb2.AttachRequest
    ) -> c.DeviceCommand | None:
        """Read what a device says; None if that cannot be read, which it is told."""
        self._pump.switchboard.heard(connection, device_id)
        try:
            if request.WhichOneof("command") == "report":  # nearly always
                return converters.report_from(connection, device_id, request.report)
            if request.HasField("hello"):
                self._gate.access.require(request.hello.token)
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
