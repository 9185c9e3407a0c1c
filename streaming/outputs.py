"""The outputs of a job belong to its checkpoint, by an id that all of them have.

Batches are numbered from 0 in each checkpoint, and a batch that an output has is not written again. The
job of another checkpoint would therefore lose its first batches, and a job that continues with another
output would lack its earlier ones.
"""

from __future__ import annotations

import json
import secrets

from pyspark.sql import SparkSession

from feeds.storage import StorageError, Stored
from streaming.parameters import StreamParameters
from streaming.plan import PlanError
from streaming.planning import COMMITS, SPARK, last_of
from streaming.result.manifest import complete_batches
from streaming.result.updates import owner_of

_FILE = "job.json"
_ID_BYTES = 8


def bind_outputs(parameters: StreamParameters, spark: SparkSession) -> None:
    """Bind the outputs of a new job to its checkpoint; require that those of another job belong to it.

    Outputs of earlier versions have no id: they are bound if output and checkpoint both have batches.

    Raises
    ------
    PlanError
        If an output has batches of another job, or the folder of results lacks those of this job.
    """
    checkpoint = Stored(spark, parameters.checkpoint)
    out = Stored(spark, parameters.out, is_shared=True)
    job = _bound(checkpoint, secrets.token_hex(_ID_BYTES))
    last = last_of(checkpoint / SPARK / COMMITS)
    is_new = last < 0
    is_bound, is_empty = (out / _FILE).exists(), not complete_batches(out)
    if is_empty and not is_bound and not is_new:
        raise PlanError(
            f"{out} lacks the results of the batches up to {last} of {checkpoint}: continue the job with "
            "the --out that it had, or start another one with another --checkpoint"
        )
    if (is_new and not is_bound and not is_empty) or _bound(out, job) != job:
        raise PlanError(
            f"{out} has results of another job than {checkpoint}: continue that job with its own "
            "--checkpoint, or choose another --out"
        )
    updates = parameters.updates
    if updates is not None and owner_of(updates, job, is_new=is_new) != job:
        raise PlanError(
            f"{updates} has changes of another job than {checkpoint}: continue that job with its own "
            f"--checkpoint, choose another --updates, or delete {updates.feed} and {updates.feed}:*"
        )


def _bound(folder: Stored, job: str) -> str:
    """Return the id that a folder has; give it the id `job` if it has none."""
    file = folder / _FILE
    if not file.exists():
        try:
            file.create(json.dumps({"job": job}).encode() + b"\n")
        except StorageError:
            if not file.exists():
                raise
    found: str = json.loads(file.read())["job"]
    return found
