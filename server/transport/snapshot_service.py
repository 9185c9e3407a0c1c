"""The service of a node of a cluster that sends snapshots of its store."""

from __future__ import annotations

import asyncio

import grpc

from cluster.v1 import snapshot_service_pb2 as pb
from server.replication.snapshots import Snapshots, send_content
from server.transport.admission import Admission, Context

_STALL_S = 30.0
"""A caller that takes no chunk for this time loses the call: there is one at a time."""


class SnapshotServicer:
    """Sends snapshots.

    Parameters
    ----------
    snapshots
        Makes them.
    admission
        Refuses while the node does not serve.
    """

    def __init__(self, snapshots: Snapshots, admission: Admission) -> None:
        self._snapshots = snapshots
        self._admission = admission

    async def Copy(self, _request: pb.CopyRequest, context: Context) -> None:  # noqa: N802
        """Send a snapshot: its description, then its content."""
        self._admission.require_serving()

        try:
            await self._copy(context)
        except TimeoutError:
            context.set_code(grpc.StatusCode.DEADLINE_EXCEEDED)
            context.set_details(f"the copy was not read for {_STALL_S:g} s")

    async def _copy(self, context: Context) -> None:
        async def send(response: pb.CopyResponse) -> None:
            async with asyncio.timeout(_STALL_S):
                await context.write(response)

        async with self._snapshots.made() as found:
            facts = found.facts
            described = pb.Snapshot(
                log_id=facts.log_id,
                offset=facts.offset,
                size_bytes=found.size_bytes,
                sha256=found.sha256,
            )
            await send(pb.CopyResponse(snapshot=described))
            await send_content(found, lambda chunk: send(pb.CopyResponse(content=chunk)))


def snapshot_handler(servicer: SnapshotServicer) -> grpc.GenericRpcHandler:
    """Return the handler of the service."""
    copy = grpc.unary_stream_rpc_method_handler(
        servicer.Copy,
        request_deserializer=pb.CopyRequest.FromString,
        response_serializer=pb.CopyResponse.SerializeToString,
    )
    name = pb.DESCRIPTOR.services_by_name["SnapshotService"].full_name
    return grpc.method_handlers_generic_handler(name, {"Copy": copy})
