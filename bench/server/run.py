"""`bench server`: a real server process under load, and a bare echo server beside it.

The load generator is the process of the command. It sends messages that were written before and looks
into as few of what arrives as it can, so that the server is what is measured. Both servers run on uvloop
in processes of their own. They are measured in turn, several times; rows have medians, and ratios to the
echo server of the same run.

A ping is the cheapest message of the protocol that is answered: it changes no subscription, but
passes through the same queue as every other command, and its pong comes in order. A report is answered
by a delta.
"""

from __future__ import annotations

import asyncio
import gc
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvloop

from bench.datasets import SOURCES, Dataset
from bench.errors import BenchError
from bench.reports import Progress, Row
from bench.retrieve.experiments import RetrieveParameters
from bench.retrieve.run import RetrieveBenchmark
from bench.runner import affordable
from bench.server import echo as echoing
from bench.server.connections import Connections
from bench.server.fleets import Fleets
from bench.server.metrics import measure_metrics
from bench.server.processes import Process, require_files, running
from bench.server.setup import compile_kernels, published, serving
from bench.server.soak import soak
from bench.server.storm import storm
from bench.server.workload import Workload
from bench.variants import chosen
from engine import CostModel
from index.catalogue import DEFAULT_OBJECT_INDEX

VARIANTS = ("connections", "shared", "fleet", "storm-connections", "storm-fleet", "metrics")
_STORMS = ("storm-connections", "storm-fleet")
_OF_BOTH_KINDS = ("connections", "shared")
_SHARED = 10
"""Connections of the variant `shared`."""
_RETRIEVE_S = 30.0


@dataclass(frozen=True, slots=True)
class ServerParameters:
    """Size and shape of a run.

    Parameters
    ----------
    objects
        How many are there.
    k_max
        k is uniform from 1 to this.
    seconds
        Length of one measurement.
    rounds
        How often each is repeated.
    boolean_share
        So many of the devices have a boolean subscription with a fixed range, for ``connections`` and
        ``shared``.
    variants
        ``connections``, one for each device, ``shared``, a stream for each on some connections, as
        through a gateway, or ``fleet``, streams that they share; ``storm-connections`` and
        ``storm-fleet``, the same where the server is killed and all devices come back; ``metrics``, two
        servers of which one is scraped. Each has a server of its own.
    """

    objects: int = 100_000
    k_max: int = 10
    seconds: float = 5.0
    rounds: int = 3
    boolean_share: float = 0.0
    seed: int = 1
    variants: Sequence[str] = VARIANTS

    def __post_init__(self) -> None:
        others = [one for one in self.variants if one not in _OF_BOTH_KINDS]
        if self.boolean_share and others:
            known = ", ".join(_OF_BOTH_KINDS)
            raise BenchError(f"variant is {others[0]!r}, must be one of {known} with a boolean share")

    def workload(self, data: Dataset, devices: int) -> Workload:
        """Draw objects and devices."""
        return Workload(data, self.objects, devices, self.k_max, self.seed, self.boolean_share)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Python's collector keeps still: the load generator's own stalls are nobody's latency."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


async def measure(
    data: Dataset, devices: int, parameters: ServerParameters, progress: Progress
) -> list[Row]:
    """Measure one number of devices: a row for each variant."""
    workload = parameters.workload(data, devices)
    rows: list[Row] = []
    compile_kernels(workload)
    for variant in parameters.variants:
        if variant in _STORMS:
            with _without_collector():
                found = await storm(
                    workload, parameters.k_max, progress, is_fleet=variant == "storm-fleet"
                )
            rows.append({"variant": variant, "objects": parameters.objects, **found})
            continue
        if variant == "metrics":
            with _without_collector():
                found = await measure_metrics(workload, parameters.seconds, parameters.rounds, progress)
            rows.append({"variant": variant, "objects": parameters.objects, **found})
            continue
        with (
            _without_collector(),
            tempfile.TemporaryDirectory() as folder,
            serving(workload, Path(folder)) as server,
            running([echoing.__name__], echoing.READY, Path(folder) / "echo.log") as echo,
        ):
            rows.append(await _measured(variant, workload, parameters, server, echo, progress))
    return rows


async def _measured(
    variant: str,
    workload: Workload,
    parameters: ServerParameters,
    server: Process,
    echo: Process,
    progress: Progress,
) -> Row:
    per_s = await published(workload, server, progress)
    seconds, rounds = parameters.seconds, parameters.rounds
    if variant == "fleet":
        found = await Fleets(workload, server, seconds, rounds).measure(progress)
    else:
        shared = _SHARED if variant == "shared" else None
        found = await Connections(workload, server, echo, seconds, rounds, shared).measure(progress)
    return {
        "variant": variant,
        "objects": parameters.objects,
        "boolean_share": parameters.boolean_share,
        "publishes_per_s": round(per_s),
        **found,
    }


def run(
    progress: Progress,
    *,
    variants: Sequence[str],
    devices: Sequence[int],
    data: str,
    soak_s: float | None,
    **shape: Any,  # noqa: ANN401
) -> list[Row]:
    """Measure each number of devices, or watch the largest; `shape` are fields of ServerParameters.

    Raises
    ------
    BenchError
        If a process does not start, more devices are asked for than files may be open, a variant is not
        known, or a file is not there.
    """
    require_files(max(devices))
    source = SOURCES[data]()
    parameters = ServerParameters(variants=chosen(variants, VARIANTS), **shape)
    common = {"experiment": "server", "data": source.name}
    # One loop for all measurements: gRPC's poller goes on telling the first one what happens.
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        if soak_s is not None:
            workload = parameters.workload(source, max(devices))
            return [common | runner.run(soak(workload, soak_s, progress))]
        allowed = _allowed(source, parameters, progress) if "fleet" in parameters.variants else {}
        rows: list[Row] = []
        for count in sorted(devices):
            found = runner.run(measure(source, count, parameters, progress))
            rows.extend(common | row | _beside(row, allowed) for row in found)
    return rows


def _allowed(data: Dataset, parameters: ServerParameters, progress: Progress) -> Row:
    """Measure what retrieval alone allows."""
    wanted = RetrieveParameters(
        objects=parameters.objects,
        k_max=parameters.k_max,
        seed=parameters.seed,
        data=data.name,
        extras=(CostModel().extra_max,),
        budget_s=_RETRIEVE_S,
    )
    with RetrieveBenchmark([wanted], progress) as benchmark:
        name = DEFAULT_OBJECT_INDEX
        (row,) = benchmark.measure(name, affordable(benchmark, name, wanted))
    return row


def _beside(row: Row, allowed: Row) -> Row:
    """Compare re-anchors with retrieval alone: one subscription a call, and all in one."""
    if "reanchors_per_s" not in row:
        return {}
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
