"""The log of a partition's replicas in Spark's state: the feedback from which they follow.

The log has a block for each owner and batch with feedback, in order. When most of its rows are out of
date it is compacted to the last row of each subscription that still has a replica here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from index.batches import Ints
from streaming.partition.replicas import Feedback, Placements, Replicas

_HEAD_DDL = "version long, next_number long, logged long"
_GARBAGE_MIN = 10_000
"""The number of rows, or else half of them, that may be out of date."""
_BLOCK_ROWS = 50_000


class ReplicaLog:
    """The log of the replicas of one partition.

    Parameters
    ----------
    handle
        The handle of Spark's state.
    """

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._head = handle.getValueState("replicas_head", _HEAD_DDL)
        self._blocks = handle.getMapState("replicas_blocks", "number long", "block binary")

    def version(self) -> int:
        """Return the number of batches with feedback."""
        kept = self._head.get()
        return 0 if kept is None else int(kept[0])

    def feedback(self) -> Iterator[Feedback]:
        """Yield the feedback of owners, in order."""
        for _, block in self._sorted():
            yield Feedback.unpack(block)

    def append(self, version: int, blocks: Sequence[bytes], replicas: Replicas, owners: int) -> None:
        """Log the feedback of a batch.

        Parameters
        ----------
        version
            The number of batches with feedback, including this one.
        blocks
            The feedback of the batch.
        replicas
            The replicas after the batch.
        owners
            The number of owners.
        """
        kept = self._head.get()
        _, number, logged = (0, 0, 0) if kept is None else tuple(map(int, kept))
        for block in blocks:
            self._blocks.updateValue((number,), (block,))
            number += 1
            logged += len(Feedback.unpack(block).placements)
        if logged - len(replicas) > max(_GARBAGE_MIN, len(replicas)):
            number, logged = self._compact(number, replicas.number, owners)
        self._head.update((version, number, logged))

    def clear(self) -> None:
        """Forget everything."""
        self._head.clear()
        self._blocks.clear()

    def _compact(self, number: int, partition: int, owners: int) -> tuple[int, int]:
        """Compact the log; return the number of the next block, and the number of rows."""
        kept = self._sorted()
        found = list(compacted([Feedback.unpack(block) for _, block in kept], partition, owners))
        for old, _ in kept:
            self._blocks.removeKey((old,))
        for block in found:
            self._blocks.updateValue((number,), (block.pack(),))
            number += 1
        return number, sum(len(block.placements) for block in found)

    def _sorted(self) -> list[tuple[int, bytes]]:
        return sorted((int(key[0]), bytes(value[0])) for key, value in self._blocks.iterator())


def compacted(log: Sequence[Feedback], partition: int, owners: int) -> Iterator[Feedback]:
    """Yield blocks of limited size that have the same effect as a log of one partition's feedback."""
    for owner in range(owners):
        own = [block for block in log if block.owner == owner]
        if not own:
            continue
        first = max((place for place, block in enumerate(own) if block.is_whole), default=0)
        rows = Placements.join([block.placements for block in own[first:]])
        _, last = np.unique(rows.handle[::-1], return_index=True)
        alive: Ints = np.sort(len(rows) - 1 - last)
        alive = alive[(rows.mask[alive] >> partition) & 1 == 1]
        for start in range(0, max(1, len(alive)), _BLOCK_ROWS):
            part = rows.part(alive[start : start + _BLOCK_ROWS]).lean()
            yield Feedback(owner, own[-1].source, part, is_whole=start == 0)
