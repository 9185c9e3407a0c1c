"""Measure a real server process under load, and a bare echo server.

The load generator is the process of the command. It sends messages that were serialised before and
decodes as few of the received ones as it can, so that the server is measured and not the generator. Both
servers run on uvloop in their own processes. They are measured in turn, several times; rows have medians,
and ratios to the echo server of the same run.

A ping is the cheapest message of the protocol that is answered: it changes no subscription, but passes
through the same queue as every other command, and its pong comes in order. A report is answered by a
delta.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from bench.benchmark import Benchmark, Progress, Row
from bench.errors import BenchError
from bench.retrieve.experiments import RetrieveParameters
from bench.retrieve.run import RetrieveBenchmark
from bench.runner import affordable
from bench.server import echo as echoing
from bench.server import loop
from bench.server.connections import Connections
from bench.server.experiments import SINGLE, ServerParameters
from bench.server.fleets import Fleets
from bench.server.metrics import measure_metrics
from bench.server.processes import Process, require_files, running
from bench.server.setup import compile_kernels, drawn, published, serving
from bench.server.soak import soak
from bench.server.storm import storm
from bench.server.workload import Workload
from engine import CostModel
from index.catalogue import DEFAULT_OBJECT_INDEX

_SHARED = 10
"""Connections of the variant `shared`."""
_RETRIEVE_S = 30.0


class ServerBenchmark(Benchmark[ServerParameters]):
    """Measure devices on own or shared connections, or fleet streams; storms, metrics, a soak."""

    VARIANTS = (*SINGLE, "fleet", "storm-connections", "storm-fleet", "metrics", "soak")

    @classmethod
    def check(cls, variant: str, parameters: ServerParameters) -> None:
        """Require enough open files, and boolean subscriptions only for variants that support them."""
        require_files(parameters.devices)
        if parameters.boolean_share and variant not in SINGLE:
            known = ", ".join(SINGLE)
            raise BenchError(f"variant is {variant!r}, must be one of {known} with a boolean share")

    def measure(self, variant: str, parameters: ServerParameters) -> list[Row]:
        """Measure a server that is started for this run."""
        workload = self.kept("workload", parameters, lambda: drawn(parameters, parameters.boolean_share))
        self.kept("compiled", parameters.devices, lambda: compile_kernels(workload))
        with loop.without_collector():
            row = {"objects": parameters.objects, **self._row(variant, workload, parameters)}
        return [row | self._beside_retrieval(row, parameters)]

    def _row(self, variant: str, workload: Workload, parameters: ServerParameters) -> Row:
        seconds, rounds, progress = parameters.seconds, parameters.rounds, self.progress
        if variant == "soak":
            return loop.run(soak(workload, parameters.soak_s, progress))
        if variant == "metrics":
            return loop.run(measure_metrics(workload, seconds, rounds, progress))
        if variant.startswith("storm-"):
            is_fleet = variant == "storm-fleet"
            return loop.run(storm(workload, parameters.k_max, progress, is_fleet=is_fleet))
        with (
            tempfile.TemporaryDirectory() as folder,
            serving(workload, Path(folder)) as server,
            running([echoing.__name__], echoing.READY, Path(folder) / "echo.log") as echo,
        ):
            return loop.run(_measured(variant, workload, parameters, (server, echo), progress))

    def _beside_retrieval(self, row: Row, parameters: ServerParameters) -> Row:
        """Compare re-anchors, if they were measured, with the rate that retrieval alone allows."""
        if "reanchors_per_s" not in row:
            return {}
        wanted = RetrieveParameters(
            objects=parameters.objects,
            k_max=parameters.k_max,
            seed=parameters.seed,
            data=parameters.data,
            extras=(CostModel().extra_max,),
            budget_s=_RETRIEVE_S,
        )

        def allowed() -> Row:
            name = DEFAULT_OBJECT_INDEX
            with RetrieveBenchmark([wanted], self.progress) as benchmark:
                (found,) = benchmark.measure(name, affordable(benchmark, name, wanted))
            return found

        return _beside(row, self.kept("allowed", wanted, allowed))


async def _measured(
    variant: str,
    workload: Workload,
    parameters: ServerParameters,
    processes: tuple[Process, Process],
    progress: Progress,
) -> Row:
    server, echo = processes
    per_s = await published(workload, server, progress)
    seconds, rounds = parameters.seconds, parameters.rounds
    if variant == "fleet":
        found = await Fleets(workload, server, seconds, rounds).measure(progress)
    else:
        shared = _SHARED if variant == "shared" else None
        found = await Connections(workload, server, echo, seconds, rounds, shared).measure(progress)
    return {
        "boolean_share": parameters.boolean_share,
        "publishes_per_s": round(per_s),
        **found,
    }


def _beside(row: Row, allowed: Row) -> Row:
    """Compare re-anchors with retrieval alone: one subscription a call, and all in one."""
    single = 1e6 / allowed["us_per_subscription_mean"]
    batch = 1e6 / allowed["us_per_subscription_batch"]
    return {
        "retrieve_per_s": round(single),
        "retrieve_batch_per_s": round(batch),
        "reanchors_ratio": round(row["reanchors_per_s"] / single, 3),
        "reanchors_batch_ratio": round(row["reanchors_per_s"] / batch, 3),
        "lists_audited": row["lists_audited"] + allowed["lists_audited"],
        "mismatches": row["mismatches"] + allowed["mismatches"],
    }
