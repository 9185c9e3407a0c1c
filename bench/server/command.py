"""`nearcast bench server`: from options to rows."""

from __future__ import annotations

import asyncio
from typing import Any

import uvloop

from bench.datasets import SOURCES, Dataset
from bench.reports import Progress, Row
from bench.retrieve.run import Retrieve, RetrieveParameters
from bench.server.processes import require_files
from bench.server.run import VARIANTS, ServerParameters, measure
from bench.server.soak import soak
from bench.variants import chosen
from index.catalogue import DEFAULT_OBJECT_INDEX
from server.engine import CostModel

_RETRIEVE_S = 30.0


def run(sizes: tuple[int, ...], options: dict[str, Any], progress: Progress) -> list[Row]:
    """Measure each number of devices.

    Raises
    ------
    ProcessError
        If a process does not start, or more devices are asked for than files may be open.
    DataMissingError
        If a file is not there.
    """
    require_files(max(sizes))
    data = SOURCES[options["data"]]()
    soak_s = options["soak_s"]
    variants = chosen(options["names"], VARIANTS)
    parameters = ServerParameters(
        objects=options["objects"],
        k_max=options["k_max"],
        seconds=options["seconds"],
        rounds=options["rounds"],
        seed=options["seed"],
        variants=variants,
    )
    common = {"experiment": "server", "data": data.name}
    # One loop for all measurements: gRPC's poller goes on telling the first one what happens.
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        if soak_s is not None:
            return [common | runner.run(soak(data, max(sizes), soak_s, parameters, progress))]
        allowed = _allowed(data, options, progress) if "fleet" in variants else {}
        rows: list[Row] = []
        for devices in sorted(sizes):
            found = runner.run(measure(data, devices, parameters, progress))
            rows.extend(common | row | _beside(row, allowed) for row in found)
    return rows


def _allowed(data: Dataset, options: dict[str, Any], progress: Progress) -> Row:
    """Measure what retrieval alone allows."""
    wanted = RetrieveParameters(objects=options["objects"], k_max=options["k_max"], seed=options["seed"])
    extra = CostModel().extra_max
    (row,) = Retrieve(data, wanted).measure(DEFAULT_OBJECT_INDEX, (extra,), _RETRIEVE_S, progress)
    return row


def _beside(row: Row, allowed: Row) -> Row:
    """Compare re-anchors with retrieval alone: one subscription a call, and all in one."""
    if "reanchors_per_s" not in row:
        return {}
    single = 1e6 / allowed["us_per_subscription_mean"]
    batch = 1e6 / allowed["us_per_subscription_batch"]
    return {
        "retrieve_per_s": round(single),
        "retrieve_batch_per_s": round(batch),
        "reanchors_ratio": round(row["reanchors_per_s"] / single, 3),
        "reanchors_batch_ratio": round(row["reanchors_per_s"] / batch, 3),
        "lists_audited": row["lists_audited"] + allowed["lists_audited"],
        "mismatches": row["mismatches"] + allowed["mismatches"],
    }
