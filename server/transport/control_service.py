"""The service for tests, simulators and operators."""

from __future__ import annotations

import asyncio
from dataclasses import fields

from nearcast.v1 import control_service_pb2, control_service_pb2_grpc
from server.commands import command as c
from server.errors import RefusalError
from server.runtime.command_loop import CommandLoop
from server.runtime.lifecycle import ServerState
from server.transport.admission import Admission, Context
from server.transport.device_service import DeviceServicer


class ControlServicer(control_service_pb2_grpc.ControlServiceServicer):
    """Sync, AdvanceClock, Status."""

    def __init__(self, command_loop: CommandLoop, admission: Admission, devices: DeviceServicer) -> None:
        self._command_loop = command_loop
        self._admission = admission
        self._devices = devices

    async def Sync(  # noqa: N802
        self, _request: control_service_pb2.SyncRequest, context: Context
    ) -> control_service_pb2.SyncResponse:
        """Wait until all that was accepted before has been sent."""
        try:
            self._admission.require(context)
            time_ms = await self._command_loop.execute(c.Sync())
        except RefusalError as error:
            await self._admission.refuse(context, error)
        await self._command_loop.answered()
        await asyncio.gather(*(sender.flush() for sender in list(self._devices.senders)))
        return control_service_pb2.SyncResponse(time_ms=time_ms)

    async def AdvanceClock(  # noqa: N802
        self, request: control_service_pb2.AdvanceClockRequest, context: Context
    ) -> control_service_pb2.AdvanceClockResponse:
        """Set the virtual time."""
        try:
            self._admission.require(context)
            time_ms = await self._command_loop.execute(c.AdvanceClock(request.time_ms))
        except RefusalError as error:
            await self._admission.refuse(context, error)
        return control_service_pb2.AdvanceClockResponse(time_ms=time_ms)

    async def Status(  # noqa: N802
        self, _request: control_service_pb2.StatusRequest, context: Context
    ) -> control_service_pb2.StatusResponse:
        """Tell what there is, in whatever state."""
        try:
            self._admission.auth.require_metadata(context.invocation_metadata())
        except RefusalError as error:
            await self._admission.refuse(context, error)
        coordinator = self._command_loop.coordinator
        limits = coordinator.limits
        is_recovering = self._command_loop.state is ServerState.RECOVERING
        return control_service_pb2.StatusResponse(
            state=control_service_pb2.ServerState.Name(int(self._command_loop.state)),
            time_ms=0 if is_recovering else coordinator.matching.now_ms,
            gauges=self._gauges(),
            counters=coordinator.counters.named(),
            limits={one.name: float(getattr(limits, one.name)) for one in fields(limits)},
        )

    def _gauges(self) -> dict[str, int]:
        coordinator = self._command_loop.coordinator
        outboxes = [sender.outbox for sender in self._devices.senders]
        states = {f"devices.{state.name}": count for state, count in coordinator.router.devices().items()}
        return states | {
            "subscriptions": coordinator.router.subscription_count,
            "objects": len(coordinator.matching.objects),
            "streams": len(outboxes),
            "commands_waiting": self._command_loop.waiting_count,
            "events_waiting": sum(one.queued_count - one.written_count for one in outboxes),
            **coordinator.counters.times(),
        }
