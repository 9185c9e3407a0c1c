"""Measure a gateway process in front of a server process.

The load generator is the process of the command, with a WebSocket for each device. It sends messages that
were serialised before, and decodes as few of the received ones as it can.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.benchmark import Benchmark, Row
from bench.datasets import source
from bench.gateway.lines import sockets
from bench.server import lines as ways
from bench.server import loop
from bench.server.connections import attach
from bench.server.experiments import LoadParameters
from bench.server.lines import opened
from bench.server.listeners import Listeners, expired
from bench.server.measures import Rate, closed_loop, pushes
from bench.server.processes import Process, require_files, running
from bench.server.setup import compile_kernels, published, serving
from bench.server.workload import Workload

_READY = "gateway on "
_PUSHED_PER_S = 1_000.0
"""Objects published a second while pushed deltas are counted."""


@contextmanager
def gateway(server: Process, folder: Path) -> Iterator[Process]:
    """Run a gateway in front of a server."""
    flags = [f"--server={server.address}", "--port=0", "--address-connections-max=0"]
    flags += ["--device-rate=1000000", "--connections-max=1000000"]
    with running(["cli", "gateway", *flags], _READY, folder / "gateway.log") as process:
        yield process


class GatewayBenchmark(Benchmark[LoadParameters]):
    """Measure the WebSockets of a number of devices."""

    VARIANTS = ("sockets",)

    @classmethod
    def check(cls, variant: str, parameters: LoadParameters) -> None:
        """Require enough open files."""
        del variant
        require_files(parameters.devices)

    def measure(self, variant: str, parameters: LoadParameters) -> list[Row]:
        """Measure a gateway and a server that are started for this run."""
        del variant
        workload = self.kept("workload", parameters, lambda: _drawn(parameters))
        self.kept("compiled", parameters.devices, lambda: compile_kernels(workload))
        with (
            tempfile.TemporaryDirectory() as folder,
            serving(workload, Path(folder)) as server,
            gateway(server, Path(folder)) as front,
        ):
            row = loop.run(self._measured(workload, parameters, server, front))
        return [{"objects": parameters.objects, **row}]

    async def _measured(
        self, workload: Workload, parameters: LoadParameters, server: Process, front: Process
    ) -> Row:
        await published(workload, server, self.progress)
        devices, seconds = workload.devices, parameters.seconds
        before = front.rss_bytes()
        async with (
            sockets(devices, front.address) as lines,
            opened(1, server.address, ways.PUBLISH) as (publisher,),
        ):
            listeners = Listeners(workload, lines)
            await attach(lines, workload)
            row: Row = {"devices": devices, "rss_mb": round(front.rss_bytes() / 1e6, 1)}
            row["kb_per_socket"] = round((front.rss_bytes() - before) / 1e3 / devices, 1)
            await publisher.start()

            async def publish(count: int) -> None:
                await publisher.send(workload.pushed(count).SerializeToString())

            cpu_s = front.cpu_s()
            found = await pushes(lines, publish, _PUSHED_PER_S, seconds)
            row |= found.row("publish")
            row["pushed_cpu_us"] = round(1e6 * (front.cpu_s() - cpu_s) / max(1, len(found.ns)), 1)
            reports, speakers = workload.rounds(), lines[: workload.reporting]
            rates: list[Rate] = []
            server_rates: list[Rate] = []
            for number in range(parameters.rounds):
                rates.append(await closed_loop(speakers, reports, front, seconds))
                server_rates.append(await closed_loop(speakers, reports, server, seconds))
                self.progress(f"{devices} WebSockets", number + 1, parameters.rounds)
            await expired()
            return {
                **row,
                "reports_per_s": round(statistics.median(one.per_s for one in rates)),
                "reports_cpu_us": round(statistics.median(one.cpu_us for one in rates), 1),
                "server_reports_cpu_us": round(statistics.median(one.cpu_us for one in server_rates), 1),
                "report_answer_bytes": round(rates[0].bytes_mean),
                **await listeners.audit(),
            }


def _drawn(parameters: LoadParameters) -> Workload:
    """Draw objects and devices."""
    return Workload(
        source(parameters.data),
        parameters.objects,
        parameters.devices,
        parameters.k_max,
        parameters.seed,
    )
