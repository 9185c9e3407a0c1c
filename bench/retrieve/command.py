"""`nearcast bench retrieve`: from options to rows."""

from __future__ import annotations

from typing import Any

from bench.datasets import SOURCES
from bench.reports import Progress, Row
from bench.retrieve.run import VARIANTS, Retrieve, RetrieveParameters
from bench.variants import chosen
from safe_region.scoring import Similarity

_NAMED_ONLY = "naive"


def run(
    extras: tuple[int, ...], names: tuple[str, ...], options: dict[str, Any], progress: Progress
) -> list[Row]:
    """Measure variants at each b.

    Raises
    ------
    ValueError
        If a variant is not known.
    DataMissingError
        If a file is not there.
    """
    wanted = chosen(names, VARIANTS)
    if not names:
        wanted.remove(_NAMED_ONLY)
    data = SOURCES[options["data"]]()
    parameters = RetrieveParameters(
        objects=options["objects"],
        k_max=options["k_max"],
        similarity=Similarity[options["similarity"].upper()],
        seed=options["seed"],
    )
    workload = Retrieve(data, parameters)
    rows: list[Row] = []
    for number, name in enumerate(wanted):
        progress("variants", number, len(wanted))
        measured = workload.measure(name, tuple(sorted(extras)), options["budget_s"], progress)
        rows += [{"experiment": "retrieve", "data": data.name, **row} for row in measured]
    progress("variants", len(wanted), len(wanted))
    return rows
