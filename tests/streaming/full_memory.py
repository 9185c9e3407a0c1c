"""A program: a job of three partitions, whose memory is almost full before each batch.

`python -m tests.streaming.full_memory FOLDER`, with a small file system in memory mounted at the folder.
A task either succeeds or raises `MemoryFullError`, and is repeated when memory is free; the results are
those of the definition. A task that writes to a page without memory is killed, and so is this program.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

from index.tables import growth
from streaming.result.audit import Definition
from streaming.tasks import batch, local_runner, shared_arrays, shared_window
from streaming.tasks.processor import PartitionProcessor
from streaming.tasks.shared_arrays import MemoryFullError
from streaming.window_size import WindowSize
from tests.streaming.feed import FRAME, RandomFeed
from tests.streaming.test_partition import WEIGHTS, read, require_same
from tests.streaming.test_replicas import Cluster, follow

_BATCHES = 16
_FREE_MAX = 400_000
"""At most as many bytes are free when memory is full."""
_BLOCK = bytes(1 << 20)


class _Filler:
    """A file that leaves little memory free."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "filler"
        self.found_full = 0

    def fill(self, free_bytes: int) -> None:
        """Leave some bytes free."""
        found = os.statvfs(self._path.parent)
        left = found.f_bavail * found.f_frsize - free_bytes
        with self._path.open("wb") as file:
            while left > 0:
                left -= file.write(_BLOCK[:left])

    def empty(self) -> None:
        """Leave the rest free, too."""
        self._path.unlink(missing_ok=True)


def _repeating(filler: _Filler, memory: Path) -> type[PartitionProcessor]:
    """Return a processor that repeats tasks for which there was too little memory, when there is more."""

    class Repeating(PartitionProcessor):
        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
            given = list(rows)
            try:
                return iter(list(super().handleInputRows(key, iter(given), timerValues)))
            except MemoryFullError as error:
                if not str(error).startswith(f"{memory}/"):
                    raise
                filler.found_full += 1
                filler.empty()
                return iter(list(super().handleInputRows(key, iter(given), timerValues)))

    return Repeating


def main(folder: Path) -> str:
    """Apply batches; return how many of them did not find enough memory."""
    chance, feed, filler = random.Random(3), RandomFeed(3, WEIGHTS), _Filler(folder)
    size = WindowSize(count=1_000)
    memory = folder / "memory"
    memory.mkdir(mode=0o700)
    with patch.object(local_runner, "PartitionProcessor", _repeating(filler, memory)):
        cluster = Cluster(memory, "hashing", size, 3)
    definition = Definition(FRAME, size, lambda word: WEIGHTS.get(word, 1.0))
    lists: dict[int, dict[int, float]] = {}
    for _ in range(_BATCHES):
        subscriptions, messages = feed.subscriptions(20), feed.messages(200)
        filler.fill(chance.randrange(_FREE_MAX))
        follow(lists, cluster.apply(*read(subscriptions, messages)))
        filler.empty()
        definition.apply(subscriptions, messages)
        require_same(lists, definition.results(definition.subscriptions))
    return f"{filler.found_full} of {_BATCHES}\n"


if __name__ == "__main__":
    with (
        patch.object(growth, "_LARGE_BYTES", 1_000),
        patch.object(growth, "affordable_bytes", lambda: 1 << 24),
        patch.object(shared_arrays, "_LARGE_BYTES", 1_000),
        patch.object(shared_arrays, "_SPARE_BYTES", 0),
        patch.object(shared_window, "_MESSAGE_BYTES", 0),
        patch.object(batch, "_BUFFERED_BYTES", 0),
        patch.object(batch, "_SUBSCRIPTION_BYTES", 0),
    ):
        sys.stdout.write(main(Path(sys.argv[1])))
