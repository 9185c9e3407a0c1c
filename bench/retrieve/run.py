"""Measure the time to find the best objects for a position, and the rates of insertions and removals.

A variant is built; objects are inserted and as many others removed, in large and in small batches. Then
it finds the k + b + 1 best objects, for one subscription a call and for all in one call. Kernels are
compiled before. Slow variants search for fewer subscriptions, or hold fewer objects, and their rows show
the numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from bench.audits import Audit
from bench.benchmark import Benchmark, Estimate, Progress, Row, silent
from bench.datasets import Dataset, distinct_subscriptions, source
from bench.parts import interest_part, object_part
from bench.peers.inverted_file import InvertedFile
from bench.retrieve.experiments import RetrieveParameters
from index.batches import Ints, ObjectBatch, Ranking
from index.catalogue import OBJECT_INDEXES
from index.contracts import ObjectIndex

VARIANTS: dict[str, Callable[[], ObjectIndex]] = {**OBJECT_INDEXES, "inverted-file": InvertedFile}
"""All object indexes, and posting lists alone."""

_CHUNK = 50_000
_TRIAL = 5_000
"""Objects of the run from which the time of a large one is estimated."""
_BUILDING_SHARE = 0.4
"""Share of the time of a run."""
_ANSWERED_MIN = 10
_SMALL_BATCHES = 10


class Retrieve:
    """One workload, for any variant.

    Parameters
    ----------
    data
        Data set of objects and subscriptions.
    parameters
        Size and shape; batches are no larger than the number of objects.
    """

    def __init__(self, data: Dataset, parameters: RetrieveParameters) -> None:
        chance = np.random.default_rng([parameters.seed, 23])
        self._parameters = parameters
        self.queries = distinct_subscriptions(
            data, parameters.searches, parameters.k_max, parameters.text_similarity, chance
        )
        self.large = min(parameters.large_batch, parameters.objects)
        self.small = min(parameters.small_batch, parameters.objects)
        added = self.large + _SMALL_BATCHES * self.small
        self.objects = data.objects(parameters.objects + added, 1, chance)
        self._maxdist_m = data.maxdist_m
        self._audits: dict[int, Audit] = {}

    def rates(self, index: ObjectIndex, objects: int) -> tuple[Row, Ints]:
        """Insert objects and remove as many others; return rates, and the ids of the removed objects."""
        added = self.large + _SMALL_BATCHES * self.small
        gone = np.random.default_rng(5).permutation(self.objects.ids[: objects + added])[:added]
        row: Row = {}
        for name, size, first, stop in (
            ("", self.large, 0, self.large),
            ("_small", self.small, self.large, added),
        ):
            coming = [
                object_part(self.objects, objects + start, objects + start + size)
                for start in range(first, stop, size)
            ]
            began = time.perf_counter()
            for batch in coming:
                index.insert(batch)
            spent = time.perf_counter() - began
            row[f"inserts_per_s{name}"] = round((stop - first) / spent)
        for name, size, first, stop in (
            ("", self.large, 0, self.large),
            ("_small", self.small, self.large, added),
        ):
            began = time.perf_counter()
            for start in range(first, stop, size):
                index.remove(gone[start : start + size])
            row[f"removes_per_s{name}"] = round((stop - first) / (time.perf_counter() - began))
        return row, gone

    def answer(self, index: ObjectIndex, extra: int, audit: Audit, until_s: float) -> Row:
        """Search for subscriptions one by one, and for all at once."""
        parameters = self._parameters
        self.ask(index, extra, len(self.queries.k) - 1, len(self.queries.k))  # loads caches
        times_us = []
        deadline = time.perf_counter() + until_s
        for number in range(min(parameters.singles, len(self.queries.k))):
            began = time.perf_counter()
            self.ask(index, extra, number, number + 1)
            ended = time.perf_counter()
            times_us.append(1e6 * (ended - began))
            if ended > deadline and len(times_us) >= _ANSWERED_MIN:
                break
        affordable = int(1e6 * until_s / float(np.mean(times_us)))
        query_count = min(len(self.queries.k), max(_ANSWERED_MIN, affordable))
        began = time.perf_counter()
        found = self.ask(index, extra, 0, query_count)
        spent = time.perf_counter() - began
        lists, mismatches = audit.lists, audit.mismatches
        audited = min(parameters.audited, query_count)
        audit.compare_found(_first(found, audited), self.queries.k[:audited] + extra + 1)
        return {
            "us_per_subscription_median": round(float(np.median(times_us)), 2),
            "us_per_subscription_mean": round(float(np.mean(times_us)), 2),
            "us_per_subscription_p99": round(float(np.quantile(times_us, 0.99)), 2),
            "us_per_subscription_batch": round(1e6 * spent / query_count, 2),
            "subscriptions_measured": len(times_us),
            "subscriptions_in_batch": query_count,
            "lists_audited": audit.lists - lists,
            "mismatches": audit.mismatches - mismatches,
        }

    def ask(self, index: ObjectIndex, extra: int, start: int, stop: int) -> Ranking:
        """Find the best objects for some of the subscriptions."""
        queries = self.queries
        return index.best(
            interest_part(queries.interests, start, stop),
            queries.x_m[start:stop],
            queries.y_m[start:stop],
            queries.k[start:stop] + extra + 1,
            np.full(stop - start, np.inf),
        )

    def audit(self, objects: int, gone: Ints) -> Audit:
        """Return the audit of the objects that remain of a build with a number of objects."""
        if objects not in self._audits:
            added = self.large + _SMALL_BATCHES * self.small
            self._audits[objects] = Audit(self.queries, self._maxdist_m)
            self._audits[objects].publish(object_part(self.objects, 0, objects + added))
            self._audits[objects].remove(gone)
        return self._audits[objects]


class RetrieveBenchmark(Benchmark[RetrieveParameters]):
    """Measure object indexes, and posting lists alone."""

    VARIANTS = tuple(VARIANTS)

    def workload(self, parameters: RetrieveParameters) -> Retrieve:
        """Return the workload of a series, which is drawn once."""
        whole = self.whole(parameters, "objects")
        return self.kept("workload", whole, lambda: Retrieve(source(whole.data), whole))

    def trial(self, variant: str, parameters: RetrieveParameters) -> Estimate:
        """Build a small index, search it, and remove an object."""
        workload = self.workload(parameters)
        count = min(_TRIAL, parameters.objects)
        index, spent_s = _built(variant, object_part(workload.objects, 0, count), silent)
        workload.ask(index, 0, 0, 1)
        index.remove(workload.objects.ids[:1])
        each_s = spent_s / count / _BUILDING_SHARE
        return lambda other: float(other.objects * each_s)

    def smaller(self, variant: str, parameters: RetrieveParameters) -> RetrieveParameters | None:
        """Return parameters with half as many objects; None if there are too few."""
        del variant
        count = parameters.objects
        return parameters.changed(objects=count // 2) if count > _TRIAL else None

    def measure(self, variant: str, parameters: RetrieveParameters) -> list[Row]:
        """Build a variant, insert and remove objects, and search: a row for each b."""
        workload, count, extras = self.workload(parameters), parameters.objects, parameters.extras
        index, build_s = _built(variant, object_part(workload.objects, 0, count), self.progress)
        rates, gone = workload.rates(index, count)
        rows: list[Row] = []
        until_s = parameters.budget_s * (1.0 - _BUILDING_SHARE) / (2 * len(extras))
        for number, extra in enumerate(sorted(extras)):
            audit = workload.audit(count, gone)
            row: Row = {"objects": count, "extra": extra}
            row |= workload.answer(index, extra, audit, until_s)
            row |= {"bytes_per_object": round(index.memory_bytes() / count, 1), **rates}
            row |= {"large_batch": workload.large, "small_batch": workload.small}
            rows.append({**row, "build_s": round(build_s, 2)})
            self.progress(f"{variant}: b", number + 1, len(extras))
        return rows


def _built(name: str, objects: ObjectBatch, progress: Progress) -> tuple[ObjectIndex, float]:
    """Build a variant; return it and the seconds that this took."""
    index = VARIANTS[name]()
    spent = 0.0
    for first in range(0, len(objects), _CHUNK):
        part = object_part(objects, first, min(first + _CHUNK, len(objects)))
        began = time.perf_counter()
        index.insert(part)
        spent += time.perf_counter() - began
        progress(name, first + len(part), len(objects))
    return index, spent


def _first(found: Ranking, count: int) -> Ranking:
    """Return the first rows."""
    end = found.offsets[count]
    return Ranking(found.offsets[: count + 1], found.ids[:end], found.length_m[:end], found.r_m[:end])
