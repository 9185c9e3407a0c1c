"""Manifests: a batch is complete when its manifest exists, which lists its inputs and outputs.

batches/00000012.json   counts, sources of rows, the driver that wrote it, the time of completion
"""

from __future__ import annotations

import json
from typing import Any

from feeds.storage import Stored

BATCHES, CHANGES, REFUSED = "batches", "changes", "refused"
"""Folders of a result."""


class ResultError(Exception):
    """There are no results."""


def batch_name(number: int) -> str:
    """Return the name of a batch in folders and files."""
    return f"{number:08d}"


def folder_of(number: int, driver: str) -> str:
    """Return the folder of a driver's output for a batch, below a folder of the results."""
    return f"batch={batch_name(number)}/driver={driver}"


def manifest_of(out: Stored, number: int) -> Stored:
    """Return the manifest of a batch; if this file exists, the batch is complete."""
    return out / BATCHES / f"{batch_name(number)}.json"


def read_batch(out: Stored, number: int) -> dict[str, Any]:
    """Return the manifest of a batch that is complete."""
    found: dict[str, Any] = json.loads(manifest_of(out, number).read())
    return found


def complete_batches(out: Stored) -> list[int]:
    """Return the numbers of complete batches, in order. A rebalancing uses up a number."""
    names = (out / BATCHES).names()
    return sorted(int(name.removesuffix(".json")) for name in names if name[:1].isdecimal())


def batches(out: Stored) -> list[int]:
    """Return the numbers of complete batches, in order, of which there must be one.

    Raises
    ------
    ResultError
        If there is none.
    """
    found = complete_batches(out)
    if not found:
        raise ResultError(f"{out} has no complete batch of a job")
    return found


def feedback_files(out: Stored) -> dict[int, list[str]]:
    """Return the files of feedback that the last two manifests name, by batch."""
    return {number: read_batch(out, number)["feedback_files"] for number in complete_batches(out)[-2:]}
