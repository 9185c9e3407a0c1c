"""`python -m bench.authentication.intruder ADDRESS`: one device that misuses its token in many ways.

It floods the server with reports and pings on as many streams as it can open, opens streams without
sending anything, does not read responses, calls without a pause, and sends huge messages and calls
without a token. It yields the CPU to all other processes of the machine (nice), so that its effect on
others comes through the server.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import grpc

from bench.server import lines as ways
from nearcast.v1 import device_service_pb2, geometry_pb2, subscriptions_pb2

_HERE = geometry_pb2.Position()
_HUGE_BYTES = 33 * 2**20
_NICE = 19
Request = device_service_pb2.AttachRequest


class Intruder:
    """Run all misuses, each without end."""

    def __init__(self, address: str, token: str) -> None:
        self._channel: Any = grpc.aio.insecure_channel(
            address, options=[("grpc.max_send_message_length", -1)]
        )
        self._metadata = (("authorization", f"Bearer {token}"),)

    async def run(self) -> None:
        """Run all misuses until the process is killed."""
        acts: list[Callable[[], Awaitable[None]]] = [
            self._flood,
            self._flood,
            self._stay_idle,
            self._do_not_read,
            self._call,
            self._send_huge,
            self._come_without_token,
        ]
        await asyncio.gather(*(self._again(act) for act in acts))

    async def _again(self, act: Callable[[], Awaitable[None]]) -> None:
        while True:
            with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
                await act()
            await asyncio.sleep(0)

    def _stream(self) -> Any:  # noqa: ANN401 - gRPC has no type for it
        return self._channel.stream_stream(ways.ATTACH)(metadata=self._metadata)

    async def _started(self, nonce: bytes) -> Any:  # noqa: ANN401
        call = self._stream()
        hello = device_service_pb2.Hello(device_id="thief", instance_nonce=nonce, position=_HERE)
        await call.write(Request(hello=hello).SerializeToString())
        top_k = subscriptions_pb2.TopK(keywords=["word1", "word2"], k=100, alpha=0.5)
        spec = subscriptions_pb2.SubscriptionSpec(top_k=top_k)
        for number in range(1, 65):
            subscribe = device_service_pb2.Subscribe(subscription_id=number, spec=spec, position=_HERE)
            await call.write(Request(subscribe=subscribe).SerializeToString())
        return call

    async def _flood(self) -> None:
        call = await self._started(b"same")
        reading = asyncio.create_task(self._read(call))
        try:
            sequence = 0
            while True:
                sequence += 1
                report = device_service_pb2.Report(
                    sequence=sequence, position=_HERE, subscription_ids=range(1, 65)
                )
                await call.write(Request(report=report).SerializeToString())
                ping = Request(ping=device_service_pb2.Ping(number=sequence))
                await call.write(ping.SerializeToString())
        finally:
            reading.cancel()

    async def _do_not_read(self) -> None:
        call = await self._started(b"same")
        number = 0
        while True:
            number += 1
            ping = Request(ping=device_service_pb2.Ping(number=number))
            await call.write(ping.SerializeToString())

    async def _stay_idle(self) -> None:
        calls = [self._stream() for _ in range(100)]
        await asyncio.gather(*(call.code() for call in calls))

    async def _call(self) -> None:
        search: Any = self._channel.unary_unary("/nearcast.v1.DeviceService/Search")
        calls = [search(b"", metadata=self._metadata) for _ in range(50)]
        await asyncio.gather(*calls, return_exceptions=True)

    async def _send_huge(self) -> None:
        search: Any = self._channel.unary_unary("/nearcast.v1.DeviceService/Search")
        await search(bytes(_HUGE_BYTES), metadata=self._metadata)
        await asyncio.sleep(1.0)

    async def _come_without_token(self) -> None:
        call: Any = self._channel.stream_stream(ways.ATTACH)()
        await call.code()

    @staticmethod
    async def _read(call: Any) -> None:  # noqa: ANN401
        while await call.read() is not grpc.aio.EOF:
            pass


async def _main(address: str, token: str) -> None:
    intruder = Intruder(address, token)
    print(flush=True)  # noqa: T201 - it has started
    await intruder.run()


if __name__ == "__main__":
    os.nice(_NICE)
    asyncio.run(_main(sys.argv[1], sys.stdin.readline().strip()))
