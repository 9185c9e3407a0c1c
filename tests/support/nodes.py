"""Nodes of a cluster: gRPC servers, each of which serves some devices, in front of one real server.

A node responds to hellos, inspections and deletions of devices as a server of a cluster does: it relays
those of its own devices to the server behind, and names the node of others. Everything else is relayed as
it is, so all nodes have all objects.
"""

from __future__ import annotations

import asyncio
import contextlib

import grpc

from nearcast.errors import Reason, RefusedError
from nearcast.v1 import control_service_pb2, device_service_pb2, device_service_pb2_grpc
from nearcast.wire.errors import error_message
from tests.support.ports import free_port

_DEVICES = "/nearcast.v1.DeviceService/"
_INSPECT = "/nearcast.v1.ControlService/Inspect"
_STREAMS = ("/nearcast.v1.PublisherService/Publish", "/nearcast.v1.ControlService/Watch")
_RETRY_MS = 20

Response = device_service_pb2.AttachResponse
FleetResponse = device_service_pb2.AttachFleetResponse


class Nodes:
    """A cluster.

    Parameters
    ----------
    target
        Address of the real server.
    count
        Number of nodes.
    """

    def __init__(self, target: str, count: int) -> None:
        self.target = target
        self.nodes = [Node(self) for _ in range(count)]
        self.owners: dict[str, Node | None] = {}
        """The node of each device; by default the last one."""
        self.last: dict[str, Node] = {}
        """The node that served a device last."""

    @property
    def targets(self) -> list[str]:
        """The addresses of all nodes."""
        return [node.address for node in self.nodes]

    def owner_of(self, device_id: str) -> Node | None:
        """Return the node of a device; None while it has none."""
        return self.owners.get(device_id, self.nodes[-1])

    def redirect(self, device_id: str, node: Node | None) -> None:
        """Let another node serve a device, or none; it is detached."""
        self.owners[device_id] = node
        for one in self.nodes:
            for conversation in list(one.conversations):
                if conversation.device_id == device_id and one is not node:
                    conversation.end(no_owner() if node is None else another(node.address))

    async def start(self) -> None:
        """Start all nodes."""
        for node in self.nodes:
            await node.start()

    async def stop(self) -> None:
        """Stop all nodes."""
        for node in self.nodes:
            await node.stop()


class Node(grpc.GenericRpcHandler):
    """One node."""

    def __init__(self, cluster: Nodes) -> None:
        self.cluster = cluster
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.hellos: list[str] = []
        """Devices whose hello arrived, in order."""
        self.calls: list[str] = []
        """Methods that were called."""
        self.conversations: set[Conversation] = set()
        self.withholds = asyncio.Event()
        """Whether responses of the server behind are not relayed."""
        self.withheld = asyncio.Event()
        """Set when a response was not relayed."""
        self._server: grpc.aio.Server | None = None

    async def start(self) -> None:
        """Listen."""
        self._behind = grpc.aio.insecure_channel(self.cluster.target)
        self._server = grpc.aio.server(handlers=[self], options=[("grpc.so_reuseport", 0)])
        assert self._server.add_insecure_port(self.address) == self.port
        await self._server.start()

    async def stop(self) -> None:
        """Break all connections and listen no more."""
        server, self._server = self._server, None
        if server is not None:
            await server.stop(None)
            await self._behind.close()

    def attach_behind(self, metadata):
        """Open a stream of a device to the server behind."""
        return device_service_pb2_grpc.DeviceServiceStub(self._behind).Attach(metadata=metadata)

    def service(self, details):
        """Return the handler of a method."""
        method = details.method
        self.calls.append(method.rpartition("/")[2])
        if method == f"{_DEVICES}Attach":
            return grpc.stream_stream_rpc_method_handler(
                self._attach,
                device_service_pb2.AttachRequest.FromString,
                Response.SerializeToString,
            )
        if method == f"{_DEVICES}AttachFleet":
            return grpc.stream_stream_rpc_method_handler(
                self._attach_fleet,
                device_service_pb2.AttachFleetRequest.FromString,
                FleetResponse.SerializeToString,
            )
        if method in _STREAMS:
            return grpc.stream_stream_rpc_method_handler(self._relayed_stream(method))
        return grpc.unary_unary_rpc_method_handler(self._relayed_call(method))

    async def _attach(self, requests, context):
        await context.send_initial_metadata(())
        responses: asyncio.Queue = asyncio.Queue()
        conversation = Conversation(self, context.invocation_metadata(), responses.put_nowait)

        async def read():
            async for request in requests:
                await conversation.receive(request)

        await self._converse(read(), responses, context, [conversation])

    async def _attach_fleet(self, requests, context):
        await context.send_initial_metadata(())
        responses: asyncio.Queue = asyncio.Queue()
        conversations: dict[str, Conversation] = {}

        def emit(device_id):
            entry = FleetResponse.Entry
            return lambda response: responses.put_nowait(
                response and FleetResponse(entries=[entry(device_id=device_id, response=response)])
            )

        async def read():
            async for message in requests:
                for entry in message.entries:
                    if not entry.HasField("request"):
                        conversations.pop(entry.device_id).close()
                        continue
                    if entry.request.HasField("hello"):
                        conversations[entry.device_id] = Conversation(
                            self, context.invocation_metadata(), emit(entry.device_id)
                        )
                    await conversations[entry.device_id].receive(entry.request)

        await self._converse(read(), responses, context, conversations.values())

    async def _converse(self, reading, responses, context, conversations):
        """Write responses until the client has ended its side, or a conversation ends the stream."""
        task = asyncio.create_task(reading)
        task.add_done_callback(lambda _: responses.put_nowait(None))
        try:
            while (response := await responses.get()) is not None:
                await context.write(response)
        finally:
            task.cancel()
            for conversation in list(conversations):
                conversation.close()

    def _relayed_call(self, method):
        async def relay(request, context):
            await self._require_own(_device_of(method, request), context)
            call = self._behind.unary_unary(method)(request, metadata=context.invocation_metadata())
            try:
                return await call
            except grpc.aio.AioRpcError as error:
                context.set_trailing_metadata(error.trailing_metadata())
                await context.abort(error.code(), error.details())

        return relay

    async def _require_own(self, device_id, context):
        """Refuse a call for a device of another node."""
        error = self.refusal_of(device_id) if device_id else None
        if error is not None:
            message = error_message(error)
            metadata = (("nearcast-error-bin", message.SerializeToString()),)
            await context.abort(grpc.StatusCode.UNAVAILABLE, message.message, metadata)

    def refusal_of(self, device_id):
        """Return why this node does not serve a device; None if it does."""
        owner = self.cluster.owner_of(device_id)
        if owner is self:
            return None
        return no_owner() if owner is None else another(owner.address)

    def _relayed_stream(self, method):
        async def relay(requests, context):
            call = self._behind.stream_stream(method)(metadata=context.invocation_metadata())
            await context.send_initial_metadata(await call.initial_metadata())

            async def write():
                async for request in requests:
                    await call.write(request)
                await call.done_writing()

            task = asyncio.create_task(write())
            try:
                while (response := await call.read()) is not grpc.aio.EOF:
                    if self.withholds.is_set():
                        self.withheld.set()
                    else:
                        await context.write(response)
            finally:
                task.cancel()
                call.cancel()

        return relay


