"""Measure the cost of metrics: two servers with the same load in turn, one of which is scraped."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import statistics
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.request import urlopen

from bench.benchmark import Progress, Row
from bench.server import lines as ways
from bench.server.connections import attach
from bench.server.lines import opened
from bench.server.listeners import Listeners
from bench.server.measures import Rate, closed_loop
from bench.server.processes import Process
from bench.server.setup import published, serving
from bench.server.workload import Workload

_SCRAPE_S = 1.0
"""Seconds between two scrapes: fifteen times as often as Prometheus does by default."""


async def measure_metrics(workload: Workload, seconds: float, rounds: int, progress: Progress) -> Row:
    """Return the CPU time of a report without a metrics port and with one that is scraped each second."""
    reports = workload.rounds()
    rates: dict[str, list[Rate]] = {"plain": [], "metrics": []}
    port = _free_port()
    with (
        tempfile.TemporaryDirectory() as first,
        tempfile.TemporaryDirectory() as second,
        serving(workload, Path(first)) as plain,
        serving(workload, Path(second), flags=(f"--metrics-port={port}",)) as other,
    ):
        for server in (plain, other):
            await published(workload, server, progress)
        async with (
            opened(workload.devices, plain.address, ways.ATTACH) as plain_lines,
            opened(workload.devices, other.address, ways.ATTACH) as other_lines,
        ):
            servers: dict[str, tuple[Process, list[ways.Channel]]] = {
                "plain": (plain, plain_lines),
                "metrics": (other, other_lines),
            }
            listeners = Listeners(workload, other_lines)
            for _, lines in servers.values():
                await attach(lines, workload)
            async with _scraped(port) as scrapes:
                for number in range(2 * rounds):
                    # Each starts as often as the other: the machine may warm up or be slowed down.
                    name = ("plain", "metrics", "metrics", "plain")[number % 4]
                    server, lines = servers[name]
                    speakers = lines[: workload.reporting]
                    rates[name].append(await closed_loop(speakers, reports, server, seconds))
                    progress(f"{workload.devices} devices, metrics", number + 1, 2 * rounds)
                rss_mb = round(other.rss_bytes() / 1e6, 1)
            audited = await listeners.audit()
    cpu_us = {name: statistics.median(one.cpu_us for one in found) for name, found in rates.items()}
    return {
        "devices": workload.devices,
        "rss_mb": rss_mb,
        "reports_per_s": round(statistics.median(one.per_s for one in rates["plain"])),
        "metrics_reports_per_s": round(statistics.median(one.per_s for one in rates["metrics"])),
        "reports_cpu_us": round(cpu_us["plain"], 1),
        "metrics_reports_cpu_us": round(cpu_us["metrics"], 1),
        "metrics_cpu_ratio": round(cpu_us["metrics"] / cpu_us["plain"], 3),
        "runs_cpu_us": [round(one.cpu_us, 1) for one in rates["plain"]],
        "metrics_runs_cpu_us": [round(one.cpu_us, 1) for one in rates["metrics"]],
        "scrapes": len(scrapes),
        "scrape_bytes": max(scrapes, default=0),
        **audited,
    }


@asynccontextmanager
async def _scraped(port: int) -> AsyncIterator[list[int]]:
    """Scrape until the block ends; yield the sizes of the responses."""
    sizes: list[int] = []

    def scrape() -> int:
        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            return len(answer.read())

    async def scrape_on() -> None:
        while True:
            sizes.append(await asyncio.to_thread(scrape))
            await asyncio.sleep(_SCRAPE_S)

    scraping = asyncio.create_task(scrape_on())
    try:
        yield sizes
    finally:
        scraping.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await scraping


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port
