"""The service for tests, simulators and operators."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import fields

from identity.principal import DEFAULT_TENANT, Principal
from nearcast.errors import Reason, RefusedError
from nearcast.v1 import control_service_pb2, control_service_pb2_grpc
from safe_region.scoring.idf import WORDS_MAX, IdfError, IdfTable
from server import command as c
from server.core.inspection import InspectedDevice
from server.distribution import Classes
from server.monitoring.readings import Readings, Usage
from server.runtime.command_loop import CommandLoop
from server.transport.admission import Admission, Context
from server.transport.authentication import principal
from server.transport.device_service import DeviceServicer
from server.transport.inspections import inspect_from, inspect_message
from server.transport.watching import Watching


class ControlServicer(control_service_pb2_grpc.ControlServiceServicer):
    """Sync, AdvanceClock, SetIdf, Status, Inspect, Watch."""

    def __init__(
        self,
        command_loop: CommandLoop,
        admission: Admission,
        devices: DeviceServicer,
        readings: Readings,
    ) -> None:
        self._command_loop = command_loop
        self._admission = admission
        self._devices = devices
        self._readings = readings
        self.watching = Watching(command_loop, admission)

    async def Sync(  # noqa: N802
        self, _request: control_service_pb2.SyncRequest, _context: Context
    ) -> control_service_pb2.SyncResponse:
        """Wait until the effects of all commands accepted before have been sent."""
        time_ms = await self._command_loop.execute(c.Sync(principal()))
        await self._command_loop.answered()
        await asyncio.gather(*(sender.flush() for sender in list(self._devices.senders)))
        return control_service_pb2.SyncResponse(time_ms=time_ms)

    async def AdvanceClock(  # noqa: N802
        self, request: control_service_pb2.AdvanceClockRequest, _context: Context
    ) -> control_service_pb2.AdvanceClockResponse:
        """Set the virtual time."""
        time_ms = await self._command_loop.execute(c.AdvanceClock(request.time_ms, principal()))
        return control_service_pb2.AdvanceClockResponse(time_ms=time_ms)

    async def SetIdf(  # noqa: N802
        self,
        requests: AsyncIterator[control_service_pb2.SetIdfRequest],
        _context: Context,
    ) -> control_service_pb2.SetIdfResponse:
        """Bring another table of keyword weights into force."""
        self._admission.require_serving()
        table = await _table_from(requests)
        generation = await self._command_loop.execute(c.SetIdf(table, principal()))
        return control_service_pb2.SetIdfResponse(generation=generation)

    async def Status(  # noqa: N802
        self, _request: control_service_pb2.StatusRequest, _context: Context
    ) -> control_service_pb2.StatusResponse:
        """Return gauges, counters, limits and callers, in any state of the server."""
        limits, caller = self._command_loop.coordinator.limits, principal()
        log_streams = await self._log_streams(caller)
        with self._admission.charging(caller.account):
            reading = self._readings.read(caller.tenant)
            return control_service_pb2.StatusResponse(
                state=control_service_pb2.ServerState.Name(int(reading.state)),
                time_ms=reading.time_ms,
                gauges=reading.gauges,
                counters=reading.counters,
                limits={one.name: float(getattr(limits, one.name)) for one in fields(limits)},
                distributions={name: _distribution(one) for name, one in reading.measures.items()},
                callers=[_usage(one) for one in self._readings.most(caller.tenant)],
                nodes=self._nodes(caller),
                log_streams=log_streams,
            )

    def _nodes(self, caller: Principal) -> list[control_service_pb2.ClusterNode]:
        """Return the nodes of the cluster."""
        placement = self._command_loop.coordinator.placement
        if placement is None or caller.tenant != DEFAULT_TENANT:
            return []
        return [
            control_service_pb2.ClusterNode(
                address=one.address,
                state=control_service_pb2.ClusterNodeState.Name(int(one.state)),
                slot_count=one.slot_count,
                is_this=one.is_this,
                lease_age_ms=one.lease_age_ms,
                rules=one.rules,
            )
            for one in placement.nodes()
        ]

    async def _log_streams(self, caller: Principal) -> list[control_service_pb2.LogStream]:
        """Return the streams of the log of the cluster."""
        placement = self._command_loop.coordinator.placement
        if placement is None or caller.tenant != DEFAULT_TENANT:
            return []
        return [
            control_service_pb2.LogStream(
                name=one.name,
                message_count=one.message_count,
                byte_count=one.byte_count,
                servers=[control_service_pb2.LogServer(**server._asdict()) for server in one.servers],
            )
            for one in await placement.log_streams()
        ]

    async def Inspect(  # noqa: N802
        self, request: control_service_pb2.InspectRequest, _context: Context
    ) -> control_service_pb2.InspectResponse:
        """Return the state of one device, subscription or object."""
        caller = principal()
        self._admission.require_serving()
        found, time_ms = await self._command_loop.execute(inspect_from(request, caller))
        if isinstance(found, InspectedDevice) and found.silent_ms is None:
            seen_ms = await self._command_loop.last_seen_ms(found.device_id)
            found = found._replace(silent_ms=max(0, time_ms - (seen_ms or time_ms)))
        with self._admission.charging(caller.account):
            return inspect_message(found, time_ms)

    async def Watch(  # noqa: N802
        self,
        request_iterator: AsyncIterator[control_service_pb2.WatchRequest],
        _context: Context,
    ) -> AsyncIterator[control_service_pb2.WatchFrame]:
        """Send what the server knows within a view, again and again."""
        self._admission.require_serving()
        async with aclosing(self.watching.frames(request_iterator, principal())) as frames:
            async for frame in frames:
                yield frame


def _usage(one: Usage) -> control_service_pb2.CallerUsage:
    account = one.account
    return control_service_pb2.CallerUsage(
        tenant=account.tenant.name if account.tenant is not None else "",
        id=account.name,
        time_share=one.share,
        time_us=int(account.used_us),
        stream_count=account.stream_count,
        call_count=account.call_count,
        unread_bytes=account.unread_bytes,
    )


def _distribution(classes: Classes) -> control_service_pb2.Distribution:
    return control_service_pb2.Distribution(
        bounds=classes.bounds, counts=classes.counts, total=classes.total
    )


async def _table_from(requests: AsyncIterator[control_service_pb2.SetIdfRequest]) -> IdfTable:
    """Return the table of weights in the parts of a stream.

    Raises
    ------
    RefusedError
        Naming the flaw.
    """
    weights: dict[str, float] = {}
    unknown = 1.0
    async for part in requests:
        twice = next((word for word in part.weights if word in weights), None)
        if twice is not None:
            limit = "in one part of the table"
            raise RefusedError(Reason.INVALID_FIELD, f"weights[{twice!r}]", "present twice", limit)
        weights.update(part.weights)
        if len(weights) > WORDS_MAX:
            limit = f"at most {WORDS_MAX} keywords"
            raise RefusedError(Reason.INVALID_FIELD, "weights", f"{len(weights)} keywords", limit)
        if part.HasField("unknown_weight"):
            unknown = part.unknown_weight
    try:
        return await asyncio.to_thread(IdfTable, weights, unknown)
    except IdfError as error:
        raise RefusedError(Reason.INVALID_FIELD, error.field, error.value, error.limit) from error
