"""Measure fleet streams: many devices on few connections, many entries in a message."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Sequence

from bench.benchmark import Progress, Row
from bench.server import lines as ways
from bench.server.connections import attach
from bench.server.lines import Awaited, Channel, entry_count, opened
from bench.server.listeners import AUDITED, Listeners
from bench.server.measures import PONG_NUMBER, Rate, flooded, windowed
from bench.server.processes import Process
from bench.server.workload import ROUND, AttachRequest, FleetRequest, Workload

STREAMS = 4
ENTRIES = 64
"""Entries in a message."""
_WINDOW_MAX = 4096
_FLOOD = 4
"""A flood lasts this many times as long as other measurements: at its end a report of each device is
pending, and to answer those of ten thousand devices takes a second."""
_ATTACH_S = 120.0


class Fleets:
    """Fleet streams that share the devices.

    Parameters
    ----------
    workload
        The messages.
    server
        The measured server.
    seconds, rounds
        Length and number of measurements.
    metadata
        Metadata of the streams.
    """

    def __init__(
        self,
        workload: Workload,
        server: Process,
        seconds: float,
        rounds: int,
        metadata: Sequence[tuple[str, str]] = (),
    ) -> None:
        self._metadata = metadata
        self._workload = workload
        self._server = server
        self._seconds = seconds
        self._rounds = rounds
        self._groups = [list(range(one, workload.devices, STREAMS)) for one in range(STREAMS)]

    async def measure(self, progress: Progress) -> Row:
        """Measure all; return the row."""
        devices = self._workload.devices
        stage = f"fleet of {devices}"
        steps = 2 * self._rounds + 1
        before = self._server.rss_bytes()
        entries = min(ENTRIES, len(self._groups[-1]))
        async with opened(STREAMS, self._server.address, ways.ATTACH_FLEET) as lines:
            await self._attach(lines)
            progress(stage, 1, steps)
            row: Row = {"devices": devices, "streams": STREAMS, "entries": entries}
            row["rss_mb"] = round(self._server.rss_bytes() / 1e6, 1)
            row["own_mb"] = round(self._server.own_bytes() / 1e6, 1)
            row["kb_per_device"] = round((self._server.rss_bytes() - before) / 1e3 / devices, 1)
            reports = [self._reports(group, entries) for group in self._groups]
            # A device never has two pending reports: every report is answered.
            window = min(_WINDOW_MAX, len(self._groups[-1]) - len(self._groups[-1]) % entries)
            anchored = []
            for number in range(self._rounds):
                anchored.append(
                    await windowed(lines, reports, entries, window, self._server, self._seconds)
                )
                progress(stage, 2 + number, steps)
            row["reanchors_per_s"] = round(statistics.median(one.per_s for one in anchored))
            row["reanchor_cpu_us"] = round(statistics.median(one.cpu_us for one in anchored), 1)
            row["reanchor_answer_bytes"] = round(anchored[0].bytes_mean)
            ends = [self._message([(group[0], _ping())]) for group in self._groups]
            accepted = []
            for number in range(self._rounds):
                accepted.append(await flooded(lines, reports, ends, entries, _FLOOD * self._seconds))
                progress(stage, 2 + self._rounds + number, steps)
            row["accepted_per_s"] = round(statistics.median(one for one, _ in accepted))
            row["answered_share"] = round(statistics.median(one for _, one in accepted), 4)
            row["rss_mb_end"] = round(self._server.rss_bytes() / 1e6, 1)
        return row | await self._audit()

    async def reanchors(self) -> Rate:
        """Attach all devices on new streams, and measure the rate of answered reports."""
        entries = min(ENTRIES, len(self._groups[-1]))
        window = min(_WINDOW_MAX, len(self._groups[-1]) - len(self._groups[-1]) % entries)
        reports = [self._reports(group, entries) for group in self._groups]
        address = self._server.address
        async with opened(STREAMS, address, ways.ATTACH_FLEET, self._metadata) as lines:
            await self._attach(lines)
            return await windowed(lines, reports, entries, window, self._server, self._seconds)

    async def _audit(self) -> Row:
        """Attach some of the devices again, each on its own connection, and audit their results."""
        count = min(AUDITED, self._workload.devices)
        async with opened(count, self._server.address, ways.ATTACH) as lines:
            listeners = Listeners(self._workload, lines)
            await attach(lines, self._workload)
            return await listeners.audit()

    def _reports(self, group: list[int], entries: int) -> list[bytes]:
        """Return a round of reports of a stream's devices, with `entries` devices in each message."""
        full = len(group) - len(group) % entries
        return [
            self._message([(one, self._workload.report(one, corner)) for one in group[i : i + entries]])
            for corner in range(ROUND)
            for i in range(0, full, entries)
        ]

    def _message(self, entries: list[tuple[int, AttachRequest]]) -> bytes:
        return FleetRequest(
            entries=[
                FleetRequest.Entry(device_id=self._workload.device_id(device), request=request)
                for device, request in entries
            ]
        ).SerializeToString()

    async def _attach(self, lines: list[Channel]) -> None:
        """Send hello and subscribe for all devices; wait for a welcome and a delta of each."""
        received = Awaited()

        def on_message(_number: int, message: bytes) -> tuple[bytes, ...]:
            received.add(entry_count(message))
            return ()

        async def attach(line: Channel) -> None:
            line.on_message = on_message
            await line.start()
            group = self._groups[line.number]
            for kind in (self._workload.hello, self._workload.subscribe):
                for start in range(0, len(group), ENTRIES):
                    part = [(one, kind(one)) for one in group[start : start + ENTRIES]]
                    await line.send(self._message(part))

        await asyncio.gather(*(attach(line) for line in lines))
        await received.reach(2 * self._workload.devices, _ATTACH_S)


def _ping() -> AttachRequest:
    return AttachRequest(ping={"number": PONG_NUMBER})
