"""`nearcast bench silence`: from options to rows."""

from __future__ import annotations

from typing import Any

from bench.datasets import SOURCES
from bench.journeys import gps_offsets, road_offsets
from bench.reports import Progress, Row
from bench.silence.run import measure
from bench.silence.variants import VARIANTS
from bench.silence.wire_sizes import wire_sizes
from bench.silence.workload import SilenceParameters, prepare
from bench.variants import chosen
from safe_region.scoring import Similarity


def run(names: tuple[str, ...], options: dict[str, Any], progress: Progress) -> list[Row]:
    """Run variants on one workload.

    Raises
    ------
    ValueError
        If a variant is not known, or no taxi trace is as long as the run.
    DataMissingError
        If a file is not there.
    """
    wanted = chosen(names, VARIANTS)
    data = SOURCES[options["data"]]()
    parameters = SilenceParameters(
        devices=options["devices"],
        objects=options["objects"],
        seconds=options["seconds"],
        arrivals_per_s=options["arrivals_per_s"],
        expiries_per_s=options["expiries_per_s"],
        k_max=options["k_max"],
        similarity=Similarity[options["similarity"].upper()],
        seed=options["seed"],
    )
    offsets_m = (
        gps_offsets(parameters.seconds)
        if options["trajectories"] == "gps"
        else road_offsets(parameters.seconds, parameters.seed)
    )
    workload = prepare(data, offsets_m, parameters)
    sizes = wire_sizes(data, workload.objects, parameters.seed)
    rows: list[Row] = []
    for number, name in enumerate(wanted):
        progress("variants", number, len(wanted))
        row = measure(VARIANTS[name], workload, parameters, sizes, options["budget_s"], progress)
        rows.append(
            {
                "experiment": "silence",
                "data": data.name,
                "trajectories": options["trajectories"],
                **row,
            }
        )
    progress("variants", len(wanted), len(wanted))
    return rows
