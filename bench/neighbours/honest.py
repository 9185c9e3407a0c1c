"""`python -m bench.neighbours.honest ADDRESS PER_S`: an honest device and an honest publisher.

Each sends at a fixed rate regardless of the server's responses (open loop). The latency of a message
counts from the time at which it was due, so that messages waiting for an unresponsive server count with
their full waiting time. Both run in their own process without garbage collection.

The first line of standard input has their tokens. The process writes a line when each has received one
response. It ends at the next line of input: then it writes its measurements as JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import grpc

from bench.neighbours import messages
from bench.neighbours.caller import ATTACH, PUBLISH
from bench.neighbours.tokens import metadata
from nearcast.v1 import device_service_pb2, publisher_service_pb2

DEVICE, PUBLISHER = "honest-device", "honest-publisher"
_RETRY_S = 0.05
_END_S = 0.5
"""Pending messages may still be answered this long after the end."""
_STEP_DEG = 1e-5
_PLACES = 50

Answered = tuple[Iterable[int], bool]
"""Numbers of the messages that a response answers, and whether it refuses them."""


class Paced(ABC):
    """A stream on which messages are sent at a fixed rate.

    Parameters
    ----------
    channel
        The connection.
    token
        Token of the caller.
    per_s
        Messages a second.
    """

    METHOD = ""

    def __init__(self, channel: Any, token: str, per_s: float) -> None:  # noqa: ANN401
        self._stub = channel.stream_stream(self.METHOD)
        self._metadata = metadata(token)
        self._every_s = 1.0 / per_s
        self._begin_s = time.monotonic()
        self.written_count = 0
        self._pending: dict[int, float] = {}
        """Times at which unanswered messages were due, by number."""
        self._found: list[tuple[float, float]] = []
        self._refused = self._broken = 0
        self.has_answer = asyncio.Event()

    @abstractmethod
    def opening(self) -> Sequence[bytes]:
        """Return the first messages of a stream."""

    @abstractmethod
    def message(self, number: int) -> bytes:
        """Return a message."""

    @abstractmethod
    def answered(self, response: bytes, pending: Iterable[int]) -> Answered:
        """Return the pending messages that a response answers."""

    async def run(self) -> None:
        """Send without end; open another stream when one has ended."""
        self._begin_s = time.monotonic()
        while True:
            call = self._stub(metadata=self._metadata)
            tasks = [
                asyncio.create_task(self._read(call)),
                asyncio.create_task(self._write(call)),
            ]
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in tasks:
                    task.cancel()
                call.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            self._broken += 1
            await asyncio.sleep(_RETRY_S)

    async def _write(self, call: Any) -> None:  # noqa: ANN401
        for message in self.opening():
            await call.write(message)
        while True:
            due_s = self._due_s(self.written_count + 1)
            await asyncio.sleep(max(0.0, due_s - time.monotonic()))
            self.written_count += 1
            self._pending[self.written_count] = due_s
            await call.write(self.message(self.written_count))

    def _due_s(self, number: int) -> float:
        return self._begin_s + number * self._every_s

    async def _read(self, call: Any) -> None:  # noqa: ANN401
        while (response := await call.read()) is not grpc.aio.EOF:
            now_s = time.monotonic()
            numbers, is_refused = self.answered(response, self._pending)
            for number in list(numbers):
                due_s = self._pending.pop(number, None)
                if due_s is None:
                    continue
                self._refused += is_refused
                self._found.append((due_s, now_s - due_s))
                self.has_answer.set()

    def result(self) -> dict[str, Any]:
        """Return the measurements.

        A pending message counts with its waiting time so far, and so does a message that was due but not
        sent because the stream accepted no more.
        """
        now_s = time.monotonic()
        last = int((now_s - self._begin_s) / self._every_s)
        unsent = [self._due_s(number) for number in range(self.written_count + 1, last + 1)]
        waiting = [(due_s, now_s - due_s) for due_s in [*self._pending.values(), *unsent]]
        return {
            "latencies": sorted(self._found + waiting),
            "answered": len(self._found),
            "unanswered": len(waiting),
            "refused": self._refused,
            "broken": self._broken,
        }


class Reports(Paced):
    """Reports of one device that subscribes to the five best objects."""

    METHOD = ATTACH

    def opening(self) -> Sequence[bytes]:
        """Return a hello and a request for a subscription."""
        return messages.hello(DEVICE), messages.subscribe(1, messages.top_k())

    def message(self, number: int) -> bytes:
        """Return a report from another position than the previous one."""
        return messages.report(number, lon=messages.LON + _STEP_DEG * (number % _PLACES))

    def answered(self, response: bytes, pending: Iterable[int]) -> Answered:
        """Return the reports up to the one that a delta answers.

        A report that waits is replaced by the next one.
        """
        event = device_service_pb2.AttachResponse.FromString(response)
        if event.HasField("rejection"):
            return [event.rejection.number], True
        sequence = event.delta.report_sequence
        return [number for number in pending if number <= sequence], False


class Publications(Paced):
    """Requests of one publisher, each with one object."""

    METHOD = PUBLISH

    def opening(self) -> Sequence[bytes]:
        """Return nothing."""
        return ()

    def message(self, number: int) -> bytes:
        """Return a request to publish an object near the device."""
        return messages.publication(number)

    def answered(self, response: bytes, pending: Iterable[int]) -> Answered:
        """Return the request that is answered."""
        del pending
        found = publisher_service_pb2.PublishResponse.FromString(response)
        return [found.sequence], found.HasField("error")


async def measure(address: str, per_s: float, tokens: dict[str, str]) -> dict[str, Any]:
    """Report and publish until the next line of standard input; return the measurements."""
    async with grpc.aio.insecure_channel(address) as one, grpc.aio.insecure_channel(address) as other:
        both = {
            "report": Reports(one, tokens["device"], per_s),
            "publish": Publications(other, tokens["publisher"], per_s),
        }
        tasks = [asyncio.create_task(paced.run()) for paced in both.values()]
        for paced in both.values():
            await paced.has_answer.wait()
        print(flush=True)  # noqa: T201 - it has started
        await asyncio.to_thread(sys.stdin.readline)
        await asyncio.sleep(_END_S)
        found = {name: paced.result() for name, paced in both.items()}
        for task in tasks:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks)
        return found


def main() -> None:
    """Measure, and write the result."""
    address, per_s = sys.argv[1], float(sys.argv[2])
    tokens = json.loads(sys.stdin.readline())
    gc.collect()
    gc.freeze()
    gc.disable()
    print(json.dumps(asyncio.run(measure(address, per_s, tokens))), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
