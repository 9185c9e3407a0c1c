"""Acts of a device or a gateway: each function acts until the time of its caller is over."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from itertools import count, cycle

import grpc

from bench.neighbours import messages as m
from bench.neighbours.caller import ATTACH_FLEET, SEARCH, Act, Caller

SUBSCRIPTIONS = 64
_SETTLE_S = 3.0
_ANSWER_S = 10.0
_FLEET_ENTRIES = 100
_CORNERS = ((12.52, 55.62), (12.63, 55.73), (12.52, 55.73), (12.63, 55.62))
_STREAMS = 300


async def nothing(caller: Caller) -> None:
    """Do nothing."""
    await caller.rest()


async def reports_of_one_id(caller: Caller) -> None:
    """Send reports whose list of ids is a megabyte of the same id."""
    stream = await caller.attached([m.top_k()])
    for sequence in count(1):
        if not caller.is_on or not await caller.write(stream, m.report_of_one_id(sequence)):
            return


async def fat_reports(caller: Caller) -> None:
    """Jump between corners with 64 circles, each of a thousand matches."""
    stream = await caller.attached(m.circle(caller.word, 1_500.0 + i) for i in range(SUBSCRIPTIONS))
    ids = range(1, SUBSCRIPTIONS + 1)
    for sequence, (lon, lat) in enumerate(cycle(_CORNERS), 1):
        message = m.report(sequence, ids, lon + 1e-6 * sequence, lat)
        if not caller.is_on or not await caller.write(stream, message):
            return


async def hellos(caller: Caller) -> None:
    """Reconnect again and again, as another instance each time, with 64 circles."""
    stream = await caller.attached(m.circle(caller.word, 1_500.0 + i) for i in range(SUBSCRIPTIONS))
    await asyncio.sleep(_SETTLE_S)
    stream.cancel()
    for number in count(1):
        if not caller.is_on:
            return
        before = caller.counts["responses"]
        stream = await caller.attached(nonce=b"n%d" % number)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_ANSWER_S):
                while caller.counts["responses"] == before and not stream.done():  # noqa: ASYNC110
                    await asyncio.sleep(0.001)
        stream.cancel()


async def durable(caller: Caller) -> None:
    """Replace one subscription as fast as the stream accepts it: each change is a commit."""
    stream = await caller.attached()
    for number in count(1):
        spec = m.top_k(m.HONEST if number % 2 else "w", 1 + number % 50)
        if not caller.is_on or not await caller.write(stream, m.subscribe(1, spec)):
            return


async def range_polygons(caller: Caller) -> None:
    """Replace one subscription by others within combs of 512 corners."""
    stream = await caller.attached()
    for number in count(1):
        spec = m.polygon(m.comb(m.POLYGON_CORNERS, 1e-7 * number))
        if not caller.is_on or not await caller.write(stream, m.subscribe(1, spec)):
            return


async def fleet_subscribes(caller: Caller) -> None:
    """Replace one subscription of one device, a hundred times a message of a fleet stream."""
    stream = caller.stream(ATTACH_FLEET)
    await caller.write(stream, m.fleet(caller.name, [m.hello(caller.name)]))
    for start in count(0, _FLEET_ENTRIES):
        numbers = range(start, start + _FLEET_ENTRIES)
        requests = [m.subscribe(1, m.top_k("w", 1 + number % 50)) for number in numbers]
        if not caller.is_on or not await caller.write(stream, m.fleet(caller.name, requests)):
            return


async def empty_entries(caller: Caller) -> None:
    """Send messages of 16 million empty entries on a fleet stream."""
    message = m.fleet_of_empty_entries()
    while caller.is_on:
        stream = caller.stream(ATTACH_FLEET)
        await caller.write(stream, m.fleet(caller.name, [m.hello(caller.name)]))
        await caller.write(stream, message)
        with contextlib.suppress(grpc.aio.AioRpcError):
            await stream.code()


async def silent_circles(caller: Caller) -> None:
    """Subscribe to 64 circles of 50 km on the honest publisher's keyword, then send nothing."""
    await caller.attached(m.circle(m.HONEST, 49_900.0 + i) for i in range(SUBSCRIPTIONS))
    await caller.rest()


async def boolean_subscriptions(caller: Caller) -> None:
    """Start 8 subscriptions of 64 clauses with 16 exclusions each, send one report, then nothing."""
    stream = await caller.attached(m.many_clauses(caller.word, 49_000.0 + i) for i in range(8))
    await caller.write(stream, m.report(1, range(1, 9)))
    await caller.rest()


def searching(request: Callable[[Caller], bytes], parallel: int = 4) -> Act:
    """Return an act of `parallel` concurrent searches, each sent when the previous one is answered."""

    async def act(caller: Caller) -> None:
        message = request(caller)

        async def search() -> None:
            while caller.is_on:
                await caller.call(SEARCH, message)

        await asyncio.gather(*(search() for _ in range(parallel)))

    act.__doc__ = request.__doc__
    return act


async def reflection(caller: Caller) -> None:
    """Request the description of a service from the server's reflection, repeatedly on two streams."""
    from grpc_reflection.v1alpha import reflection_pb2  # noqa: PLC0415 - of this act alone

    request = reflection_pb2.ServerReflectionRequest(
        file_containing_symbol="nearcast.v1.DeviceService"
    ).SerializeToString()

    async def ask() -> None:
        stream = caller.stream("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")
        while caller.is_on and await caller.write(stream, request):
            pass

    await asyncio.gather(ask(), ask())
    await caller.rest()


async def health_watches(caller: Caller) -> None:
    """Keep up to 300 streams of health watches open."""
    for _ in range(_STREAMS):
        if not caller.is_on:
            return
        await caller.write(caller.stream("/grpc.health.v1.Health/Watch"), b"")
    await caller.rest()
