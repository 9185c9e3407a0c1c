"""`bench retrieve`: what is best here, in microseconds, and how fast objects come and go.

A variant is built; objects are inserted and as many others removed, in large and in small batches; then
it is asked for the k + b + 1 best, one subscription a call and all in one. Kernels are compiled before.
Slow variants answer fewer subscriptions, or hold fewer objects, and their rows say so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.audits import Audit
from bench.datasets import SOURCES, Dataset, distinct_subscriptions
from bench.portions import interest_part, object_part
from bench.reports import Progress, Row
from bench.retrieve.inverted_file import InvertedFile
from bench.variants import chosen
from index.batches import Ints, ObjectBatch, Ranking
from index.catalogue import OBJECT_INDEXES
from index.contracts import ObjectIndex
from safe_region.scoring import Similarity

VARIANTS: dict[str, Callable[[], ObjectIndex]] = {**OBJECT_INDEXES, "inverted-file": InvertedFile}
"""All object indexes there are."""
_NAMED_ONLY = "naive"

_CHUNK = 50_000
_TRIAL = 5_000
"""Objects of the run that compiles kernels and tells how long a large one would take."""
_BUILDING_SHARE = 0.4
"""Of the time of a run."""
_ANSWERED_MIN = 10
_SMALL_BATCHES = 10


@dataclass(frozen=True, slots=True)
class RetrieveParameters:
    """Size and shape of a run.

    Parameters
    ----------
    objects
        How many are held.
    questions
        Subscriptions that are answered in one call.
    singles
        Subscriptions that are answered in a call each.
    k_max
        k is uniform from 1 to this.
    similarity
        Text similarity of all.
    large_batch, small_batch
        How many objects come or go at once.
    audited
        Lists compared with the oracle for each b.
    """

    objects: int = 100_000
    location_requests: int = 20_000
    singles: int = 2_000
    k_max: int = 10
    similarity: Similarity = Similarity.JACCARD
    large_batch: int = 50_000
    small_batch: int = 1_000
    audited: int = 100
    seed: int = 1


class Retrieve:
    """One workload, for any variant.

    Parameters
    ----------
    data
        Where objects and subscriptions are drawn from.
    parameters
        Size and shape; batches are no larger than the number of objects.
    """

    def __init__(self, data: Dataset, parameters: RetrieveParameters) -> None:
        chance = np.random.default_rng([parameters.seed, 23])
        self._parameters = parameters
        self._asked = distinct_subscriptions(
            data, parameters.location_requests, parameters.k_max, parameters.similarity, chance
        )
        self._large = min(parameters.large_batch, parameters.objects)
        self._small = min(parameters.small_batch, parameters.objects)
        fresh = self._large + _SMALL_BATCHES * self._small
        self._objects = data.objects(parameters.objects + fresh, 1, chance)
        self._maxdist_m = data.maxdist_m
        self._audits: dict[int, Audit] = {}

    def measure(
        self, name: str, extras: tuple[int, ...], budget_s: float, progress: Progress
    ) -> list[Row]:
        """Measure a variant: a row for each b.

        Parameters
        ----------
        name
            One of VARIANTS.
        extras
            The values of b.
        budget_s
            How long the run may take.
        progress
            Is told how far it is.
        """
        objects = self._affordable(name, budget_s * _BUILDING_SHARE)
        index, build_s = _built(name, object_part(self._objects, 0, objects), progress)
        rates, gone = self._rates(index, objects)
        rows = []
        until_s = budget_s * (1.0 - _BUILDING_SHARE) / (2 * len(extras))
        for number, extra in enumerate(extras):
            audit = self._audit(objects, gone)
            row: Row = {"variant": name, "objects": objects, "extra": extra}
            row |= self._answer(index, extra, audit, until_s)
            row |= {"bytes_per_object": round(index.memory_bytes() / objects, 1), **rates}
            row |= {"large_batch": self._large, "small_batch": self._small, "build_s": round(build_s, 2)}
            rows.append(row)
            progress(f"{name}: b", number + 1, len(extras))
        return rows

    def _affordable(self, name: str, until_s: float) -> int:
        """Halve the number of objects until building fits the time; compile kernels on the way."""
        trial = min(_TRIAL, self._parameters.objects)
        index, _ = _built(name, object_part(self._objects, 0, trial))
        self._ask(index, 0, 0, 1)
        index.remove(self._objects.ids[:1])
        _, spent = _built(name, object_part(self._objects, 0, trial))
        objects = self._parameters.objects
        while objects > _TRIAL and objects * spent / trial > until_s:
            objects //= 2
        return objects

    def _rates(self, index: ObjectIndex, objects: int) -> tuple[Row, Ints]:
        """Let objects come and as many others go; return rates, and who went."""
        fresh = self._large + _SMALL_BATCHES * self._small
        gone = np.random.default_rng(5).permutation(self._objects.ids[: objects + fresh])[:fresh]
        row: Row = {}
        for name, size, first, stop in (
            ("", self._large, 0, self._large),
            ("_small", self._small, self._large, fresh),
        ):
            coming = [
                object_part(self._objects, objects + start, objects + start + size)
                for start in range(first, stop, size)
            ]
            began = time.perf_counter()
            for batch in coming:
                index.insert(batch)
            spent = time.perf_counter() - began
            row[f"inserts_per_s{name}"] = round((stop - first) / spent)
        for name, size, first, stop in (
            ("", self._large, 0, self._large),
            ("_small", self._small, self._large, fresh),
        ):
            began = time.perf_counter()
            for start in range(first, stop, size):
                index.remove(gone[start : start + size])
            row[f"removes_per_s{name}"] = round((stop - first) / (time.perf_counter() - began))
        return row, gone

    def _answer(self, index: ObjectIndex, extra: int, audit: Audit, until_s: float) -> Row:
        """Ask one by one, and all at once."""
        self._ask(index, extra, len(self._asked.k) - 1, len(self._asked.k))  # loads caches
        times_us = []
        deadline = time.perf_counter() + until_s
        for number in range(min(self._parameters.singles, len(self._asked.k))):
            began = time.perf_counter()
            self._ask(index, extra, number, number + 1)
            ended = time.perf_counter()
            times_us.append(1e6 * (ended - began))
            if ended > deadline and len(times_us) >= _ANSWERED_MIN:
                break
        affordable = int(1e6 * until_s / float(np.mean(times_us)))
        asked = min(len(self._asked.k), max(_ANSWERED_MIN, affordable))
        began = time.perf_counter()
        found = self._ask(index, extra, 0, asked)
        spent = time.perf_counter() - began
        lists, mismatches = audit.lists, audit.mismatches
        audited = min(self._parameters.audited, asked)
        audit.compare_found(_first(found, audited), self._asked.k[:audited] + extra + 1)
        return {
            "us_per_subscription_median": round(float(np.median(times_us)), 2),
            "us_per_subscription_mean": round(float(np.mean(times_us)), 2),
            "us_per_subscription_p99": round(float(np.quantile(times_us, 0.99)), 2),
            "us_per_subscription_batch": round(1e6 * spent / asked, 2),
            "subscriptions_measured": len(times_us),
            "subscriptions_in_batch": asked,
            "lists_audited": audit.lists - lists,
            "mismatches": audit.mismatches - mismatches,
        }

    def _ask(self, index: ObjectIndex, extra: int, start: int, stop: int) -> Ranking:
        asked = self._asked
        return index.best(
            interest_part(asked.interests, start, stop),
            asked.x_m[start:stop],
            asked.y_m[start:stop],
            asked.k[start:stop] + extra + 1,
            np.full(stop - start, np.inf),
        )

    def _audit(self, objects: int, gone: Ints) -> Audit:
        """Return the audit of what is there when so many objects were built."""
        if objects not in self._audits:
            fresh = self._large + _SMALL_BATCHES * self._small
            self._audits[objects] = Audit(self._asked, self._maxdist_m)
            self._audits[objects].publish(object_part(self._objects, 0, objects + fresh))
            self._audits[objects].remove(gone)
        return self._audits[objects]


def _built(
    name: str, objects: ObjectBatch, progress: Progress | None = None
) -> tuple[ObjectIndex, float]:
    """Build a variant; return how long it took."""
    index = VARIANTS[name]()
    spent = 0.0
    for first in range(0, len(objects), _CHUNK):
        part = object_part(objects, first, min(first + _CHUNK, len(objects)))
        began = time.perf_counter()
        index.insert(part)
        spent += time.perf_counter() - began
        if progress is not None:
            progress(name, first + len(part), len(objects))
    return index, spent


def _first(found: Ranking, count: int) -> Ranking:
    """Take the first rows."""
    end = found.offsets[count]
    return Ranking(found.offsets[: count + 1], found.ids[:end], found.length_m[:end], found.r_m[:end])


def run(
    progress: Progress,
    *,
    variants: Sequence[str],
    extras: Sequence[int],
    data: str,
    similarity: str,
    budget_s: float,
    **shape: Any,  # noqa: ANN401
) -> list[Row]:
    """Measure variants at each b; `shape` are fields of RetrieveParameters.

    Raises
    ------
    BenchError
        If a variant is not known, or a file is not there.
    """
    wanted = chosen(variants, VARIANTS)
    if not variants:
        wanted.remove(_NAMED_ONLY)
    source = SOURCES[data]()
    workload = Retrieve(source, RetrieveParameters(similarity=Similarity[similarity.upper()], **shape))
    rows: list[Row] = []
    for number, name in enumerate(wanted):
        progress("variants", number, len(wanted))
        measured = workload.measure(name, tuple(sorted(extras)), budget_s, progress)
        rows += [{"experiment": "retrieve", "data": source.name, **row} for row in measured]
    progress("variants", len(wanted), len(wanted))
    return rows
