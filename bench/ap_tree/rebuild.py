"""Rebuild an AP-Tree slice by slice, and make a histogram of the times of the slices."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import NamedTuple

from bench.ap_tree.experiments import LIMITS_MS, ApTreeParameters
from bench.ap_tree.workload import ApTreeAudit, draw
from bench.benchmark import Benchmark, Row
from bench.datasets import source
from bench.parts import object_part
from index.published.ap_tree import ApTree
from index.tables.growth import reserved


class Slice(NamedTuple):
    """Time of one slice of a rebuild."""

    wall_ms: float
    cpu_ms: float


def slices(index: ApTree) -> Iterator[Slice]:
    """Do the pending rebuilds, a slice each time, until none is pending."""
    is_waiting = True
    while is_waiting:
        began, began_cpu = time.perf_counter(), time.thread_time()
        is_waiting = index.maintain()
        cpu_ms = 1e3 * (time.thread_time() - began_cpu)
        yield Slice(1e3 * (time.perf_counter() - began), cpu_ms)


class RebuildBenchmark(Benchmark[ApTreeParameters]):
    """Build a tree and rebuild all of it as a second copy while objects are matched.

    The result is a histogram of the times of slices.
    """

    VARIANTS = ("ap-tree",)

    def measure(self, variant: str, parameters: ApTreeParameters) -> list[Row]:
        """Rebuild slice by slice. Arrays grow without moving, as in a server (`index.tables.growth`)."""
        self.resources.enter_context(reserved())
        data = source(parameters.data)
        workload = draw(data, parameters)
        index = ApTree(data.square(), workload=workload.history)
        index.insert(*workload.part(0, len(workload.required)))
        index.begin_rebuild()
        times: list[Slice] = []
        arrivals = workload.arrivals
        for one in slices(index):
            place = len(times) % len(arrivals)
            times.append(one)
            index.match(object_part(arrivals, place, place + 1))
            self.progress(f"{variant}: slices", len(times), 0)
        times_ms = [one.wall_ms for one in times]
        audit = ApTreeAudit(workload, parameters.audited)
        return [
            {
                "subscriptions": parameters.subscriptions,
                "slices": len(times_ms),
                "rebuild_s": round(sum(times_ms) / 1e3, 3),
                "slice_ms_max": round(max(times_ms), 3),
                "slice_cpu_ms_max": round(max(one.cpu_ms for one in times), 3),
                **{
                    f"slices_under_{limit:g}_ms": sum(one < limit for one in times_ms)
                    for limit in LIMITS_MS
                },
                "lists_audited": len(audit.expected),
                "mismatches": audit.mismatches(index.match(object_part(arrivals, 0, parameters.audited))),
            }
        ]
