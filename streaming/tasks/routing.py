"""Routing: converts rows of a feed to rows of blocks, each for one partition. Tasks of Spark do it first.

A batch of Arrow becomes one block, which is sent to its partitions as a whole or in parts. Invalid rows
are sent with the first partition, as text, to be written beside the results.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from feeds.schemas import BATCH_MS, BOOLEAN, SOURCE, TOP_K
from feeds.storage import open_resolved
from safe_region.scoring.idf import IdfTable
from streaming.arrays.blocks import Messages
from streaming.arrays.reading import read_messages, read_subscriptions
from streaming.arrays.validator import Refusals
from streaming.distribution import Distribution, has_replicas
from streaming.distribution.keywords import Replicated
from streaming.plan import Plan

MESSAGES, SUBSCRIPTIONS, REFUSED = "messages", "subscriptions", "refused"
SPREAD, FOUND = "spread", "found"
"""Messages for replicas to match, and the pairs that they have found."""
READ = "read"
"""The sources of the rows of a feed."""
FEEDBACK = "feedback"
"""The feedback that owners send to replicas after a batch."""
REBALANCED = "rebalanced"
"""Makes new partitions start with the state that a rebalancing has set aside, and retired ones end."""

ROUTED = pa.schema([("key", pa.int32()), ("kind", pa.string()), ("block", pa.binary())])
"""A block for the partition of a key."""
ROUTED_DDL = "key int, kind string, block binary"

_BLOCK_MAX = 20_000
"""Rows of a block, so that none is too large for a row of Spark."""

Routed = tuple[int, str, bytes]


def messages_router(plan: Plan) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function that makes blocks of messages: for owners, and for replicas if there are any.

    Both come from one reading of the feed. A stream that is read twice may give a batch other rows each
    time, and replicas would then match other messages than owners have.
    """
    mechanism = plan.make_distribution()

    def route(batch: pa.RecordBatch) -> Iterator[Routed]:
        latest_ms = batch[BATCH_MS][0].as_py() + plan.ahead_ms
        rows = batch.drop_columns([BATCH_MS])
        block, refusals = read_messages(rows, plan.frame, weights(plan.idf), latest_ms)
        yield from _refused(rows, refusals, MESSAGES)
        if len(block):
            yield from routed(mechanism, block)

    return _router(plan, MESSAGES, route)


def routed(mechanism: Distribution, block: Messages) -> Iterator[Routed]:
    """Yield blocks of messages for owners, and for replicas if there are any."""
    whole = cache(block.pack)  # packed once, for all partitions that receive the whole block
    for partition, rows in mechanism.route(block):
        yield partition, MESSAGES, whole() if rows is None else block.part(rows).pack()
    if isinstance(mechanism, Replicated):
        published = block.part(np.flatnonzero(block.is_retraction == 0))
        for partition, rows in mechanism.spread(published):
            yield partition, SPREAD, published.part(rows).pack()


def subscriptions_router(plan: Plan) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function that makes blocks of subscriptions. Only top-k ones have replicas."""
    kinds = (TOP_K,) if has_replicas(plan.mechanism) else (TOP_K, BOOLEAN)
    mechanism = plan.make_distribution()

    def route(batch: pa.RecordBatch) -> Iterator[Routed]:
        block, refusals = read_subscriptions(batch, plan.frame, weights(plan.idf), kinds)
        yield from _refused(batch, refusals, SUBSCRIPTIONS)
        for partition, part in mechanism.place(block) if len(block) else ():
            yield partition, SUBSCRIPTIONS, part.pack()

    return _router(plan, SUBSCRIPTIONS, route)


def _router(
    plan: Plan, feed: str, route: Callable[[pa.RecordBatch], Iterator[Routed]]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function over all batches of a task, which also emits the sources of their rows.

    After a rebalancing it also sends `REBALANCED` to all partitions, including the retired ones.
    """
    reminded = (*plan.keys, *plan.retired) if plan.moved else ()

    def all_of(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        sources: set[str] = set()
        for number, batch in enumerate(batches):
            if reminded and not number:
                columns = [reminded, [REBALANCED] * len(reminded), [b""] * len(reminded)]
                yield pa.record_batch(columns, schema=ROUTED)
            sources.update(pc.unique(batch[SOURCE]).to_pylist())
            rows = batch.drop_columns([SOURCE])
            for start in range(0, len(rows), _BLOCK_MAX):
                for partition, kind, block in route(rows.slice(start, _BLOCK_MAX)):
                    yield pa.record_batch([[plan.keys[partition]], [kind], [block]], schema=ROUTED)
        if sources:
            about = json.dumps({"feed": feed, "sources": sorted(sources)}).encode()
            yield pa.record_batch([[plan.keys[0]], [READ], [about]], schema=ROUTED)

    return all_of


def _refused(batch: pa.RecordBatch, refusals: Refusals, feed: str) -> Iterator[Routed]:
    """Yield invalid rows as lines of JSON."""
    if len(refusals.rows):
        rows = batch.take(pa.array(refusals.rows)).to_pylist()
        lines = [
            f'{{"feed": "{feed}", "reason": {json.dumps(reason)}, "row": {shown_row(row)}}}'
            for row, reason in zip(rows, refusals.reasons, strict=True)
        ]
        yield 0, REFUSED, "\n".join(lines).encode()


def shown_row(row: Mapping[str, Any]) -> str:
    """Return a row of a feed as JSON."""
    return json.dumps(row, default=_shown)


def _shown(value: Any) -> str:  # noqa: ANN401
    return value.hex() if isinstance(value, bytes) else str(value)


def read_weights(idf: str) -> IdfTable:
    """Return the weights that a job keeps."""
    system, path = open_resolved(idf)
    with system.open_input_stream(path) as file:
        return IdfTable.from_json(file.read().decode())


@cache
def weights(idf: str) -> Callable[[str], float]:
    """Return a function from a keyword to its weight; without a file each weight is 1."""
    if not idf:
        return _one
    return read_weights(idf).weight


def _one(_word: str) -> float:
    return 1.0
