"""`python -m bench.neighbours.crowd ADDRESS`: callers of tenants, each with one pending message.

Each tenant has devices and publishers. A device reports again when a delta has answered its last report;
a publisher sends the next request when the last one is answered. Both send at once, or at a rate; if
responses take too long, they fall behind the rate and then catch up. The counts are those of messages
that the server has accepted.

The first line of standard input has the tokens, by tenant. The process writes a line when all callers
have received a response. At the second line the callers of the last tenant stop; at the third all stop,
and the counts are written as JSON.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from abc import ABC, abstractmethod
from typing import Any

import grpc

from bench.neighbours import messages
from bench.neighbours.caller import ATTACH, PUBLISH
from bench.neighbours.tokens import metadata
from nearcast.v1 import device_service_pb2, publisher_service_pb2

LIFETIME_S = 0.1
"""Of published objects: short, so that what is measured includes expiry, a while after callers start."""
_SAMPLE_S = 0.05
_RETRY_S = 0.05
_BEHIND_S = 1.0
"""The longest delay behind its rate that a caller catches up."""
_OPTIONS = (("grpc.use_local_subchannel_pool", 1),)


class Member(ABC):
    """A caller that sends its next message when the last one is answered.

    Parameters
    ----------
    address
        Address of the server.
    name, token
        Name and token of the caller.
    per_s
        Maximum number of messages a second; 0 for no maximum.
    """

    METHOD = ""

    def __init__(self, address: str, name: str, token: str, per_s: float) -> None:
        self._channel: Any = grpc.aio.insecure_channel(address, options=_OPTIONS)
        self._name = name
        self._metadata = metadata(token)
        self._number = 0
        self._pause_s = 1.0 / per_s if per_s else 0.0
        self._due_s = 0.0
        self.accepted = self.refused = 0
        self.has_answer = asyncio.Event()

    async def run(self) -> None:
        """Send without end; open another stream when one has ended."""
        while True:
            call = self._channel.stream_stream(self.METHOD)(metadata=self._metadata)
            try:
                await self._converse(call)
            except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
                pass
            finally:
                call.cancel()
            await asyncio.sleep(_RETRY_S)

    async def _converse(self, call: Any) -> None:  # noqa: ANN401
        for message in self.opening():
            await call.write(message)
        await self._send(call)
        while (response := await call.read()) is not grpc.aio.EOF:
            verdict = self.verdict(response, self._number)
            if verdict is None:
                continue
            self.accepted += verdict
            self.refused += not verdict
            self.has_answer.set()
            await self._send(call)

    async def _send(self, call: Any) -> None:  # noqa: ANN401
        if self._pause_s:
            now_s = time.monotonic()
            self._due_s = max(self._due_s + self._pause_s, now_s - _BEHIND_S)
            if self._due_s > now_s:
                await asyncio.sleep(self._due_s - now_s)
        self._number += 1
        await call.write(self.message(self._number))

    def opening(self) -> tuple[bytes, ...]:
        """Return the first messages of a stream."""
        return ()

    @abstractmethod
    def message(self, number: int) -> bytes:
        """Return a message."""

    @abstractmethod
    def verdict(self, response: bytes, number: int) -> bool | None:
        """Return whether a response accepts the message; None if it does not answer it."""


class Device(Member):
    """A device that reports, and holds the five best objects."""

    METHOD = ATTACH

    def opening(self) -> tuple[bytes, ...]:
        """Return a hello and a request for a subscription."""
        return messages.hello(self._name), messages.subscribe(1, messages.top_k())

    def message(self, number: int) -> bytes:
        """Return a report from another position than the previous one."""
        return messages.report(number, lon=messages.LON + 1e-5 * (number % 50))

    def verdict(self, response: bytes, number: int) -> bool | None:
        """Return True for a delta that answers the report, False for a rejection, None otherwise."""
        event = device_service_pb2.AttachResponse.FromString(response)
        if event.HasField("rejection"):
            return False
        return True if event.delta.report_sequence == number else None


class Publisher(Member):
    """A publisher that publishes one object a request."""

    METHOD = PUBLISH

    def message(self, number: int) -> bytes:
        """Return a request."""
        return messages.publication(number, ttl_ms=round(1e3 * LIFETIME_S))

    def verdict(self, response: bytes, number: int) -> bool | None:
        """Return whether the request was accepted; None for a response to another request."""
        found = publisher_service_pb2.PublishResponse.FromString(response)
        return not found.HasField("error") if found.sequence == number else None


_KINDS: dict[str, type[Member]] = {"device": Device, "publisher": Publisher}


async def measure(address: str, tenants: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Send until the third line of standard input; return samples of accepted messages, by tenant."""
    members = {
        tenant: [_KINDS[one["kind"]](address, one["name"], one["token"], one["per_s"]) for one in callers]
        for tenant, callers in tenants.items()
    }
    tasks = {
        tenant: [asyncio.create_task(one.run()) for one in callers] for tenant, callers in members.items()
    }
    for callers in members.values():
        await asyncio.gather(*(one.has_answer.wait() for one in callers))
    samples: list[tuple[float, dict[str, list[int]]]] = []

    async def sample() -> None:
        while True:
            counts = {tenant: _counts(callers) for tenant, callers in members.items()}
            samples.append((time.monotonic(), counts))
            await asyncio.sleep(_SAMPLE_S)

    tasks["samples"] = [asyncio.create_task(sample())]
    print(flush=True)  # noqa: T201 - all have started
    for names in ([list(tenants)[-1]], list(tasks)):
        await asyncio.to_thread(sys.stdin.readline)
        for name in names:
            for task in tasks[name]:
                task.cancel()
    await asyncio.gather(*(task for some in tasks.values() for task in some), return_exceptions=True)
    refused = {tenant: sum(one.refused for one in callers) for tenant, callers in members.items()}
    return {"samples": samples, "refused": refused}


def _counts(callers: list[Member]) -> list[int]:
    """Return the numbers of accepted reports and requests."""
    return [sum(one.accepted for one in callers if isinstance(one, kind)) for kind in (Device, Publisher)]


def main() -> None:
    """Measure, and write the counts."""
    tenants = json.loads(sys.stdin.readline())
    gc.collect()
    gc.freeze()
    print(json.dumps(asyncio.run(measure(sys.argv[1], tenants))), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
