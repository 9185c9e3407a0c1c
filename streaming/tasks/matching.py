"""The tasks of replicas: messages in, whom they may concern out, for owners to decide.

Replicas lie in memory between batches, as engines do. Before they match they hear what owners have said
behind the batch before, and say with what they have found which that was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.contracts import STANDING, handle_of
from index.batches import Ints
from index.tables.growth import rooms_of
from streaming.arrays.blocks import Messages, pack, unpack
from streaming.partition.applied import Found
from streaming.partition.options import MakeSubscriptionIndex
from streaming.partition.placing import Board
from streaming.partition.replicas import Heard, Replicas
from streaming.plan import Plan
from streaming.tasks.resident import LostError, Note, Resident
from streaming.tasks.routing import FOUND, ROUTED, SPREAD

_NOBODY = Heard(0, -1)


def board(plan: Plan, memory: Path) -> Board:
    """Return where owners of a job say how far their subscriptions reach."""
    return Board(plan.folder(memory) / "said")


def matcher(plan: Plan, memory: Path) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what matches the messages of a task, which may be of several partitions.

    What is not for replicas goes through.
    """

    def all_of(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        blocks: dict[int, list[Messages]] = {}
        for batch in batches:
            is_spread = pc.equal(batch["kind"], SPREAD)
            yield batch.filter(pc.invert(is_spread))
            for row in batch.filter(is_spread).to_pylist():
                blocks.setdefault(plan.keys.index(row["key"]), []).append(Messages.unpack(row["block"]))
        for partition, own in blocks.items():
            yield from _matched(plan, memory, partition, Messages.join(own))

    return all_of


def _matched(plan: Plan, memory: Path, partition: int, block: Messages) -> Iterator[pa.RecordBatch]:
    resident = Resident(plan.folder(memory) / f"replicas-{partition}")
    with resident.locked(), rooms_of(resident.room):
        make = MakeSubscriptionIndex(plan.subscription_index, plan.square, is_weighted=True)
        try:
            replicas = resident.take()
        except LostError:
            replicas = Replicas(partition, make)
        said = board(plan, memory)
        for owner in range(plan.partitions):
            said.hear(owner, plan.partitions, replicas)
        matches = replicas.match(block)
        heard = [replicas.heard.get(owner, _NOBODY) for owner in range(plan.partitions)]
        resident.keep(replicas, Note(0, b"", b""))
    objects = np.repeat(block.object_id, np.diff(matches.offsets))
    owners = (matches.ids - handle_of(STANDING, 0)) % plan.partitions
    for owner, one in enumerate(heard):
        mine = owners == owner
        found = FoundBlock(partition, one, Found(objects[mine], matches.ids[mine]), len(block))
        yield pa.record_batch([[plan.keys[owner]], [FOUND], [found.pack()]], schema=ROUTED)


class FoundBlock(NamedTuple):
    """What the replicas of a partition have found for an owner."""

    partition: int
    heard: Heard
    """What they had heard of the owner."""
    found: Found
    received: int
    """Messages that were matched."""

    def pack(self) -> bytes:
        """Write it."""
        about: Ints = np.array([self.partition, *self.heard, self.received], dtype=np.int64)
        return pack({"about": about, "object_id": self.found.object_id, "handle": self.found.handle})

    @classmethod
    def unpack(cls, data: bytes) -> FoundBlock:
        """Read it."""
        columns = unpack(data)
        partition, token, version, received = columns["about"].tolist()
        return cls(
            partition, Heard(token, version), Found(columns["object_id"], columns["handle"]), received
        )
