"""A bare grpc.aio server that answers every message with one of a given size: an upper bound of rates.

It decodes nothing, looks nothing up and stores nothing. `python -m bench.server.echo` prints its port.
"""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import uvloop

METHOD = "/bench.Echo/Echo"
REPLY_BYTES = "reply-bytes"
"""Metadata: size of every response; without it the message itself is returned."""
READY = "echoing on "


async def _echo(_requests: object, context: grpc.aio.ServicerContext[Any, Any]) -> None:
    wanted = dict(context.invocation_metadata() or ()).get(REPLY_BYTES)
    fixed = None if wanted is None else bytes(int(wanted))
    while (message := await context.read()) is not grpc.aio.EOF:
        await context.write(message if fixed is None else fixed)


class _Handler(grpc.GenericRpcHandler):
    def service(self, _call: object) -> Any:  # noqa: ANN401
        return grpc.stream_stream_rpc_method_handler(_echo)


async def _serve() -> None:
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    server.add_generic_rpc_handlers((_Handler(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(f"{READY}127.0.0.1:{port}", flush=True)  # noqa: T201 - read by the parent process
    await server.wait_for_termination()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve())
