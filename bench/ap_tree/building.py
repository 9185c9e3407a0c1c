"""Build a clause index and settle it; measure the insertions and the rebuilds that follow them."""

from __future__ import annotations

import time
from typing import NamedTuple

from bench.ap_tree.experiments import ApTreeParameters
from bench.ap_tree.rebuild import slices
from bench.ap_tree.variants import Make, learn
from bench.ap_tree.workload import ApTreeWorkload
from bench.benchmark import Progress, Row
from bench.datasets import Dataset
from bench.parts import object_part
from index.contracts import ClauseIndex
from index.published.ap_tree import ApTree

_BATCH = 1_000
"""Subscriptions in a call, for those inserted after the index was built."""


class Insertions(NamedTuple):
    """Cost of the clauses that were inserted after an index was built, in microseconds each."""

    us: float
    """Time of the calls, including small rebuilds and slices of large ones."""
    settled_us: float
    """Time including the rebuilds that were pending after the last call."""
    rebuilds: int
    """Nodes that were rebuilt because of drift."""

    def figures(self) -> Row:
        """Return the costs as columns."""
        return {
            "us_per_insert": round(self.us, 3),
            "us_per_insert_settled": round(self.settled_us, 3),
            "rebuilds": self.rebuilds,
        }


class Built(NamedTuple):
    """An index with all clauses of a workload and no pending rebuilds."""

    clause_index: ClauseIndex
    built_s: float
    insertions: Insertions | None
    """None if the index was built from all clauses at once."""


def build(
    make: Make,
    name: str,
    data: Dataset,
    workload: ApTreeWorkload,
    parameters: ApTreeParameters,
    progress: Progress,
) -> Built:
    """Build an index from the first clauses, insert the others in batches, and finish its rebuilds."""
    index = make(data.square(), workload.history, parameters)
    whole = len(workload.required)
    first = max(1, round(whole * parameters.first_share))
    nothing = object_part(workload.arrivals, 0, 0)
    progress(f"{name}: built", 0, whole)
    began = time.perf_counter()
    index.insert(*workload.part(0, first))
    index.match(nothing)  # an index that cannot be changed is built here
    built_s = time.perf_counter() - began
    learn(index, workload.history, *workload.part(0, first)[:2])
    progress(f"{name}: built", first, whole)
    if first == whole:
        return Built(index, built_s, None)
    began = time.perf_counter()
    for start in range(first, whole, _BATCH):
        stop = min(start + _BATCH, whole)
        index.insert(*workload.part(start, stop))
        progress(f"{name}: built", stop, whole)
    inserted_s = time.perf_counter() - began
    settled_s, rebuilds = _settle(index)
    each_us = 1e6 / (whole - first)
    insertions = Insertions(each_us * inserted_s, each_us * (inserted_s + settled_s), rebuilds)
    return Built(index, built_s, insertions)


def _settle(index: ClauseIndex) -> tuple[float, int]:
    """Finish the pending rebuilds.

    Returns the seconds that this took, and the number of all nodes that were rebuilt so far.
    """
    if not isinstance(index, ApTree):
        return 0.0, 0
    return sum(one.wall_ms for one in slices(index)) / 1e3, index.rebuild_count
