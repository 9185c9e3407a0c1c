"""The log of a partition: what it has kept builds the same partition, and it stays small."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import Row
from pyspark.sql.streaming.tws_tester import TwsTester

from streaming.arrays.blocks import Subscriptions
from streaming.arrays.changes import from_bytes
from streaming.partition.window import WindowSize
from streaming.plan import Plan
from streaming.tasks import log as module
from streaming.tasks.log import chunks, compacted
from streaming.tasks.processor import CHANGES, PartitionProcessor
from streaming.tasks.routing import MESSAGES, SUBSCRIPTIONS
from tests.streaming.feed import AREA, RandomFeed
from tests.streaming.test_partition import read

PLAN = Plan("run", AREA, WindowSize(count=60), "hashing", 1, None, (0,), "sq-plus-tree")


def _blocks(seed: int, count: int) -> list[Subscriptions]:
    feed = RandomFeed(seed, booleans=True)
    found = []
    for _ in range(count):
        block, _ = read(feed.subscriptions(8), [])
        found.append(block)
    return found


def test_the_latest_subscriptions_without_an_end_are_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BLOCK_ROWS", 5)
    blocks = _blocks(3, 20)
    last: dict[int, tuple[int, int]] = {}
    for number, block in enumerate(blocks):
        for row, one in enumerate(block.subscription_id.tolist()):
            last[one] = (number, row)
    expected = {
        one: blocks[number].time_ms[row]
        for one, (number, row) in last.items()
        if not blocks[number].is_end[row]
    }
    alive = compacted(blocks)
    assert dict(zip(alive.subscription_id.tolist(), alive.time_ms.tolist(), strict=True)) == expected
    parts = list(chunks(alive))
    assert len(parts) > 2
    joined = Subscriptions.join(parts)
    assert joined.subscription_id.tolist() == alive.subscription_id.tolist()
    assert joined.high[joined.words].tolist() == alive.high[alive.words].tolist()
    assert joined.low[joined.words].tolist() == alive.low[alive.words].tolist()
    for part in (alive, *parts):
        assert len(np.unique(part.high)) == len(part.high) == len(np.unique(part.words))


def test_a_rewritten_log_builds_the_same_partition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_GARBAGE_MIN", 2)
    monkeypatch.setattr(module, "_BLOCK_ROWS", 5)
    feed = RandomFeed(5)
    kept = TwsTester(PartitionProcessor(PLAN, tmp_path / "kept"))
    lost = TwsTester(PartitionProcessor(PLAN, tmp_path / "lost"))
    batches = 0
    for number in range(12):
        few = {row["subscription_id"] % 40: row for row in feed.subscriptions(6)}
        started, messages = read(
            [{**row, "subscription_id": one} for one, row in few.items()], feed.messages(20)
        )
        rows = [
            Row(kind=kind, block=block.pack())
            for kind, block in ((SUBSCRIPTIONS, started), (MESSAGES, messages))
            if block is not None
        ]
        folder = PLAN.folder(tmp_path / "lost") / "0"
        if number % 3 == 2:
            (folder / "head").unlink()  # it must build the partition anew
        results = [
            [from_bytes(row.block).to_pylist() for row in one.test(0, rows) if row.kind == CHANGES]
            for one in (kept, lost)
        ]
        assert results[0] == results[1]
        batches += bool(results[0])
    assert batches > 6
    state = lost.peekMapState("subscriptions", 0)
    rows_kept = sum(len(Subscriptions.unpack(bytes(block))) for (block,) in state.values())
    assert rows_kept <= 2 * 8 + 6
    assert len(state) < 12
