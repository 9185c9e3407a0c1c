"""`nearcast bench recovery`: from options to rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.recovery.run import measure
from bench.recovery.workload import RecoveryParameters
from bench.reports import Progress, Row


def run(
    sizes: tuple[int, ...], folder: Path | None, options: dict[str, Any], progress: Progress
) -> list[Row]:
    """Measure recovery at each number of subscriptions, and as many objects.

    Raises
    ------
    DataMissingError
        If a file is not there.
    """
    rows: list[Row] = []
    for number, size in enumerate(sorted(sizes)):
        progress("sizes", number, len(sizes))
        parameters = RecoveryParameters(objects=size, subscriptions=size, **options)
        row = measure(parameters, folder, progress)
        given = {"data": parameters.data, "subscriptions": size, "objects": size}
        rows.append({"experiment": "recovery", "variant": "sqlite", **given, **row})
    progress("sizes", len(sizes), len(sizes))
    return rows
