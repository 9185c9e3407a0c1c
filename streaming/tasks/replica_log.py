"""What Spark's state keeps of the replicas of a partition: the feedback from which they follow.

A block for each owner and batch that brought some, in order. When most of its rows are out of date it is
written again, with the last row of each subscription that still has a replica here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from index.batches import Ints
from streaming.partition.replicas import Feedback, Placements, Replicas

_HEAD_DDL = "version long, next_number long, logged long"
_GARBAGE_MIN = 10_000
"""So many rows, or half of them, may be out of date."""
_BLOCK_ROWS = 50_000


class ReplicaLog:
    """The log of the replicas of one partition.

    Parameters
    ----------
    handle
        Spark's.
    """

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._head = handle.getValueState("replicas_head", _HEAD_DDL)
        self._blocks = handle.getMapState("replicas_blocks", "number long", "block binary")

    def version(self) -> int:
        """Return how many batches have brought feedback."""
        kept = self._head.get()
        return 0 if kept is None else int(kept[0])

    def feedback(self) -> Iterator[Feedback]:
        """Yield what owners have sent, in order."""
        for _, block in self._sorted():
            yield Feedback.unpack(block)

    def append(self, version: int, blocks: Sequence[bytes], replicas: Replicas, owners: int) -> None:
        """Keep what a batch has brought, behind which there are these replicas.

        Parameters
        ----------
        version
            How many batches have brought feedback, with this one.
        blocks
            What it has brought.
        replicas
            As they are behind it.
        owners
            How many there are.
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
        """Write the log again; return the number of the next block, and how many rows there are."""
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
    """Yield what has the same effect as a log of one partition's feedback, in blocks of some size."""
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
