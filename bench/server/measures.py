"""Measure rates and latencies of messages on lines."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from bench.benchmark import Row
from bench.server.lines import Line, entry_count, silent
from bench.server.processes import Process
from bench.server.workload import sent_ns

_SETTLE_S = 0.7
"""Seconds before a rate is measured, until every line has a pending message."""
_TICK_S = 0.005
"""Seconds between two sends of a paced load."""
_AFTER_S = 1.0
"""Seconds in which pending messages may still arrive."""
_QUIET_S = 10.0
"""Maximum seconds of waiting for pending messages after a rate was measured."""


@dataclass(slots=True)
class Rate:
    """Messages a second, and the CPU time and mean size of a message."""

    per_s: float
    cpu_us: float
    bytes_mean: float


@dataclass(slots=True)
class Latencies:
    """Latency of each message."""

    ns: list[int] = field(default_factory=list)
    seconds: float = 1.0

    def row(self, name: str) -> Row:
        """Return quantiles and the number of messages as columns."""
        found = np.array(self.ns or [0]) / 1e6
        return {
            f"{name}_ms_p50": round(float(np.quantile(found, 0.5)), 2),
            f"{name}_ms_p99": round(float(np.quantile(found, 0.99)), 2),
            f"{name}_count": len(self.ns),
        }


class _Tally:
    """Counts of received messages while a rate is measured."""

    def __init__(self) -> None:
        self.count = 0
        self.size_bytes = 0
        self.is_over = False

    async def rate(
        self,
        lines: Sequence[Line],
        process: Process,
        seconds: float,
        is_quiet: Callable[[], bool],
    ) -> Rate:
        """Measure the rate once every line is busy.

        Then let pending messages arrive, and the lines ignore further ones.
        """
        await asyncio.sleep(_SETTLE_S)
        began, cpu = time.perf_counter(), process.cpu_s()
        first, first_bytes = self.count, self.size_bytes
        await asyncio.sleep(seconds)
        spent, cpu = time.perf_counter() - began, process.cpu_s() - cpu
        count, size_bytes = self.count - first, self.size_bytes - first_bytes
        self.is_over = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_QUIET_S):
                while not is_quiet():  # noqa: ASYNC110 - there is no event to wait for
                    await asyncio.sleep(0.05)
        for line in lines:
            line.on_message = silent
        return Rate(count / spent, 1e6 * cpu / max(count, 1), size_bytes / max(count, 1))


async def closed_loop(
    lines: Sequence[Line], messages: Sequence[Sequence[bytes]], process: Process, seconds: float
) -> Rate:
    """Let every line send its next message as soon as the last one is answered.

    Parameters
    ----------
    lines
        The streams.
    messages
        Messages of each line, sent repeatedly.
    process
        The measured server.
    seconds
        The length of the measurement.
    """
    tally = _Tally()
    places = [0] * len(lines)

    def on_message(number: int, message: bytes) -> Sequence[bytes]:
        tally.count += 1
        tally.size_bytes += len(message)
        if tally.is_over:
            places[number] = -1
            return ()
        mine = messages[number]
        places[number] = place = (places[number] + 1) % len(mine)
        return (mine[place],)

    for line in lines:
        line.on_message = on_message
    await asyncio.gather(*(line.send(messages[line.number][0]) for line in lines))
    return await tally.rate(lines, process, seconds, lambda: max(places) < 0)


async def paced(
    lines: Sequence[Line], messages: Sequence[Sequence[bytes]], per_s: float, seconds: float
) -> Latencies:
    """Let random lines send at a given rate; return the latencies of the responses."""
    sent_ns: list[int] = [0] * len(lines)
    found = Latencies(seconds=seconds)
    turns = [0] * len(lines)

    def on_message(number: int, _message: bytes) -> Sequence[bytes]:
        if sent_ns[number]:
            found.ns.append(time.perf_counter_ns() - sent_ns[number])
            sent_ns[number] = 0
        return ()

    for line in lines:
        line.on_message = on_message
    chance = random.Random(7)

    async def send(count: int) -> None:
        for number in chance.sample(range(len(lines)), min(count, len(lines))):
            if not sent_ns[number]:
                turns[number] += 1
                sent_ns[number] = time.perf_counter_ns()
                await lines[number].send(messages[number][turns[number] % len(messages[number])])

    await at_pace(send, per_s, seconds)
    await asyncio.sleep(_AFTER_S)
    for line in lines:
        line.on_message = silent
    return found


async def pushes(
    lines: Sequence[Line],
    publish: Callable[[int], Awaitable[None]],
    per_s: float,
    seconds: float,
    *,
    without: frozenset[int] = frozenset(),
) -> Latencies:
    """Publish stamped objects at a rate; return the latency of each to each device.

    Parameters
    ----------
    lines
        The streams of the devices.
    publish
        Publishes a number of objects.
    per_s
        The rate of objects.
    seconds
        The length of the measurement.
    without
        Devices that do not count.
    """
    found = Latencies(seconds=seconds)

    def on_message(number: int, message: bytes) -> Sequence[bytes]:
        if number not in without:
            sent = sent_ns(message)
            if sent:
                found.ns.append(time.perf_counter_ns() - sent)
        return ()

    for line in lines:
        line.on_message = on_message
    await at_pace(publish, per_s, seconds)
    await asyncio.sleep(_AFTER_S)
    for line in lines:
        line.on_message = silent
    return found


async def at_pace(send: Callable[[int], Awaitable[None]], per_s: float, seconds: float) -> None:
    """Send `per_s` messages a second; those that are due at once are sent together."""
    began = time.perf_counter()
    sent = 0
    while (passed := time.perf_counter() - began) < seconds:
        due = int(passed * per_s) - sent
        if due:
            sent += due
            await send(due)
        await asyncio.sleep(_TICK_S)


# -- fleets --------------------------------------------------------------------------------------


async def windowed(
    lines: Sequence[Line],
    messages: Sequence[Sequence[bytes]],
    entries: int,
    window: int,
    process: Process,
    seconds: float,
) -> Rate:
    """Keep a window of pending entries on every fleet stream; count the answered entries.

    Parameters
    ----------
    lines
        The fleet streams.
    messages
        Messages of each stream, in turn, with `entries` entries in each.
    entries
        Entries of a message.
    window
        Entries of a stream that may be pending.
    process
        The measured server.
    seconds
        The length of the measurement.
    """
    tally = _Tally()
    open_entries = [0] * len(lines)
    places = [1] * len(lines)

    def next_of(number: int) -> list[bytes]:
        mine = messages[number]
        found = []
        while not tally.is_over and open_entries[number] + entries <= window:
            open_entries[number] += entries
            found.append(mine[places[number] % len(mine)])
            places[number] += 1
        return found

    def on_message(number: int, message: bytes) -> Sequence[bytes]:
        count = entry_count(message)
        tally.count += count
        tally.size_bytes += len(message)
        open_entries[number] -= count
        return next_of(number)

    for line in lines:
        line.on_message = on_message
    for line in lines:
        # One message each: the first response fills the window, so that only one task writes on the line.
        open_entries[line.number] = entries
        await line.send(messages[line.number][0])
    return await tally.rate(lines, process, seconds, lambda: max(open_entries) <= 0)


async def flooded(
    lines: Sequence[Line],
    messages: Sequence[Sequence[bytes]],
    ends: Sequence[bytes],
    entries: int,
    seconds: float,
) -> tuple[float, float]:
    """Send as much as the streams accept; then request a pong from each, which comes after all of it.

    Returns
    -------
    tuple
        Entries accepted a second until the last pong, and the share of them that deltas answered.
    """
    received = 0
    last_received = asyncio.Event()
    ended: set[int] = set()

    def on_message(number: int, message: bytes) -> Sequence[bytes]:
        nonlocal received
        received += entry_count(message)
        if message.endswith(_PONG):
            ended.add(number)
            if len(ended) == len(lines):
                last_received.set()
        return ()

    for line in lines:
        line.on_message = on_message
    began = time.perf_counter()
    sent = 0

    async def flood(line: Line) -> None:
        nonlocal sent
        turn = 0
        mine = messages[line.number]
        while time.perf_counter() - began < seconds:
            await line.send(mine[turn % len(mine)])
            turn += 1
            sent += entries
        await line.send(ends[line.number])

    await asyncio.gather(*(flood(line) for line in lines))
    await last_received.wait()
    spent = time.perf_counter() - began
    for line in lines:
        line.on_message = silent
    return sent / spent, (received - len(lines)) / max(sent, 1)


PONG_NUMBER = 2**40 + 7
"""A number that ends a message only if the message is the requested pong."""
_PONG = bytes([0x87, 0x80, 0x80, 0x80, 0x80, 0x20])
