"""Measure a gateway process in front of a server process.

The load generator is the process of the command, with a WebSocket for each device. It sends messages that
were serialised before, and decodes as few of the received ones as it can.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.benchmark import Benchmark, Row
from bench.gateway.crowd import Part, crowd
from bench.gateway.experiments import GatewayParameters
from bench.gateway.lines import sockets
from bench.server import lines as ways
from bench.server import loop
from bench.server.connections import attach
from bench.server.fleets import Fleets
from bench.server.lines import opened
from bench.server.listeners import Listeners, expired
from bench.server.measures import Rate, closed_loop, pushes
from bench.server.processes import Process, require_files, running
from bench.server.setup import compile_kernels, drawn, published, serving
from bench.server.workload import Workload

_READY = "gateway on "
_PUSHED_PER_S = 1_000.0
"""Objects published a second while pushed deltas are counted."""


@contextmanager
def gateway(server: Process, folder: Path, name: str = "gateway") -> Iterator[Process]:
    """Run a gateway in front of a server."""
    flags = [f"--server={server.address}", "--port=0", "--address-connections-max=0"]
    flags += ["--device-rate=1000000", "--connections-max=1000000"]
    with running(["cli", "gateway", *flags], _READY, folder / f"{name}.log") as process:
        yield process


class GatewayBenchmark(Benchmark[GatewayParameters]):
    """Measure the WebSockets of a number of devices."""

    VARIANTS = ("sockets", "crowd")

    @classmethod
    def check(cls, variant: str, parameters: GatewayParameters) -> None:
        """Require enough open files."""
        gateways = parameters.gateways if variant == "crowd" else 1
        require_files(-(-parameters.devices // gateways))

    def measure(self, variant: str, parameters: GatewayParameters) -> list[Row]:
        """Measure gateways and a server that are started for this run."""
        row = self._crowd(parameters) if variant == "crowd" else self._load(parameters)
        return [{"objects": parameters.objects, **row}]

    def _load(self, parameters: GatewayParameters) -> Row:
        """Measure one gateway under load."""
        workload = self.kept("workload", parameters, lambda: drawn(parameters))
        self.kept("compiled", parameters.devices, lambda: compile_kernels(workload))
        with (
            tempfile.TemporaryDirectory() as folder,
            serving(workload, Path(folder)) as server,
            gateway(server, Path(folder)) as front,
        ):
            return loop.run(self._measured(workload, parameters, server, front))

    def _crowd(self, parameters: GatewayParameters) -> Row:
        """Measure several gateways that hold many devices, which are silent."""
        workload = self.kept("workload", parameters, lambda: drawn(parameters))
        self.kept("compiled", parameters.devices, lambda: compile_kernels(workload))
        devices, count = parameters.devices, parameters.gateways
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            server = stack.enter_context(serving(workload, folder))
            fronts = [
                stack.enter_context(gateway(server, folder, f"gateway-{number}"))
                for number in range(count)
            ]
            loop.run(published(workload, server, self.progress))
            before = sum(front.rss_bytes() for front in fronts)
            server_before = server.rss_bytes()
            parts = [
                Part(parameters, range(number, devices, count), front.address)
                for number, front in enumerate(fronts)
            ]
            devices_of_all = stack.enter_context(crowd(parts))
            began = time.perf_counter()
            devices_of_all.attach()
            took_s = time.perf_counter() - began
            rss = sum(front.rss_bytes() for front in fronts)
            return {
                "gateways": count,
                "devices": devices,
                "attach_s": round(took_s, 1),
                "rss_mb": round(rss / 1e6, 1),
                "kb_per_socket": round((rss - before) / 1e3 / devices, 1),
                "server_kb_per_device": round((server.rss_bytes() - server_before) / 1e3 / devices, 1),
                **devices_of_all.audit(),
            }

    async def _measured(
        self, workload: Workload, parameters: GatewayParameters, server: Process, front: Process
    ) -> Row:
        await published(workload, server, self.progress)
        row = await self._sockets(workload, parameters, server, front)
        fleets = Fleets(workload, server, parameters.seconds, 1)
        rates = []
        for number in range(parameters.rounds):
            rates.append(await fleets.reanchors())
            self.progress(f"{workload.devices} devices on fleet streams", number + 1, parameters.rounds)
        return {**row, "fleet_reports_cpu_us": _cpu_us(rates)}

    async def _sockets(
        self, workload: Workload, parameters: GatewayParameters, server: Process, front: Process
    ) -> Row:
        devices, seconds = workload.devices, parameters.seconds
        before = front.rss_bytes()
        async with (
            sockets(range(devices), front.address) as lines,
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
                "reports_cpu_us": _cpu_us(rates),
                "server_reports_cpu_us": _cpu_us(server_rates),
                "report_answer_bytes": round(rates[0].bytes_mean),
                **await listeners.audit(),
            }


def _cpu_us(rates: Sequence[Rate]) -> float:
    return round(statistics.median(one.cpu_us for one in rates), 1)
