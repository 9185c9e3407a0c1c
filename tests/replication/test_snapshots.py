"""Snapshots of a node's store whose callers leave while a snapshot is written."""

from __future__ import annotations

import asyncio
import threading
from contextlib import closing

import pytest

from nearcast.errors import RefusedError
from server import command as c
from server.replication.snapshots import Snapshots
from server.store import SqliteStore, check
from tests.replication.local_node import FRAME
from tests.replication.memory_log import MemoryLog
from tests.replication.test_following import an_object, running
from tests.replication.test_nodes import until

pytestmark = pytest.mark.usefixtures("without_fsync")


class SlowStore(SqliteStore):
    """A store whose snapshots are written when the test lets them."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.let = threading.Event()
        self.begun_count = self.ended_count = 0

    def write_snapshot(self, target):
        self.begun_count += 1
        assert self.let.wait(60.0)
        super().write_snapshot(target)
        self.ended_count += 1


async def test_a_snapshot_whose_caller_leaves_is_over_before_the_next_one_begins(tmp_path):
    with closing(SlowStore(tmp_path / "node.db", FRAME)) as store:
        async with running(MemoryLog(), store) as loop:
            await loop.execute(c.Publish((an_object(),)))
            snapshots = Snapshots(loop)
            leaving = asyncio.create_task(snapshots.made().__aenter__())
            try:
                await until(lambda: store.begun_count)
                for _ in range(3):  # the client leaves, then the server stops
                    leaving.cancel()
                    await asyncio.sleep(0)
                assert not leaving.done(), "the thread still has the file"
                with pytest.raises(RefusedError, match="one at a time"):
                    await snapshots.made().__aenter__()
            finally:
                store.let.set()
            with pytest.raises(asyncio.CancelledError):
                await leaving
            assert store.ended_count == 1
            assert not list(tmp_path.glob("*.snapshot*"))
            async with snapshots.made() as found:
                assert check(found.path, lambda *_: None) == []
                assert found.facts.offset == loop.applier.offset
