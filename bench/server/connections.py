"""Measure a stream for each device: rates, latencies, memory, an echo server, a stalled device."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from bench.benchmark import Progress, Row
from bench.server import lines as ways
from bench.server.echo import METHOD, REPLY_BYTES
from bench.server.lines import Awaited, Channel, Line, Requests, in_chunks, opened
from bench.server.listeners import Listeners, expired
from bench.server.measures import Rate, closed_loop, paced, pushes
from bench.server.processes import Process, files_max
from bench.server.workload import AttachRequest, Workload

LATENCY_PER_S = 1_000.0
"""Rate of reports, and of deltas of published objects, while latencies are measured."""
_ATTACH_S = 120.0
_VICTIM = 0
_VICTIM_PER_S = 40.0
_VICTIM_BYTES = 12_000
"""Payload of the objects published for the stalled device: far more than its stream buffers unread."""
_FANOUT_PER_S = 100.0
"""Objects a second while the number of deltas for an object is measured."""
PING = AttachRequest(ping={"number": 1}).SerializeToString()


class Connections:
    """Streams of all devices, and as many to the echo server.

    Parameters
    ----------
    workload
        The messages.
    server, echo
        Both processes.
    seconds, rounds
        Length of a measurement; number of measurements of each process, in turn.
    connections
        Number of connections that the streams share; None for one each.
    """

    def __init__(
        self,
        workload: Workload,
        server: Process,
        echo: Process,
        seconds: float,
        rounds: int,
        connections: int | None = None,
    ) -> None:
        self._workload = workload
        self._server = server
        self._echo = echo
        self._seconds = seconds
        self._rounds = rounds
        self._stalled_runs = 2 * rounds - 1  # an odd number, so that the median is one of them
        self._connections = connections
        self._requests = Requests()

    async def measure(self, progress: Progress) -> Row:
        """Measure all; return the row."""
        workload, devices = self._workload, self._workload.devices
        stage = f"{devices} streams on {self._connections or devices} connections"
        steps = 6 + 2 * self._stalled_runs
        before = self._server.rss_bytes()
        async with AsyncExitStack() as stack:
            lines = await stack.enter_async_context(
                opened(devices, self._server.address, ways.ATTACH, connections=self._connections)
            )
            listeners = Listeners(workload, lines)
            await attach(lines, workload)
            progress(stage, 1, steps)
            row: Row = {"devices": devices, "rss_mb": round(self._server.rss_bytes() / 1e6, 1)}
            row["own_mb"] = round(self._server.own_bytes() / 1e6, 1)
            row["kb_per_device"] = round((self._server.rss_bytes() - before) / 1e3 / devices, 1)
            # Latencies first: a load generator that closes thousands of other connections is itself late.
            reports = workload.rounds()
            speakers = lines[: workload.reporting]
            found = await paced(speakers, reports, LATENCY_PER_S, self._seconds)
            row |= found.row("report")
            progress(stage, 2, steps)
            await self._at_home(speakers)
            publisher, annoyer = await self._publishers(stack)
            per_s, row["objects_per_s"] = await self._pace(lines, publisher)
            progress(stage, 3, steps)
            found = await pushes(lines, self._publish(publisher), per_s, self._seconds)
            row |= found.row("publish") | {"deltas_per_s": round(len(found.ns) / self._seconds)}
            progress(stage, 4, steps)
            async with self._flooded(annoyer):
                row |= await self._stalled(
                    lines, publisher, per_s, lambda i: progress(stage, 4 + i, steps)
                )
            row |= await self._beside_echo("pings", lines, [[PING]] * devices)
            progress(stage, steps - 1, steps)
            row |= await self._beside_echo("reports", speakers, reports)
            progress(stage, steps, steps)
            row["rss_mb_end"] = round(self._server.rss_bytes() / 1e6, 1)
            await self._requests.answered()
            await expired()
            row |= await listeners.audit()
        return row

    async def _beside_echo(self, name: str, lines: list[Channel], messages: list[list[bytes]]) -> Row:
        """Measure an exchange on the server and one of the same sizes on the echo server, in turn."""
        count = len(lines)
        if self._connections is None:
            count = min(count, files_max() - count)
        ours = [await closed_loop(lines, messages, self._server, self._seconds)]
        theirs: list[Rate] = []
        reply = [(REPLY_BYTES, str(round(ours[0].bytes_mean)))]
        async with opened(count, self._echo.address, METHOD, reply, self._connections) as echoing:
            await in_chunks(echoing, _receive_echo)
            for number in range(self._rounds):
                if number:
                    ours.append(await closed_loop(lines, messages, self._server, self._seconds))
                theirs.append(await closed_loop(echoing, messages, self._echo, self._seconds))
        per_s, echo_per_s = (statistics.median(one.per_s for one in side) for side in (ours, theirs))
        cpu_us, echo_cpu_us = (statistics.median(one.cpu_us for one in side) for side in (ours, theirs))
        return {
            f"{name}_per_s": round(per_s),
            f"echo_{name}_per_s": round(echo_per_s),
            f"{name}_ratio": round(per_s / echo_per_s, 3),
            f"{name}_cpu_us": round(cpu_us, 1),
            f"echo_{name}_cpu_us": round(echo_cpu_us, 1),
            f"{name}_answer_bytes": round(ours[0].bytes_mean),
            f"echo_{name}_streams": count,
        }

    async def _at_home(self, lines: list[Channel]) -> None:
        """Let every device report from its first position."""
        await answered(
            lines, lambda line: self._workload.report(line.number, 0).SerializeToString(), _ATTACH_S
        )

    async def _publishers(self, stack: AsyncExitStack) -> list[Channel]:
        """Return a stream of a publisher, and one that publishes for the stalled device."""
        lines = await stack.enter_async_context(opened(2, self._server.address, ways.PUBLISH))
        for line in lines:
            self._requests.begin(line)
            await line.start()
        return lines

    def _publish(self, publisher: Channel) -> Callable[[int], Awaitable[None]]:
        async def publish(count: int) -> None:
            await self._requests.send(publisher, self._workload.pushed(count).SerializeToString())

        return publish

    async def _pace(self, lines: list[Channel], publisher: Channel) -> tuple[float, float]:
        """Find the number of objects a second that cause the required rate of deltas."""
        per_s = _FANOUT_PER_S
        for _ in range(2):
            found = await pushes(lines, self._publish(publisher), per_s, max(1.0, self._seconds / 2))
            per_s *= LATENCY_PER_S / max(1.0, len(found.ns) / max(1.0, self._seconds / 2))
        return per_s, round(per_s, 1)

    async def _stalled(
        self, lines: list[Channel], publisher: Channel, per_s: float, done: Callable[[int], None]
    ) -> Row:
        """Compare the latency of other devices while one device reads and while it does not."""
        p99: dict[bool, list[float]] = {False: [], True: []}
        victim = lines[_VICTIM]
        for run in range(2 * self._stalled_runs):
            is_stalled = run % 2 == 1
            victim.stall(stalled=is_stalled)
            without = frozenset({_VICTIM})
            found = await pushes(lines, self._publish(publisher), per_s, self._seconds, without=without)
            p99[is_stalled].append(found.row("x")["x_ms_p99"])
            victim.stall(stalled=False)
            await asyncio.sleep(1.0)
            done(run + 1)
        read, stalled = statistics.median(p99[False]), statistics.median(p99[True])
        spread = max(p99[False]) - min(p99[False])
        return {
            "stalled_ms_p99": stalled,
            "reading_ms_p99": read,
            "stalled_effect_ms": round(stalled - read, 2),
            "reading_spread_ms": round(spread, 2),
            "stalled_runs_ms_p99": p99[True],
            "reading_runs_ms_p99": p99[False],
        }

    @asynccontextmanager
    async def _flooded(self, annoyer: Channel) -> AsyncIterator[None]:
        """Publish large objects for the stalled device, whether it reads or not."""
        ended = asyncio.Event()

        async def flood() -> None:
            while not ended.is_set():
                pushed = self._workload.pushed(1, _VICTIM, _VICTIM_BYTES)
                await self._requests.send(annoyer, pushed.SerializeToString())
                await asyncio.sleep(1.0 / _VICTIM_PER_S)

        flooding = asyncio.create_task(flood())
        try:
            yield
        finally:
            ended.set()
            await flooding


async def _receive_echo(line: Channel) -> None:
    """Connect and exchange a message: thousands of calls that start at once are cancelled."""
    await line.start()
    await answered([line], lambda _: PING, _ATTACH_S)


async def attach(lines: Sequence[Line], workload: Workload, within_s: float = _ATTACH_S) -> None:
    """Send a hello and a subscription on every stream; wait for a welcome and a delta on each."""
    received = Awaited()
    both = {line.number: 0 for line in lines}
    complete = {line.number: asyncio.Event() for line in lines}

    def on_message(number: int, _message: bytes) -> tuple[bytes, ...]:
        both[number] += 1
        if both[number] == 2:  # noqa: PLR2004 - the welcome and the delta
            complete[number].set()
        received.add(1)
        return ()

    async def begin(line: Line) -> None:
        line.on_message = on_message
        await line.start()
        await line.send(workload.hello(line.number).SerializeToString())
        await line.send(workload.subscribe(line.number).SerializeToString())
        await complete[line.number].wait()

    await asyncio.wait_for(in_chunks(lines, begin), within_s)


async def answered(lines: list[Channel], message: Callable[[Channel], bytes], within_s: float) -> None:
    """Send a message on every stream and wait for as many responses."""
    received = Awaited()

    def on_message(_number: int, _message: bytes) -> tuple[bytes, ...]:
        received.add(1)
        return ()

    for line in lines:
        line.on_message = on_message
    await in_chunks(lines, lambda line: line.send(message(line)))
    await received.reach(len(lines), within_s)
