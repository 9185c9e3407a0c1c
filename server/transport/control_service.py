"""The service for tests, simulators and operators."""

from __future__ import annotations

import asyncio
from dataclasses import fields

from nearcast.v1 import control_service_pb2, control_service_pb2_grpc
from server.commands import command as c
from server.errors import RefusalError
from server.runtime.command_loop import Pump
from server.runtime.lifecycle import ServerState
from server.transport.admission import Context, Gate
from server.transport.device_service import DeviceServicer


class ControlServicer(control_service_pb2_grpc.ControlServiceServicer):
    """Sync, AdvanceClock, Status."""

    def __init__(self, pump: Pump, gate: Gate, devices: DeviceServicer) -> None:
        self._pump = pump
        self._gate = gate
        self._devices = devices

    async def Sync(  # noqa: N802
        self, _request: control_service_pb2.SyncRequest, context: Context
    ) -> control_service_pb2.SyncResponse:
        """Wait until all that was accepted before has been sent."""
        try:
            self._gate.require(context)
            time_ms = await self._pump.ask(c.Sync())
        except RefusalError as error:
            await self._gate.refuse(context, error)
        await self._pump.answered()
        await asyncio.gather(*(outlet.flush() for outlet in list(self._devices.outlets)))
        return control_service_pb2.SyncResponse(time_ms=time_ms)

    async def AdvanceClock(  # noqa: N802
        self, request: control_service_pb2.AdvanceClockRequest, context: Context
    ) -> control_service_pb2.AdvanceClockResponse:
        """Set the virtual time."""
        try:
            self._gate.require(context)
            time_ms = await self._pump.ask(c.AdvanceClock(request.time_ms))
        except RefusalError as error:
            await self._gate.refuse(context, error)
        return control_service_pb2.AdvanceClockResponse(time_ms=time_ms)

    async def Status(  # noqa: N802
        self, _request: control_service_pb2.StatusRequest, context: Context
    ) -> control_service_pb2.StatusResponse:
        """Tell what there is, in whatever state."""
        try:
            self._gate.access.require_metadata(context.invocation_metadata())
        except RefusalError as error:
            await self._gate.refuse(context, error)
        board = self._pump.switchboard
        limits = board.limits
        is_recovering = self._pump.state is ServerState.RECOVERING
        return control_service_pb2.StatusResponse(
            state=control_service_pb2.ServerState.Name(int(self._pump.state)),
            time_ms=0 if is_recovering else board.ledger.now_ms,
            gauges=self._gauges(),
            counters=board.counters.named(),
            limits={one.name: float(getattr(limits, one.name)) for one in fields(limits)},
        )

    def _gauges(self) -> dict[str, int]:
        board = self._pump.switchboard
        connections = [outlet.connection for outlet in self._devices.outlets]
        states = {f"devices.{state.name}": count for state, count in board.delivery.devices().items()}
        return states | {
            "subscriptions": board.delivery.subscription_count,
            "objects": len(board.ledger.objects),
            "streams": len(connections),
            "commands_waiting": self._pump.waiting_count,
            "events_waiting": sum(one.queued_count - one.written_count for one in connections),
        }
