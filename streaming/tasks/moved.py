"""What is put aside when a job is rebalanced, in a folder of its checkpoint, until partitions have begun.

messages/*.parquet                    the window, as each partition has logged it
subscriptions/partition=3/*.parquet   blocks for each of the new partitions
head.json                             numbers that all partitions have in common
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq

from streaming.plan import Plan
from streaming.tasks.log import Begun, Head, LoggedMessages

MESSAGES, SUBSCRIPTIONS, HEAD = "messages", "subscriptions", "head.json"


def begun(plan: Plan, partition: int) -> Begun:
    """Return what a partition begins with."""
    folder = Path(plan.moved)
    messages = pq.read_table(folder / MESSAGES).sort_by("version").drop_columns("version")
    own = folder / SUBSCRIPTIONS / f"partition={partition}"
    blocks = pq.read_table(own, columns=["count", "block"]).to_pylist() if own.exists() else []
    count = sum(one["count"] for one in blocks)
    return Begun(
        Head(**json.loads((folder / HEAD).read_text()), logged=count, subscriptions=count),
        [LoggedMessages(**row) for row in messages.to_pylist()],
        [one["block"] for one in blocks],
    )
