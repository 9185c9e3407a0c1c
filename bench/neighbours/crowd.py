"""`python -m bench.neighbours.crowd ADDRESS`: callers of tenants, with one message under way each.

Each tenant has devices, which report again when a delta has answered their last report, and publishers,
which send the next request when the last is answered: as soon as that, or so many a second, behind which
they fall if responses take too long, and then catch up. What counts is what the server has accepted. The
first line of standard input has their tokens, by tenant. The process writes a line when all have been
answered; with the second line the last tenant's callers stop; with the third all end, and what they
counted is written as JSON.
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

_SAMPLE_S = 0.05
_RETRY_S = 0.05
_BEHIND_S = 1.0
"""How far behind its rate a caller may be and still catch up."""
_OPTIONS = (("grpc.use_local_subchannel_pool", 1),)


class Member(ABC):
    """A caller that sends its next message when the last is answered.

    Parameters
    ----------
    address
        Of the server.
    name, token
        Of the caller.
    per_s
        Messages a second at most; 0 for as many as there are responses.
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
        """Send for ever; on another stream when one has ended."""
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
        """Return what a stream begins with."""
        return ()

    @abstractmethod
    def message(self, number: int) -> bytes:
        """Return a message."""

    @abstractmethod
    def verdict(self, response: bytes, number: int) -> bool | None:
        """Return whether a response accepts the message; None if it does not answer it."""


class Device(Member):
    """Reports, and holds the five best."""

    METHOD = ATTACH

    def opening(self) -> tuple[bytes, ...]:
        """Return a hello and a request for a subscription."""
        return messages.hello(self._name), messages.subscribe(1, messages.top_k())

    def message(self, number: int) -> bytes:
        """Return a report, each from another place than the one before."""
        return messages.report(number, lon=messages.LON + 1e-5 * (number % 50))

    def verdict(self, response: bytes, number: int) -> bool | None:
        """Return whether a delta answers the report, or a rejection."""
        event = device_service_pb2.AttachResponse.FromString(response)
        if event.HasField("rejection"):
            return False
        return True if event.delta.report_sequence == number else None


class Publisher(Member):
    """Publishes an object a request."""

    METHOD = PUBLISH

    def message(self, number: int) -> bytes:
        """Return a request."""
        return messages.publication(number, ttl_ms=1_000)

    def verdict(self, response: bytes, number: int) -> bool | None:
        """Return whether the request was accepted."""
        found = publisher_service_pb2.PublishResponse.FromString(response)
        return not found.HasField("error") if found.sequence == number else None


_KINDS: dict[str, type[Member]] = {"device": Device, "publisher": Publisher}


async def measure(address: str, tenants: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Send until the third line of standard input; return samples of what was accepted, by tenant."""
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
    """Return how many reports and requests have been accepted."""
    return [sum(one.accepted for one in callers if isinstance(one, kind)) for kind in (Device, Publisher)]


def main() -> None:
    """Measure, and write what was counted."""
    tenants = json.loads(sys.stdin.readline())
    gc.collect()
    gc.freeze()
    print(json.dumps(asyncio.run(measure(sys.argv[1], tenants))), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
