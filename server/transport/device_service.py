"""The service for devices: decode, call the command loop, encode; streams end when the server drains."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import grpc

from identity.expiry import ending
from identity.principal import local_name
from identity.quotas import Account
from nearcast.errors import Reason, RefusedError
from nearcast.v1 import device_service_pb2, device_service_pb2_grpc
from safe_region.steady_clock import steady_clock_ms
from server import command as c
from server.commands.validation import checked_report
from server.runtime.command_loop import CommandLoop
from server.runtime.lifecycle import ServerState
from server.session import GoAway, Outbox, RefusedCommand, Rejection, VersionedDelta
from server.transport import converters
from server.transport.admission import Admission, Context
from server.transport.answers import Draft
from server.transport.authentication import principal
from server.transport.event_encoder import EventEncoder
from server.transport.first_message import FirstMessages
from server.transport.framing import Events, FleetFraming, Framing, SingleFraming
from server.transport.report_timer import follow
from server.transport.specs import spec_from
from server.transport.stream_sender import StreamSender
from server.transport.waiting_hellos import WaitingHellos
from server.transport.wire_walk import UnreadableError, address_of

_RECOVERY_S = 5.0
"""How long a stream waits for a server that recovers.

Refusing thousands of devices that retry would delay the recovery, and their backoff would bring them back
seconds after it.
"""

_HALF_CLOSE_S = 5.0
"""How long a refused stream waits for its client to half-close."""


_REQUEST = device_service_pb2.AttachRequest
_COMMANDS = {
    _REQUEST.SUBSCRIBE_FIELD_NUMBER: RefusedCommand.SUBSCRIBE,
    _REQUEST.REPORT_FIELD_NUMBER: RefusedCommand.REPORT,
}
"""Commands that may be long, by field number."""


_ENTRIES_AT_ONCE = 256
"""Entries of a fleet to read at a time: reading one takes some 5 us, refused or not."""
_ADDED_FREE = 64
_ADDED_US = 1.5
"""Objects in the deltas of a message that are not charged, and the time to write one more."""


class DeviceServicer(device_service_pb2_grpc.DeviceServiceServicer):
    """Attach, AttachFleet, Search, ForgetDevice."""

    def __init__(self, command_loop: CommandLoop, admission: Admission) -> None:
        self._command_loop = command_loop
        self._admission = admission
        self._coordinator = coordinator = command_loop.coordinator
        self._encoder = EventEncoder(
            coordinator.frame,
            coordinator.limits,
            virtual_time=coordinator.clock.is_virtual,
            lease_ms=coordinator.leases.lease_ms,
        )
        self._has_recovered = asyncio.Event()
        self._first_messages = FirstMessages()
        self.senders: set[StreamSender] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    async def Attach(  # noqa: N802
        self, _requests: AsyncIterator[device_service_pb2.AttachRequest], context: Context
    ) -> None:
        """Serve one device."""
        await self._serve(context, SingleFraming(self._encoder, principal()))

    async def AttachFleet(  # noqa: N802
        self,
        _requests: AsyncIterator[device_service_pb2.AttachFleetRequest],
        context: Context,
    ) -> None:
        """Serve many devices."""
        await self._serve(context, FleetFraming(self._encoder, principal()))

    async def Search(  # noqa: N802
        self, request: device_service_pb2.SearchRequest, _context: Context
    ) -> Draft:
        """Evaluate a subscription once."""
        self._admission.require_serving()
        caller = principal()
        with self._admission.charging(caller.account):
            spec = spec_from(request.spec)
            lon, lat = converters.position_from(
                request.position, "position", present=request.HasField("position")
            )
        ranked, now_ms = await self._command_loop.execute(c.Search(spec, lon, lat, caller))
        place, frame = (lon, lat), self._coordinator.frame
        parts = converters.search_parts(spec, ranked, frame, place, now_ms)
        return Draft(converters.search_bytes_max(ranked), parts)

    async def ForgetDevice(  # noqa: N802
        self, request: device_service_pb2.ForgetDeviceRequest, _context: Context
    ) -> device_service_pb2.ForgetDeviceResponse:
        """Delete the data that is kept of a device."""
        caller = principal()
        self._admission.require_serving()
        command = c.ForgetDevice(caller.qualified(request.device_id), caller)
        count = await self._command_loop.execute(command)
        return device_service_pb2.ForgetDeviceResponse(subscription_count=count)

    def serve(self) -> None:
        """Let the streams start that wait for the recovery of the server."""
        self._has_recovered.set()

    def drain(self) -> None:
        """Send every stream GoAway; each ends after its client has half-closed."""
        error = RefusedError(Reason.DRAINING, "server", "stopping", "running; reconnect")
        for sender in self.senders:
            sender.send_away(error)

    def stop_waiting(self) -> None:
        """Stop waiting for clients to half-close."""
        for sender in self.senders:
            sender.end()

    async def idle(self) -> None:
        """Wait until no stream is open."""
        await self._idle.wait()

    async def _serve(self, context: Context, framing: Framing) -> None:
        """Serve a stream; end it with the status of the refusal if it is refused."""
        caller = principal()
        try:
            caller.account.begin_stream()
        except RefusedError as error:
            self._admission.refuse(context, error)
            return
        try:
            await context.send_initial_metadata(())  # a client may wait for it before it writes
            sender = self._sender(context, framing)
            await self._require_serving(sender, context)
            with ending(caller, sender.send_away, sender.end):
                await self._carry(sender, self._read(sender, context, framing))
        except RefusedError as error:
            self._admission.refuse(context, error)
        finally:
            caller.account.end_stream()

    def _sender(self, context: Context, framing: Framing) -> StreamSender:
        """Return the sender of a stream."""
        account, charges = principal().account, self._command_loop.charges

        async def write(events: Events) -> None:
            for some, message in framing.messages(events):
                if account.is_limited:
                    charges.carried(account, _writing_us(some))
                await context.write(message)

        return StreamSender(
            self._coordinator,
            write,
            single=isinstance(framing, SingleFraming),
            principal=principal(),
            traces=self._command_loop.traces,
            on_taken=lambda cost_us: charges.carried(account, cost_us),
        )

    async def _require_serving(self, sender: StreamSender, context: Context) -> None:
        """Refuse a stream unless the server accepts commands soon."""
        if self._command_loop.state is ServerState.RECOVERING:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._has_recovered.wait(), _RECOVERY_S)
        try:
            self._admission.require_serving()
        except RefusedError as error:
            await sender.write_now("", GoAway(error))
            await _await_half_close(context)
            raise

    async def _carry(self, sender: StreamSender, reading: Coroutine[None, None, None]) -> None:
        """Read and write until either side ends; then detach the devices that are still attached here."""
        self.senders.add(sender)
        self._coordinator.outboxes.add(sender.outbox)
        self._idle.clear()
        try:
            await sender.carry(reading)
        finally:
            self.senders.discard(sender)
            self._coordinator.outboxes.discard(sender.outbox)
            self._command_loop.gc_control.suspect()
            if not self.senders:
                self._idle.set()
            for device_id in list(sender.outbox.devices):
                self._command_loop.enqueue_detach(c.Detach(sender.outbox, device_id))

    async def _read(self, sender: StreamSender, context: Context, framing: Framing) -> None:
        """Read until the client half-closes. Requests are discarded once the stream is finishing."""
        hellos = self._waiting_hellos(sender)
        try:
            await self._read_on(sender, context, framing, hellos)
        finally:
            if hellos is not None:
                hellos.close()

    async def _read_on(
        self, sender: StreamSender, context: Context, framing: Framing, hellos: WaitingHellos | None
    ) -> None:
        outbox, account = sender.outbox, sender.outbox.principal.account
        is_admitted = False
        request = await self._first_messages.read(context)
        while request is not grpc.aio.EOF:
            if sender.is_finishing:
                request = await context.read()
                continue
            if isinstance(request, RefusedError):
                await self._acquire_one(account)
                self._reject_unread(outbox, framing.device_id, request)
                await sender.room()
                request = await context.read()
                continue
            if account.is_limited:
                count = framing.count(request)
                await (account.acquire(count) if count else self._acquire_one(account))
            self._coordinator.clock.read()
            for number, (device_id, own_request) in enumerate(framing.entries(request), 1):
                if number % _ENTRIES_AT_ONCE == 0:
                    await asyncio.sleep(0)
                if not is_admitted:
                    await self._admit(sender, context, device_id, own_request)
                    is_admitted = True
                if hellos is not None and await hellos.keep(device_id, own_request):
                    continue
                command = self._command(outbox, device_id, own_request)
                if command is not None and not self._command_loop.try_enqueue(command):
                    await self._command_loop.enqueue(command)
            await sender.room()
            request = await context.read()

    async def _acquire_one(self, account: Account) -> None:
        """Wait until the caller may have an operation; charge it for a message without a command."""
        await account.acquire(1)
        self._admission.charge_message(account)

    async def _admit(
        self,
        sender: StreamSender,
        context: Context,
        device_id: str,
        request: device_service_pb2.AttachRequest | None,
    ) -> None:
        """Require that a stream starts with a hello: before it, nothing is queued.

        Raises
        ------
        RefusedError
            If it does not. The device has received the rejection, and the stream is to end with the
            status.
        """
        request = device_service_pb2.AttachRequest() if request is None else request
        try:
            self._require_hello(request)
        except RefusedError as error:
            await sender.write_now(device_id, Rejection(*_address(request), error))
            await _await_half_close(context)
            raise

    def _reject_unread(self, outbox: Outbox, device_id: str | None, error: RefusedError) -> None:
        """Send the rejection of a command that breaks a bound on its bytes, if it can be identified.

        Raises
        ------
        RefusedError
            If it cannot: the stream ends.
        """
        address = address_of(error.head) if isinstance(error, UnreadableError) else None
        if device_id is None or address is None or address.field not in _COMMANDS:
            raise error
        command = _COMMANDS[address.field]
        self._coordinator.reject(outbox, device_id, address.number, command, error)

    def _require_hello(self, request: device_service_pb2.AttachRequest) -> None:
        if not request.HasField("hello"):
            shown = request.WhichOneof("command") or "absent"
            limit = "a hello, the first message of a stream"
            raise RefusedError(Reason.OUT_OF_ORDER, "command", shown, limit)

    def _waiting_hellos(self, sender: StreamSender) -> WaitingHellos | None:
        """Return what waits on a stream until a server has its device; None without a cluster."""
        placement, outbox = self._coordinator.placement, sender.outbox

        async def submit(device_id: str, request: device_service_pb2.AttachRequest | None) -> None:
            self._coordinator.clock.read()
            command = None if sender.is_finishing else self._command(outbox, device_id, request)
            if command is not None:
                await self._command_loop.enqueue(command)

        return None if placement is None else WaitingHellos(placement, submit)

    def _command(
        self, outbox: Outbox, device_id: str, request: device_service_pb2.AttachRequest | None
    ) -> c.DeviceCommand | None:
        """Return the command in a request, None for the end of a device.

        None is returned if it is refused at once, which the device is sent.
        """
        if request is None:
            return c.Detach(outbox, device_id)
        session = self._coordinator.renew_lease(outbox, device_id)
        try:
            kind = request.WhichOneof("command")
            if kind == "report":  # nearly always
                report = converters.report_from(outbox, session, device_id, request.report)
                follow(report)
                return checked_report(report, self._coordinator.limits)
            if kind == "hello":
                hello_id = outbox.principal.qualified(request.hello.device_id)
                self._require_same_device(device_id, hello_id)
                self._coordinator.counters.count_hello(steady_clock_ms())
            if kind != "subscribe":  # subscribe is the command that may be large
                return converters.device_command_from(outbox, device_id, request)
            with self._admission.charging(outbox.principal.account):
                return converters.device_command_from(outbox, device_id, request)
        except RefusedError as error:
            number, command = _address(request)
            self._coordinator.reject(outbox, device_id, number, command, error)
            return None

    @staticmethod
    def _require_same_device(device_id: str, hello_id: str) -> None:
        if device_id != hello_id:
            raise RefusedError(
                Reason.INVALID_FIELD,
                "hello.device_id",
                repr(local_name(hello_id)),
                f"the entry's, {local_name(device_id)!r}",
            )


def _writing_us(events: Events) -> float:
    """Return the charge for writing large deltas; the costs of reports include small ones."""
    added = sum(len(event.delta.add) for _, event in events if isinstance(event, VersionedDelta))
    return _ADDED_US * added if added > _ADDED_FREE else 0.0


async def _await_half_close(context: Context) -> None:
    """Discard messages until the client half-closes, or for a while, so that it reads the refusal.

    A client that is writing when its stream ends may lose responses that it has not read, and the status,
    too.
    """
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_HALF_CLOSE_S):
            while await context.read() is not grpc.aio.EOF:
                pass


def device_handler(servicer: DeviceServicer) -> grpc.GenericRpcHandler:
    """Return the handler of the service's methods, whose streams write serialized responses."""
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
        "ForgetDevice": grpc.unary_unary_rpc_method_handler(
            servicer.ForgetDevice,
            request_deserializer=pb2.ForgetDeviceRequest.FromString,
            response_serializer=pb2.ForgetDeviceResponse.SerializeToString,
        ),
    }
    name = pb2.DESCRIPTOR.services_by_name["DeviceService"].full_name
    return grpc.method_handlers_generic_handler(name, methods)


def _address(request: device_service_pb2.AttachRequest) -> tuple[int, RefusedCommand]:
    """Return the number and command for the rejection of a request, valid or not."""
    match request.WhichOneof("command"):
        case "hello":
            return 0, RefusedCommand.HELLO
        case "report":
            return request.report.sequence, RefusedCommand.REPORT
        case "subscribe":
            return request.subscribe.subscription_id, RefusedCommand.SUBSCRIBE
        case _:
            return 0, RefusedCommand.UNSPECIFIED
