"""Figures 9 and 11 of lamps.txt: measurements inside the two indexes."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from bench.audits import Audit
from bench.benchmark import Benchmark, Row
from bench.datasets import Subscriptions, source, subscriptions
from bench.engines import top_k_of
from bench.lamps.experiments import LampsParameters
from bench.lamps.run import Lamps, Variant
from bench.trajectories import STILL_M
from index.batches import ObjectBatch
from index.published.iqf import IqfObjectIndex
from index.published.sq_tree import SqTree
from safe_region.regions.region import RegionMode

_SEARCHES = 2_000
_OBJECTS_MET = 1_000
"""New objects over which the error of E[i_n] is averaged."""


class _Searches(NamedTuple):
    """Searches of IQF, and the objects that are searched."""

    objects: ObjectBatch
    queries: Subscriptions
    audit: Audit


def _searches(parameters: LampsParameters) -> _Searches:
    data = source(parameters.data)
    rng = np.random.default_rng([parameters.seed, 9])
    objects = data.objects(parameters.objects, 1, rng)
    queries = subscriptions(data, _SEARCHES, parameters.k_max, parameters.text_similarity, rng)
    audit = Audit(queries, data.maxdist_m)
    audit.publish(objects)
    return _Searches(objects, queries, audit)


class FrequentKeywords(Benchmark[LampsParameters]):
    """Measure retrieval time and memory of IQF by x, the share of keywords that have a quadtree."""

    VARIANTS = ("iqf",)

    def measure(self, variant: str, parameters: LampsParameters) -> list[Row]:
        """Build the index; search once for the audit and the caches, and once with the clock."""
        del variant
        whole = parameters.changed(frequent_percent=0.0)
        objects, queries, audit = self.kept("searches", whole, lambda: _searches(whole))
        count = queries.k + 1
        unbounded = np.full(len(count), np.inf)
        index = IqfObjectIndex(frequent_percent=parameters.frequent_percent)
        index.insert(objects)
        audit.lists = audit.mismatches = 0
        audit.compare_found(index.best(queries.interests, queries.x_m, queries.y_m, count, unbounded))
        began = time.perf_counter()
        index.best(queries.interests, queries.x_m, queries.y_m, count, unbounded)
        spent = time.perf_counter() - began
        return [
            {
                "objects": parameters.objects,
                "retrieval_us": round(1e6 * spent / _SEARCHES, 2),
                "memory_bytes": index.memory_bytes(),
                "lists_audited": audit.lists,
                "mismatches": audit.mismatches,
            }
        ]


class Expectations(Benchmark[LampsParameters]):
    """Measure the error of E[i_n] against i_n, by the number of subscriptions."""

    VARIANTS = ("lamps",)

    def measure(self, variant: str, parameters: LampsParameters) -> list[Row]:
        """Build the system, and compare the expected with the actual common keywords at its nodes."""
        data = source(parameters.data)
        lamps = Lamps(
            Variant(variant, RegionMode.ELLIPSE, IqfObjectIndex, SqTree), data, STILL_M, parameters
        )
        lamps.build(self.progress)
        lamps.compare_sample(0)
        tree = top_k_of(lamps.engine).tables.indexes.alike
        assert isinstance(tree, SqTree)  # noqa: S101 - created above
        met = data.objects(_OBJECTS_MET, 1, np.random.default_rng([parameters.seed, 11]))
        return [
            {
                "subscriptions": parameters.subscriptions,
                "objects": parameters.objects,
                "objects_seen": tree.seen_count,
                "error": round(tree.expectation_error(met), 4),
                "lists_audited": lamps.audit.lists,
                "mismatches": lamps.audit.mismatches,
            }
        ]
