"""Which functions of the project one report and one published object pass through, in a real server.

A server runs in this process, with a device and a publisher on real channels. A profile hook is on from
just before one message is sent until what it causes has come back, three times: what is counted are
different functions and modules of the server's rooms that each of the three messages passes through, so
that timers that fire meanwhile are not among them. Compiled kernels are no calls of Python, and count
with the function that enters them. The way into a thread and back is seen.

`python -m bench.call_path` prints both lists.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import grpc

from bench.neighbours import messages
from bench.neighbours.caller import ATTACH, PUBLISH
from nearcast.v1 import device_service_pb2, publisher_service_pb2
from server.main import Server
from server.settings import load_settings

_ROOT = Path(__file__).parent.parent
_ROOMS = ("server", "engine", "index", "safe_region")
_AREA = "12.4,55.5,12.8,55.8"
_OBJECTS = 20
_FAR_DEG = 0.01
"""Beyond any safe region."""
_NEAR_DEG = 0.001
_TTL_MS = 60_000
_WARM = 5
"""Messages of each kind before those that are counted."""
_COUNTED = 3
_SETTLE_S = 0.3


class Function(NamedTuple):
    """One function of the project."""

    module: str
    name: str


class Calls:
    """Different functions of the server's rooms that every message passed through.

    They are in the order of the first message's first calls, with how often it called them.
    """

    def __init__(self) -> None:
        self.functions: dict[Function, int] = {}
        self.is_counting = False
        self._of_one: dict[Function, int] = {}

    @contextmanager
    def hooked(self) -> Iterator[None]:
        """Call the hook for this thread and those that start in the block."""
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    def _note(self, frame: FrameType, event: str, _argument: object) -> None:
        if event != "call" or not self.is_counting:
            return
        code = frame.f_code
        try:
            path = Path(code.co_filename).relative_to(_ROOT)
        except ValueError:
            return
        if path.parts[0] not in _ROOMS or code.co_name.startswith("<"):
            return
        function = Function(".".join(path.with_suffix("").parts), code.co_qualname)
        self._of_one[function] = self._of_one.get(function, 0) + 1

    @property
    def modules(self) -> set[str]:
        """Those of the functions."""
        return {function.module for function in self.functions}

    async def count(self, exchange: Callable[[], Awaitable[None]]) -> None:
        """Let an exchange happen some times, then count what it passes through."""
        for _ in range(_WARM):
            await exchange()
        of_each = [await self._count_one(exchange) for _ in range(_COUNTED)]
        in_all = set.intersection(*map(set, of_each))
        self.functions = {function: times for function, times in of_each[0].items() if function in in_all}

    async def _count_one(self, exchange: Callable[[], Awaitable[None]]) -> dict[Function, int]:
        await asyncio.sleep(_SETTLE_S)
        self._of_one = {}
        self.is_counting = True
        await exchange()
        self.is_counting = False
        return self._of_one


async def report_and_publication() -> tuple[Calls, Calls]:
    """Return what a report that changes a top-k result passes through, and what an object does."""
    report, publication = Calls(), Calls()
    for calls, is_report in ((report, True), (publication, False)):
        with tempfile.TemporaryDirectory(prefix="call-path-") as folder:
            store = f"{folder}/store.db"
            server = Server(load_settings({"area": _AREA, "port": 0, "store": store, "create": True}))
            await server.start()
            try:
                address = f"127.0.0.1:{server.port}"
                with calls.hooked():
                    async with grpc.aio.insecure_channel(address) as channel:
                        callers = _Callers(channel)
                        await callers.begin()
                        exchange = callers.report if is_report else callers.publish_to_device
                        await calls.count(exchange)
            finally:
                await server.stop()
    return report, publication


class _Callers:
    """A device and a publisher that wait for what their messages cause."""

    def __init__(self, channel: Any) -> None:  # noqa: ANN401
        self._device = channel.stream_stream(ATTACH)()
        self._publisher = channel.stream_stream(PUBLISH)()
        self._requests = self._reports = 0

    async def begin(self) -> None:
        """Publish, and subscribe."""
        for _ in range(_OBJECTS):
            await self._publish()
        await self._device.write(messages.hello("walker"))
        await self._device.write(messages.subscribe(1, messages.top_k()))
        await self._delta()

    async def report(self) -> None:
        """Report from another place, until the delta is there."""
        self._reports += 1
        lon = messages.LON + _FAR_DEG * (self._reports % 2)
        await self._device.write(messages.report(self._reports, lon=lon))
        while await self._delta() < self._reports:
            pass

    async def publish_to_device(self) -> None:
        """Publish an object that the device is to have, until it has."""
        await self._publish()
        await self._delta()

    async def _publish(self) -> None:
        self._requests += 1
        request = publisher_service_pb2.PublishRequest(sequence=self._requests)
        new = request.objects.add(keywords=[messages.HONEST], ttl_ms=_TTL_MS, payload=b"x" * 64)
        # Each is nearer than those before: the device is to have it, whatever it holds.
        new.position.lon, new.position.lat = messages.LON + _NEAR_DEG / self._requests, messages.LAT
        await self._publisher.write(request.SerializeToString())
        response = publisher_service_pb2.PublishResponse.FromString(await self._publisher.read())
        assert not response.HasField("error"), response  # noqa: S101

    async def _delta(self) -> int:
        """Return the number of the report that the next delta answers."""
        while True:
            event = device_service_pb2.AttachResponse.FromString(await self._device.read())
            if event.HasField("delta"):
                return event.delta.report_sequence


def main() -> None:
    """Print both lists."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.parse_args()
    report, publication = asyncio.run(report_and_publication())
    for what, calls in (("a report", report), ("a published object", publication)):
        print(f"{what}: {len(calls.functions)} functions in {len(calls.modules)} modules")  # noqa: T201
        for function, count in calls.functions.items():
            print(f"  {function.module} {function.name} {count}")  # noqa: T201


if __name__ == "__main__":
    main()
