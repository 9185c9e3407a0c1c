"""The log of a partition: what it has kept builds the same partition, and it stays small."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import Row
from pyspark.sql.streaming.tws_tester import TwsTester, _InMemoryMapState

from streaming.arrays.blocks import Subscriptions
from streaming.arrays.changes import from_bytes
from streaming.plan import Plan
from streaming.tasks import log as module
from streaming.tasks.answers import CHANGES
from streaming.tasks.log import Head, Log, LoggedMessages, chunks, compacted
from streaming.tasks.processor import PartitionProcessor
from streaming.tasks.routing import MESSAGES, SUBSCRIPTIONS
from streaming.window_size import WindowSize
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


@pytest.mark.parametrize("window", [WindowSize(count=60), WindowSize(duration_ms=4_000)])
def test_batches_behind_the_window_are_removed_without_reading_all_batches(
    window: WindowSize, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = RandomFeed(7)
    tester = TwsTester(PartitionProcessor(replace(PLAN, window=window), tmp_path))
    append, get_value, iterator = Log.append, _InMemoryMapState.getValue, _InMemoryMapState.iterator
    latest_ms: dict[int, int] = {}
    calls = Counter[str]()

    def appended(
        log: Log, head: Head, messages: LoggedMessages | None, subscriptions: bytes | None
    ) -> None:
        if messages is not None:
            latest_ms[head.version] = messages.latest_ms
            for version in [one for one, ms in latest_ms.items() if ms < messages.first_ms]:
                del latest_ms[version]
        with monkeypatch.context() as patched:
            patched.setattr(_InMemoryMapState, "getValue", counted("values", get_value))
            patched.setattr(_InMemoryMapState, "iterator", counted("maps", iterator))
            append(log, head, messages, subscriptions)

    def counted(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def count(*arguments: Any) -> Any:
            calls[name] += 1
            return method(*arguments)

        return count

    monkeypatch.setattr(Log, "append", appended)
    most = 0
    for number in range(40):
        # Some batches have no messages.
        started, messages = read(feed.subscriptions(3), feed.messages(20) if number % 3 else [])
        blocks = {SUBSCRIPTIONS: started, MESSAGES: messages}
        if number == 20:
            tester.deleteState("first", 0)  # as an earlier version of the program leaves it
        tester.test(
            0, [Row(kind=kind, block=one.pack()) for kind, one in blocks.items() if one is not None]
        )
        for name in ("messages", "spans"):
            assert tester.peekMapState(name, 0).keys() == {(version,) for version in latest_ms}
        most = max(most, len(latest_ms))
    assert 2 < most < 15
    assert calls["maps"] == 2
    assert calls["values"] <= 2 * 40


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
