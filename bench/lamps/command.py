"""`nearcast bench lamps`: from options to rows."""

from __future__ import annotations

from typing import Any

from bench.lamps.experiments import EXPERIMENTS, Bench
from bench.lamps.run import LampsParameters
from bench.lamps.structures import STRUCTURES
from bench.reports import Progress, Row
from safe_region.scoring import Similarity


def run(
    experiments: tuple[str, ...], names: tuple[str, ...], options: dict[str, Any], progress: Progress
) -> list[Row]:
    """Run experiments.

    Raises
    ------
    ValueError
        If an experiment or a variant is not known.
    DataMissingError
        If a file is not there.
    """
    known = [*EXPERIMENTS, *STRUCTURES]
    for experiment in experiments:
        if experiment not in known:
            raise ValueError(f"experiment is {experiment!r}, must be one of {', '.join(sorted(known))}")
    base = LampsParameters(
        subscriptions=options["subscriptions"],
        objects=options["objects"],
        ticks=options["ticks"],
        updates=options["updates"],
        expired_share=options["expired_share"],
        k_max=options["k_max"],
        similarity=Similarity[options["similarity"].upper()],
        warm_up_s=options["warm_up_s"],
        seed=options["seed"],
    )
    bench = Bench(
        options["data"],
        options["trajectories"],
        base.warm_up_s + base.ticks,
        base.seed,
        options["budget_s"],
    )
    bench.require_variants(names)
    rows: list[Row] = []
    for experiment in experiments:
        if experiment in STRUCTURES:
            rows += STRUCTURES[experiment](bench.data, base, progress)
            continue
        settings = EXPERIMENTS[experiment](base)
        chosen = [one for one in settings if not names or one.variant in names]
        rows += bench.rows(experiment, chosen, progress)
    return rows
