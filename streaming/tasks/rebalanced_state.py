"""The state that a rebalancing sets aside in a folder of the checkpoint, until partitions have started.

messages/*.parquet                    the window, as each partition has logged it
subscriptions/partition=3/*.parquet   blocks for each of the new partitions
head.json                             numbers that all partitions have in common
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow.parquet as pq
from pyarrow.fs import FileType

from feeds.storage import open_resolved
from streaming.plan import Plan
from streaming.tasks.log import Head, InitialState, LoggedMessages

MESSAGES, SUBSCRIPTIONS, HEAD = "messages", "subscriptions", "head.json"


def initial_state(plan: Plan, partition: int) -> InitialState:
    """Return the initial state of a partition."""
    system, folder = open_resolved(plan.moved)
    messages = pq.read_table(f"{folder}/{MESSAGES}", filesystem=system)
    rows = messages.sort_by("version").drop_columns("version").to_pylist()
    own = f"{folder}/{SUBSCRIPTIONS}/partition={partition}"
    blocks: list[dict[str, Any]] = []
    if system.get_file_info(own).type == FileType.Directory:
        blocks = pq.read_table(own, filesystem=system, partitioning=None).to_pylist()
    count = sum(row["count"] for row in blocks)
    with system.open_input_stream(f"{folder}/{HEAD}") as file:
        head = Head(**json.loads(file.read()), logged=count, subscriptions=count)
    return InitialState(head, [LoggedMessages(**row) for row in rows], [row["block"] for row in blocks])
