"""The stateful operator of replicas: reads messages and feedback, and emits candidate pairs for owners.

The state holds the feedback that owners have sent (`ReplicaLog`), from which the replicas follow. The
replicas lie in memory (`shared_arrays`), with their version. Within a batch, feedback, which is of the
batch before, is applied first. Rows that are not for replicas pass through.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from engine.contracts import STATIONARY, handle_of
from index.batches import Ints
from index.tables.growth import rooms_of
from streaming.arrays.blocks import Messages, pack, unpack
from streaming.partition.applied import Found
from streaming.partition.replicas import NOBODY, Feedback, OwnerVersion, Replicas
from streaming.plan import Plan
from streaming.tasks.replica_log import ReplicaLog
from streaming.tasks.routing import FEEDBACK, FOUND, SPREAD
from streaming.tasks.shared_arrays import LostError, Note, SharedArrays


class ReplicaProcessor(StatefulProcessor):
    """Matches messages at replicas.

    Parameters
    ----------
    plan
        The plan of the job.
    memory
        A folder on a file system in memory, for replicas.
    """

    def __init__(self, plan: Plan, memory: Path) -> None:
        self._plan = plan
        self._memory = memory

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self._log = ReplicaLog(handle)

    def handleInputRows(  # noqa: N802
        self,
        key: Any,  # noqa: ANN401
        rows: Iterator[Row],
        timerValues: Any,  # noqa: ANN401, ARG002, N803
    ) -> Iterator[Row]:
        """Apply a batch to the replicas of a partition."""
        feedback: list[bytes] = []
        messages: list[Messages] = []
        for row in rows:
            if row.kind == FEEDBACK:
                feedback.append(bytes(row.block))
            elif row.kind == SPREAD:
                messages.append(Messages.unpack(bytes(row.block)))
            else:
                yield Row(key=key[0], kind=row.kind, block=row.block)
        if key[0] not in self._plan.keys:  # a key from before the job was rebalanced
            self._log.clear()
        elif feedback or messages:
            # A repeated task may deliver the same blocks in another order.
            yield from self._matched(self._plan.keys.index(key[0]), sorted(feedback), messages)

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def _matched(
        self, partition: int, feedback: Sequence[bytes], messages: Sequence[Messages]
    ) -> Iterator[Row]:
        shared = SharedArrays(self._plan.folder(self._memory) / f"replicas-{partition}")
        version, digest = self._log.version(), _digest(feedback)
        with shared.locked(), rooms_of(shared.room):
            replicas = self._taken(shared, partition, version, digest)
            began_s = time.perf_counter()
            for block in feedback:
                replicas.apply(Feedback.unpack(block), self._plan.partitions)
            found = self._found(replicas, Messages.join(messages), began_s) if messages else []
            version += bool(feedback)
            shared.keep(replicas, Note(version, digest, b""))
        if feedback:
            self._log.append(version, feedback, replicas, self._plan.partitions)
        for owner, pairs in found:
            yield Row(key=self._plan.keys[owner], kind=FOUND, block=pairs.pack())

    def _taken(self, shared: SharedArrays, partition: int, version: int, digest: bytes) -> Replicas:
        """Return the replicas as they were after the last batch: from memory, or else from the log.

        If they have already applied this batch's feedback, they may apply it again.
        """
        note = shared.note()
        if note is not None and (
            note.version == version or (note.version, note.digest) == (version + 1, digest)
        ):
            with suppress(LostError):
                return cast("Replicas", shared.take())
        shared.discard()
        shared.discard_outdated()
        replicas = Replicas(partition, self._plan.engine_options().weighted_index)
        for block in self._log.feedback():
            replicas.apply(block, self._plan.partitions)
        return replicas

    def _found(self, replicas: Replicas, block: Messages, began_s: float) -> list[tuple[int, FoundBlock]]:
        """Return for each owner the pairs found for it, even if there are none."""
        owner_count = self._plan.partitions
        matches = replicas.match(block)
        match_us = round((time.perf_counter() - began_s) * 1e6)
        objects = np.repeat(block.object_id, np.diff(matches.offsets))
        owners = (matches.ids - handle_of(STATIONARY, 0)) % owner_count
        blocks = []
        for owner in range(owner_count):
            mine = owners == owner
            last_seen = replicas.versions.get(owner, NOBODY)
            found = Found(objects[mine], matches.ids[mine])
            blocks.append((owner, FoundBlock(replicas.number, last_seen, found, len(block), match_us)))
        return blocks


class FoundBlock(NamedTuple):
    """The pairs that the replicas of a partition have found for an owner."""

    partition: int
    last_seen: OwnerVersion
    """The last feedback of the owner that the replicas have."""
    found: Found
    received: int
    """The number of messages that were matched."""
    match_us: int
    """The time that the replicas took for the batch."""

    def pack(self) -> bytes:
        """Return it as bytes."""
        numbers = [self.partition, *self.last_seen, self.received, self.match_us]
        about: Ints = np.array(numbers, dtype=np.int64)
        return pack({"about": about, "object_id": self.found.object_id, "handle": self.found.handle})

    @classmethod
    def unpack(cls, data: bytes) -> FoundBlock:
        """Read it from bytes."""
        columns = unpack(data)
        partition, token, version, received, match_us = columns["about"].tolist()
        found = Found(columns["object_id"], columns["handle"])
        return cls(partition, OwnerVersion(token, version), found, received, match_us)


def _digest(blocks: Sequence[bytes]) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for block in blocks:
        digest.update(len(block).to_bytes(8, "little"))
        digest.update(block)
    return digest.digest()
