"""Figures 9 and 11 of lamps.txt: what is measured inside the two indexes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from bench.audits import Audit
from bench.datasets import Dataset, subscriptions
from bench.engines import top_k_of
from bench.lamps.run import Lamps, LampsParameters, Variant
from bench.reports import Progress, Row
from bench.trajectories import STILL_M
from index.baselines.iqf import IqfObjectIndex
from index.baselines.sq_tree import SqTree
from safe_region.region import RegionMode

_FREQUENT_PERCENT = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
_QUESTIONS = 2_000
_OBJECTS_MET = 1_000
"""New objects over which the error of E[i_n] is averaged."""


def figure_9(data: Dataset, base: LampsParameters, progress: Progress) -> list[Row]:
    """Measure retrieval time and memory of IQF by x, the share of keywords that have a quadtree."""
    chance = np.random.default_rng([base.seed, 9])
    objects = data.objects(base.objects, 1, chance)
    asked = subscriptions(data, _QUESTIONS, base.k_max, base.similarity, chance)
    count = asked.k + 1
    unbounded = np.full(len(count), np.inf)
    audit = Audit(asked, data.maxdist_m)
    audit.publish(objects)
    rows: list[Row] = []
    for number, percent in enumerate(_FREQUENT_PERCENT):
        progress("figure-9", number, len(_FREQUENT_PERCENT))
        index = IqfObjectIndex(frequent_percent=percent)
        index.insert(objects)
        audit.lists = audit.mismatches = 0
        audit.compare_found(index.best(asked.interests, asked.x_m, asked.y_m, count, unbounded))
        began = time.perf_counter()
        index.best(asked.interests, asked.x_m, asked.y_m, count, unbounded)
        spent = time.perf_counter() - began
        rows.append(
            {
                "experiment": "figure-9",
                "variant": "iqf",
                "data": data.name,
                "objects": base.objects,
                "share": percent,
                "retrieval_us": round(1e6 * spent / _QUESTIONS, 2),
                "memory_bytes": index.memory_bytes(),
                "x": "share",
                "y": "retrieval_us",
                "lists_audited": audit.lists,
                "mismatches": audit.mismatches,
            }
        )
    progress("figure-9", len(_FREQUENT_PERCENT), len(_FREQUENT_PERCENT))
    return rows


def figure_11(data: Dataset, base: LampsParameters, progress: Progress) -> list[Row]:
    """Measure how far E[i_n] is from i_n, by the number of subscriptions."""
    rows: list[Row] = []
    shares = (2, 4, 6, 8, 10)
    for number, share in enumerate(shares):
        progress("figure-11", number, len(shares))
        parameters = replace(base, subscriptions=max(1, base.subscriptions * share // 10))
        variant = Variant("lamps", RegionMode.ELLIPSE, IqfObjectIndex, lambda: SqTree(data.square()))
        lamps = Lamps(variant, data, STILL_M, parameters)
        lamps.build(progress)
        lamps.compare_sample(0)
        tree = top_k_of(lamps.engine).tables.indexes.alike
        assert isinstance(tree, SqTree)  # noqa: S101 - made two lines above
        met = data.objects(_OBJECTS_MET, 1, np.random.default_rng([base.seed, 11]))
        rows.append(
            {
                "experiment": "figure-11",
                "variant": "lamps",
                "data": data.name,
                "subscriptions": parameters.subscriptions,
                "objects": parameters.objects,
                "objects_seen": tree.seen_count,
                "error": round(tree.expectation_error(met), 4),
                "x": "subscriptions",
                "y": "error",
                "lists_audited": lamps.audit.lists,
                "mismatches": lamps.audit.mismatches,
            }
        )
    progress("figure-11", len(shares), len(shares))
    return rows


STRUCTURES: dict[str, Callable[[Dataset, LampsParameters, Progress], list[Row]]] = {
    "figure-9": figure_9,
    "figure-11": figure_11,
}
