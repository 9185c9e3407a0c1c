"""Compiles kernels before the first batch; else each of its tasks would compile them, without notice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from feeds.hosts.slots import on_all_slots
from feeds.schemas import BOOLEAN, MESSAGES, PUBLISH, RETRACT, SUBSCRIBE, SUBSCRIPTIONS, TOP_K
from safe_region.jit.ahead import Report, compile_ahead
from streaming.arrays.blocks import Messages, Subscriptions
from streaming.arrays.reading import SIMILARITIES, read_messages, read_subscriptions
from streaming.distribution import MECHANISMS, Sample
from streaming.plan import Plan
from streaming.tasks.local_runner import LocalRunner

_WORDS = ("a", "b", "c", "d")
_BATCH_MS = 1_000
_BATCHES = 4
_MESSAGES = 12


def ready_kernels(plan: Plan, report: Report) -> int:
    """Compile all kernels that the job needs to disk; return how many were missing."""
    return compile_ahead(lambda: _run(plan), report)


def compile_on_hosts(spark: SparkSession, plan: Plan) -> None:
    """Compile all kernels on each host: one of its workers does, while the others wait for it."""

    def compiled(_: Iterable[Any]) -> Iterator[int]:
        yield ready_kernels(plan, lambda _done, _total: None)

    on_all_slots(spark, compiled, None)


def _run(plan: Plan) -> None:
    """Run a small job that calls every kernel that a large job calls."""
    frame = plan.frame

    def blocks(batch: int) -> tuple[Subscriptions | None, Messages]:
        rows = pa.RecordBatch.from_pylist(_messages(plan, batch), MESSAGES)
        messages = read_messages(rows, frame, _weigh)[0]
        started = None
        if batch in {0, 2}:
            rows = pa.RecordBatch.from_pylist(_subscriptions(plan), SUBSCRIPTIONS)
            started = Subscriptions.unpack(read_subscriptions(rows, frame, _weigh)[0].pack())
        return started, Messages.unpack(messages.pack())

    subscriptions, messages = blocks(0)
    assert subscriptions is not None  # noqa: S101 - of the first batch there are
    chosen = MECHANISMS[plan.mechanism].choose(
        plan.partitions, Sample(subscriptions, messages), plan.first_level
    )
    with TemporaryDirectory(prefix="nearcast-") as folder:
        # Without what a rebalancing has set aside, which is as large as the job.
        small = replace(plan, distribution=chosen.encoded(), moved="", retired=())
        runner = LocalRunner(small, Path(folder))
        for batch in range(_BATCHES):
            runner.apply(*blocks(batch))


def _weigh(word: str) -> float:
    return 1.0 + ord(word[0]) / 100.0


def _place(plan: Plan, number: int) -> dict[str, float]:
    area = plan.area
    lon = area.lon_min + (area.lon_max - area.lon_min) * (number % 7 + 0.5) / 8
    return {"lon": lon, "lat": area.lat_min + (area.lat_max - area.lat_min) * (number % 5 + 0.5) / 6}


def _messages(plan: Plan, batch: int) -> list[dict[str, Any]]:
    first = batch * _MESSAGES
    rows: list[dict[str, Any]] = [
        {
            "action": PUBLISH,
            "object_id": number,
            "time_ms": _BATCH_MS * batch + number,
            **_place(plan, number),
            "keywords": [_WORDS[number % 4], _WORDS[number // 4 % 4]],
            "ttl_ms": _BATCH_MS if number % 3 else None,
        }
        for number in range(first, first + _MESSAGES)
    ]
    if batch:
        gone = {"action": RETRACT, "object_id": first - 1, "time_ms": _BATCH_MS * (batch + 1)}
        rows.append(gone)
    return rows


def _subscriptions(plan: Plan) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [
        {
            "action": SUBSCRIBE,
            "subscription_id": number,
            "time_ms": 0,
            "kind": TOP_K,
            **_place(plan, number),
            "keywords": [_WORDS[number % 4], "b"],
            "k": 1 + number % 3,
            "alpha": 0.5,
            "similarity": similarity,
        }
        for number, similarity in enumerate([*SIMILARITIES] * 2)
    ]
    area = plan.area
    shapes: tuple[dict[str, Any], ...] = ({**_place(plan, 1), "radius_m": 5_000.0}, {"bounds": [*area]})
    for number, shape in enumerate(shapes):
        about: dict[str, Any] = {"subscription_id": 100 + number, "time_ms": 0, "kind": BOOLEAN}
        rows.append({"action": SUBSCRIBE, **about, "expression": "a AND NOT c OR b", **shape})
    return rows
