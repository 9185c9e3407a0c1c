"""`nearcast bench match`: from options to rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bench.datasets import SOURCES, Dataset
from bench.match.audits import MatchAudit
from bench.match.run import VARIANTS, measure
from bench.match.workload import MatchParameters, MatchWorkload, prepare
from bench.reports import Progress, Row
from bench.variants import chosen
from safe_region.scoring import Similarity


def run(
    sizes: tuple[int, ...], names: tuple[str, ...], options: dict[str, Any], progress: Progress
) -> list[Row]:
    """Measure variants at each number of subscriptions.

    Raises
    ------
    ValueError
        If a variant is not known.
    DataMissingError
        If a file is not there.
    """
    wanted = chosen(names, VARIANTS)
    data = SOURCES[options["data"]]()
    base = MatchParameters(
        subscriptions=max(sizes),
        objects=options["objects"],
        k_max=options["k_max"],
        buffer_extra=options["buffer_extra"],
        similarity=Similarity[options["similarity"].upper()],
        seed=options["seed"],
    )
    whole: MatchWorkload | None = None
    rows: list[Row] = []
    for number, size in enumerate(sorted(sizes)):
        progress("sizes", number, len(sizes))
        if options["constant_results"]:
            workload = _proportionate(data, base, size, progress)
        else:
            whole = whole or prepare(data, base, progress)
            workload = whole.first(size)
        audit = MatchAudit(workload, base.audited)
        for name in wanted:
            row = measure(name, workload, audit, base.moved, options["budget_s"], progress)
            rows.append(
                {
                    "experiment": "constant-results" if options["constant_results"] else "fixed-objects",
                    "variant": name,
                    "data": data.name,
                    "k_max": base.k_max,
                    "buffer_extra": base.buffer_extra,
                    "is_distinct": True,
                    **row,
                }
            )
    progress("sizes", len(sizes), len(sizes))
    return rows


def _proportionate(data: Dataset, base: MatchParameters, size: int, progress: Progress) -> MatchWorkload:
    """Take as many objects a subscription as the largest size has."""
    objects = max(1, base.objects * size // base.subscriptions)
    return prepare(data, replace(base, subscriptions=size, objects=objects), progress)
