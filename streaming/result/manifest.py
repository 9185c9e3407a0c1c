"""Manifests: a batch is complete when its manifest is there, which says what it has read and written.

batches/00000012.json   counts, what was read of the feeds, who has written it, when it was complete
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
    """Return the folder, below one of results, of what a driver has written of a batch."""
    return f"batch={batch_name(number)}/driver={driver}"


def manifest_of(out: Stored, number: int) -> Stored:
    """Return the file that says that a batch is complete."""
    return out / BATCHES / f"{batch_name(number)}.json"


def read_batch(out: Stored, number: int) -> dict[str, Any]:
    """Return what is noted of a batch that is complete."""
    found: dict[str, Any] = json.loads(manifest_of(out, number).read())
    return found


def complete_batches(out: Stored) -> list[int]:
    """Return the numbers of batches that are complete, in order. A rebalancing takes one for itself."""
    names = (out / BATCHES).names()
    return sorted(int(name.removesuffix(".json")) for name in names if name[:1].isdecimal())


def batches(out: Stored) -> list[int]:
    """Return the same.

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
