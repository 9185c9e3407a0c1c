"""`nearcast bench publish`: from options to rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.publish.run import VARIANTS, PublishParameters, measure
from bench.reports import Progress, Row
from bench.variants import chosen


def run(
    batches: tuple[int, ...],
    names: tuple[str, ...],
    folder: Path | None,
    options: dict[str, Any],
    progress: Progress,
) -> list[Row]:
    """Measure variants at each size of a request.

    Raises
    ------
    ValueError
        If a variant is not known.
    DataMissingError
        If a file is not there.
    """
    parameters = PublishParameters(**options)
    wanted = [(name, batch) for name in chosen(names, VARIANTS) for batch in batches]
    workload = parameters.workload()
    rows: list[Row] = []
    for number, (name, batch) in enumerate(wanted):
        progress("runs", number, len(wanted))
        row = measure(name, batch, workload, parameters, folder, progress)
        is_pump = name == "pump"
        given = {
            "data": parameters.data,
            "objects": parameters.objects,
            "objects_per_request": batch,
            "subscriptions": parameters.subscriptions if is_pump else 0,
            "publishers": parameters.publishers if is_pump else 1,
        }
        rows.append({"experiment": "publish", "variant": name, **given, **row})
    progress("runs", len(wanted), len(wanted))
    return rows
