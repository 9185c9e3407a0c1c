"""Find the boolean subscriptions that a new object matches: clause indexes measured.

A variant is built from all subscriptions at once. In figure-16 and figure-17 it is built from some; the
others are inserted later in batches, and the rebuilds that this starts are finished. Then new objects are
matched, one a call and in batches. Kernels are compiled before.
"""

from __future__ import annotations

import numpy as np

from bench.ap_tree.building import build
from bench.ap_tree.experiments import ApTreeParameters
from bench.ap_tree.variants import VARIANTS, why_not
from bench.ap_tree.workload import ApTreeAudit, ApTreeWorkload, draw
from bench.benchmark import Benchmark, Estimate, Row, silent
from bench.datasets import source
from bench.matching import timed
from bench.parts import object_part

_TRIAL = 2_000
"""Subscriptions of the run from which the time of a large one is estimated."""
_BATCH = 1_000
"""Objects in a call."""
_SINGLES = 2_000
_MATCHING_SHARE = 0.3
"""Share of the time of a run, for each of the two ways of matching."""


class ClauseBenchmark(Benchmark[ApTreeParameters]):
    """Measure clause indexes, and the structures that one would use instead."""

    VARIANTS = tuple(VARIANTS)

    def why_not(self, variant: str) -> str | None:
        """Return the reason that a variant cannot be measured here; None if it can."""
        return why_not(variant)

    def trial(self, variant: str, parameters: ApTreeParameters) -> Estimate:
        """Build a small index and match some objects."""
        data = source(parameters.data)
        trial = draw(data, parameters.changed(subscriptions=min(_TRIAL, parameters.subscriptions)))
        built = build(VARIANTS[variant], variant, data, trial, parameters, silent)
        built.clause_index.match(object_part(trial.arrivals, 0, min(100, len(trial.arrivals))))
        return lambda other: float(other.subscriptions * built.built_s / trial.subscriptions)

    def smaller(self, variant: str, parameters: ApTreeParameters) -> ApTreeParameters | None:
        """Return parameters with half as many subscriptions; None if there are too few."""
        del variant
        count = parameters.subscriptions
        return parameters.changed(subscriptions=count // 2) if count > _TRIAL else None

    def measure(self, variant: str, parameters: ApTreeParameters) -> list[Row]:
        """Build a variant and match new objects."""
        data = source(parameters.data)

        def make() -> tuple[ApTreeWorkload, ApTreeAudit]:
            drawn = draw(data, parameters)
            return drawn, ApTreeAudit(drawn, parameters.audited)

        workload, audit = self.kept("workload", parameters, make)
        make_index = VARIANTS[variant]
        index, built_s, insertions = build(make_index, variant, data, workload, parameters, self.progress)
        objects = workload.arrivals
        until_s = parameters.budget_s * _MATCHING_SHARE
        before = index.candidate_count
        batch = timed(index, objects, _BATCH, until_s)
        candidates = index.candidate_count - before
        single = timed(index, object_part(objects, 0, min(_SINGLES, len(objects))), 1, until_s)
        results = len(batch.matches.ids)
        row: Row = {
            "subscriptions": parameters.subscriptions,
            "objects": len(objects),
            "us_per_object_median": round(single.quantile(0.5), 3),
            "us_per_object_p99": round(single.quantile(0.99), 3),
            "us_per_object_mean": round(single.mean(), 3),
            "us_per_object_batch": round(float(np.mean(batch.us)), 3),
            "results_per_object": round(results / max(1, batch.objects), 3),
            "candidates_per_result": round(candidates / max(1, results), 3),
            "bytes_per_subscription": round(index.memory_bytes() / parameters.subscriptions, 1),
            "build_s": round(built_s, 3),
            "clauses": len(workload.required),
            "lists_audited": 2 * len(audit.expected),
            "mismatches": audit.mismatches(batch.matches) + audit.mismatches(single.matches),
        }
        if insertions is not None:
            row |= insertions.figures()
        return [row]