class Conversation:
    """One device on a stream to a node.

    Parameters
    ----------
    node
        The node.
    metadata
        The metadata of the stream, which has the token.
    emit
        Sends a response to the device; None ends the stream.
    """

    def __init__(self, node: Node, metadata, emit) -> None:
        self.node = node
        self.device_id = ""
        self.emit = emit
        self._metadata = metadata
        self._call = None
        self._pumping: asyncio.Task | None = None

    async def receive(self, request) -> None:
        """Process a request of the device."""
        if request.HasField("hello"):
            await self._receive_hello(request)
        elif self._call is not None:
            await self._call.write(request)

    async def _receive_hello(self, request) -> None:
        device_id = self.device_id = request.hello.device_id
        node, cluster = self.node, self.node.cluster
        node.hellos.append(device_id)
        error = node.refusal_of(device_id)
        if error is not None:
            command = device_service_pb2.Rejection.COMMAND_HELLO
            self.emit(Response(rejection={"command": command, "error": error_message(error)}))
            return
        if cluster.last.get(device_id) is not node:  # a new owner knows no earlier epoch
            request.hello.epoch += bool(request.hello.epoch)
        cluster.last[device_id] = node
        self.node.conversations.add(self)
        self._call = node.attach_behind(self._metadata)
        await self._call.write(request)
        self._pumping = asyncio.create_task(self._pump(self._call))

    async def _pump(self, call) -> None:
        with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
            while (response := await call.read()) is not grpc.aio.EOF:
                self.emit(response)
        self.emit(None)

    def end(self, error: RefusedError) -> None:
        """Detach the device with an error."""
        self.close()
        self.emit(Response(detached={"error": error_message(error)}))

    def close(self) -> None:
        """Detach the device at the server behind."""
        self.node.conversations.discard(self)
        if self._pumping is not None:
            self._pumping.cancel()
        if self._call is not None:
            self._call.cancel()
            self._call = None


def _device_of(method: str, request: bytes) -> str:
    """Return the device that a call is about; empty for none."""
    if method == f"{_DEVICES}ForgetDevice":
        return device_service_pb2.ForgetDeviceRequest.FromString(request).device_id
    if method == _INSPECT:
        subject = control_service_pb2.InspectRequest.FromString(request)
        return subject.device_id or subject.subscription.device_id
    return ""


def another(address: str) -> RefusedError:
    """Return the refusal of a node that does not serve a device."""
    limit = f"sent to {address}"
    return RefusedError(Reason.ANOTHER_SERVER, "device", "elsewhere", limit, server=address)


def no_owner() -> RefusedError:
    """Return the refusal while a device has no node."""
    return RefusedError(
        Reason.RECOVERING, "device", "without a server", "of one", retry_after_ms=_RETRY_MS
    )


async def reached(servers) -> None:
    """Wait until all servers of a list are connected: gRPC may wait before it tries one again."""
    for channel in servers.listed:
        while not await channel.connects():  # noqa: ASYNC110 - it has failed, and has no event
            await asyncio.sleep(0.01)
