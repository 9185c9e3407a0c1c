"""How long the calls take during which an AP-Tree is rebuilt: a histogram."""

from __future__ import annotations

import time

from bench.ap_tree.workload import ApTreeAudit, ApTreeParameters, draw
from bench.datasets import Dataset
from bench.portions import object_part
from bench.reports import Progress, Row
from index.baselines.ap_tree import ApTree
from index.tables.growth import reserve

_LIMITS_MS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0)


def rebuild_rows(data: Dataset, parameters: ApTreeParameters, progress: Progress) -> list[Row]:
    """Build a tree, rebuild all of it beside itself while objects are matched; return a histogram.

    Arrays grow without moving, as they do in a server (`index.tables.growth.reserve`).
    """
    reserve()
    workload = draw(data, parameters)
    index = ApTree(data.square(), workload=workload.history)
    index.insert(*workload.part(0, len(workload.required)))
    index.begin_rebuild()
    times_ms: list[float] = []
    cpu_ms: list[float] = []
    arrivals = workload.arrivals
    is_waiting = True
    while is_waiting:
        place = len(times_ms) % len(arrivals)
        began, began_cpu = time.perf_counter(), time.thread_time()
        is_waiting = index.maintain()
        cpu_ms.append(1e3 * (time.thread_time() - began_cpu))
        times_ms.append(1e3 * (time.perf_counter() - began))
        index.match(object_part(arrivals, place, place + 1))
        progress("rebuild", len(times_ms), 0)
    audit = ApTreeAudit(workload, parameters.audited)
    row: Row = {
        "experiment": "rebuild",
        "variant": "ap-tree",
        "data": data.name,
        "subscriptions": parameters.subscriptions,
        "slices": len(times_ms),
        "rebuild_s": round(sum(times_ms) / 1e3, 3),
        "slice_ms_max": round(max(times_ms), 3),
        "slice_cpu_ms_max": round(max(cpu_ms), 3),
        **{f"slices_under_{limit:g}_ms": sum(one < limit for one in times_ms) for limit in _LIMITS_MS},
        "lists_audited": len(audit.expected),
        "mismatches": audit.mismatches(index.match(object_part(arrivals, 0, parameters.audited))),
    }
    return [row]
