"""Run a mixed load for a long time and check that the server's memory stays flat.

Devices report, acknowledge and ping on their own connections; some drop their connection at any moment
and reconnect; a publisher publishes objects that live for seconds. The memory is sampled at intervals.

The rule: after the warm-up, a fifth of the run in which regions, caches and heaps fill, a straight line
is fitted to the samples. The run fails if the line rises, until the end of the run, by more than the
noise of the samples (their peak-to-peak distance from the line) and by more than 2 % of their mean.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from pathlib import Path

import numpy as np

from bench.benchmark import Progress, Row
from bench.server import lines as ways
from bench.server.connections import PING, attach
from bench.server.lines import Channel, Requests, in_chunks, opened
from bench.server.listeners import Listeners, expired
from bench.server.measures import at_pace
from bench.server.processes import Process
from bench.server.setup import compile_kernels, published, serving
from bench.server.workload import ROUND, AttachRequest, Workload, version_of

WARM_UP_SHARE = 0.2
RISE_SHARE_MAX = 0.02
"""Share of the mean: heaps of this size vary by this much when their contents change."""
_SAMPLES = 300
_SAMPLE_S_MIN = 0.2
_REPORTS_PER_S = 300.0
_PINGS_PER_S = 300.0
_OBJECTS_PER_S = 200.0
_RECONNECTS_PER_S = 5.0
_STEADY_SHARE = 0.5
"""Share of the devices that never drop their connection; a sample of them is audited."""
_ACK_EVERY = 32
"""Deltas between two acks, as devices do."""
_MB = 1e6


def rise(samples: list[tuple[float, float]]) -> tuple[float, float, float]:
    """Fit a line to (seconds, megabytes) after the warm-up.

    Returns
    -------
    tuple
        The rise of the line, the noise around it, and the mean, all in megabytes.
    """
    begin = samples[0][0] + WARM_UP_SHARE * (samples[-1][0] - samples[0][0])
    late = np.array([one for one in samples if one[0] >= begin])
    slope, level = np.polyfit(late[:, 0], late[:, 1], 1)
    away = late[:, 1] - (slope * late[:, 0] + level)
    risen = float(slope * (late[-1, 0] - late[0, 0]))
    return risen, float(away.max() - away.min()), float(late[:, 1].mean())


def is_flat(risen: float, noise: float, mean: float) -> bool:
    """Return whether memory conforms to the rule."""
    return risen <= max(noise, RISE_SHARE_MAX * mean)


class Soak:
    """One long run.

    Parameters
    ----------
    workload
        The messages.
    server
        The process whose memory is sampled.
    """

    def __init__(self, workload: Workload, server: Process) -> None:
        self._workload = workload
        self._server = server
        self._chance = random.Random(11)
        self.samples: list[tuple[float, float]] = []
        self.reconnects = 0
        self._steady = int(_STEADY_SHARE * workload.devices)
        self._versions = [0] * workload.devices
        self._requests = Requests()

    async def run(self, seconds: float, progress: Progress) -> Row:
        """Run the mixed load for a number of seconds; return the row."""
        workload, address = self._workload, self._server.address
        steady = self._steady
        async with (
            opened(workload.devices, address, ways.ATTACH) as lines,
            opened(1, address, ways.PUBLISH) as (publisher,),
        ):
            listeners = Listeners(workload, lines[:steady])
            await attach(lines, workload)
            for line in lines:
                line.on_message = self._on_message
            self._requests.begin(publisher)
            await publisher.start()
            staying = lines[:steady]

            async def publish(count: int) -> None:
                await self._requests.send(publisher, workload.pushed(count).SerializeToString())

            async def report(count: int) -> None:
                for line in self._some(staying, count):
                    await line.send(_ack(self._versions[line.number]))
                    corner = self._chance.randrange(ROUND)
                    await line.send(workload.report(line.number, corner).SerializeToString())

            async def ping(count: int) -> None:
                for line in self._some(staying, count):
                    await line.send(PING)

            async def both(count: int) -> None:
                await report(count)
                await ping(round(count * _PINGS_PER_S / _REPORTS_PER_S))

            async def reconnect(count: int) -> None:
                for number in self._chance.sample(range(steady, len(lines)), count):
                    lines[number].end()
                    await lines[number].channel.close()
                    lines[number] = Channel(number, ways.connection(address), ways.ATTACH)
                    lines[number].on_message = self._on_message
                    await in_chunks([lines[number]], self._hello)
                    self.reconnects += 1

            await asyncio.gather(
                at_pace(publish, _OBJECTS_PER_S, seconds),
                at_pace(both, _REPORTS_PER_S, seconds),
                at_pace(reconnect, _RECONNECTS_PER_S, seconds),
                self._watch(seconds, progress),
            )
            await self._requests.answered()
            await expired()
            row = await listeners.audit()
        return row | {"seconds": round(seconds)} | self._findings()

    def _findings(self) -> Row:
        """Return the measurements of memory, and the reconnects."""
        risen, noise, mean = rise(self.samples)
        return {
            "devices": self._workload.devices,
            "reconnects": self.reconnects,
            "own_mb_mean": round(mean, 1),
            "rise_mb": round(risen, 2),
            "noise_mb": round(noise, 2),
            "is_flat": is_flat(risen, noise, mean),
            "samples": [(round(at, 1), round(mb, 2)) for at, mb in self.samples],
        }

    def _on_message(self, number: int, message: bytes) -> tuple[bytes, ...]:
        version = version_of(message)
        if version <= self._versions[number]:
            return ()
        self._versions[number] = version
        # The paced reports ack for steady devices; two tasks must not write on one line at once.
        if number < self._steady or version % _ACK_EVERY:
            return ()
        return (_ack(version),)

    def _some(self, lines: list[Channel], count: int) -> list[Channel]:
        return self._chance.sample(lines, min(count, len(lines)))

    async def _hello(self, line: Channel) -> None:
        await line.start()
        await line.send(self._workload.hello(line.number).SerializeToString())

    async def _watch(self, seconds: float, progress: Progress) -> None:
        began = time.perf_counter()
        every = max(_SAMPLE_S_MIN, seconds / _SAMPLES)
        while (passed := time.perf_counter() - began) < seconds:
            self.samples.append((passed, self._server.own_bytes() / _MB))
            progress("soak, seconds", int(passed), int(seconds))
            await asyncio.sleep(every)
        progress("soak, seconds", int(seconds), int(seconds))


def _ack(version: int) -> bytes:
    return AttachRequest(ack={"version": version}).SerializeToString()


async def soak(workload: Workload, seconds: float, progress: Progress) -> Row:
    """Run a server for a number of seconds under mixed load; return its row."""
    compile_kernels(workload)
    with tempfile.TemporaryDirectory() as folder, serving(workload, Path(folder)) as server:
        await published(workload, server, progress)
        found = await Soak(workload, server).run(seconds, progress)
        if not found["is_flat"]:
            rise_mb, noise_mb = found["rise_mb"], found["noise_mb"]
            found["failure"] = f"memory rose by {rise_mb} MB, more than the noise of {noise_mb} MB"
        return found
