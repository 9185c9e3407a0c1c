"""A subscription index whose matches come from replicas, which use the reaches of the last batch.

Replicas of subscriptions, in other processes, match messages by the reaches that subscriptions had after
the last batch. They may miss a subscription that reaches farther now; the index records such
subscriptions, and the caller evaluates them again. A subscription that reaches less far now receives
extra candidates; the matcher filters them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from index.batches import Floats, InterestBatch, Ints, Matches, ObjectBatch, ReachBatch
from index.contracts import InconsistentIndexError
from index.tables.growth import longer
from index.tables.id_map import IdMap
from index.tables.id_map_kernels import NO_KEY

_NOTHING = np.empty(0, dtype=np.int64)


class Candidates:
    """The pairs that replicas have found for a batch, and the subscriptions that have changed since."""

    def __init__(self) -> None:
        self._object_ids: Ints = _NOTHING
        self._handles: Ints = _NOTHING
        self._touched: list[Ints] = []
        self._raised: list[Ints] = []

    def give(self, object_ids: Ints, handles: Ints) -> None:
        """Set the pairs of a message and a subscription, in any order; duplicates are allowed."""
        pairs = np.unique(np.stack([object_ids, handles], axis=1), axis=0) if len(object_ids) else None
        self._object_ids = _NOTHING if pairs is None else pairs[:, 0].copy()
        self._handles = _NOTHING if pairs is None else pairs[:, 1].copy()

    def of(self, object_ids: Ints) -> tuple[Ints, Ints]:
        """Return the pairs of some messages as (row, subscription); `object_ids` must increase."""
        if not len(object_ids):
            return _NOTHING, _NOTHING
        rows = np.searchsorted(object_ids, self._object_ids)
        is_there = object_ids[np.minimum(rows, len(object_ids) - 1)] == self._object_ids
        return rows[is_there], self._handles[is_there]

    def note(self, ids: Ints, is_raised: np.typing.NDArray[np.bool_]) -> None:
        """Record subscriptions with a new reach, and the mask of those that reach farther."""
        self._touched.append(ids)
        self._raised.append(ids[is_raised])

    def take_raised(self) -> Ints:
        """Return the subscriptions that reach farther than before, since the last call."""
        found = np.unique(np.concatenate([_NOTHING, *self._raised]))
        self._raised.clear()
        return found

    def take_touched(self) -> Ints:
        """Return the subscriptions with a new reach, since the last call."""
        found = np.unique(np.concatenate([_NOTHING, *self._touched]))
        self._touched.clear()
        return found


class CandidateIndex:
    """A `SubscriptionIndex` that returns candidates, which the matcher verifies.

    Parameters
    ----------
    candidates
        The candidates that all such indexes of an engine share.
    """

    def __init__(self, candidates: Candidates) -> None:
        self._candidates = candidates
        self._slots = IdMap()
        self._free: Ints = _NOTHING
        """Free slots."""
        self._reach_m: Floats = np.zeros(16)
        self._reach_id: Ints = np.zeros(16, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._slots)

    def insert(self, reaches: ReachBatch, interests: InterestBatch) -> None:  # noqa: ARG002
        """Add subscriptions; replicas do not know them yet."""
        count, first = len(reaches), len(self._slots) + len(self._free)
        reused = self._free[:count]
        slots = np.concatenate([reused, np.arange(first, first + count - len(reused))])
        self._slots.insert(reaches.ids, slots.astype(np.int32))
        self._free = self._free[count:]
        self._reach_m = longer(self._reach_m, first + count)
        self._reach_id = longer(self._reach_id, first + count)
        self._reach_m[slots], self._reach_id[slots] = reaches.reach_m, reaches.reach_id
        self._candidates.note(reaches.ids, np.ones(count, dtype=np.bool_))

    def move(self, reaches: ReachBatch) -> None:
        """Record new reaches."""
        slots = self._slots.find(reaches.ids)
        before_m, before_id = self._reach_m[slots], self._reach_id[slots]
        is_farther = reaches.reach_m > before_m
        is_farther |= (reaches.reach_m == before_m) & (reaches.reach_id > before_id)
        self._candidates.note(reaches.ids, is_farther)
        self._reach_m[slots], self._reach_id[slots] = reaches.reach_m, reaches.reach_id

    def remove(self, ids: Ints) -> None:
        """Remove subscriptions; later ones reuse their slots."""
        self._free = np.concatenate([self._free, self._slots.remove(ids)])
        self._candidates.note(ids, np.zeros(len(ids), dtype=np.bool_))

    def match(self, objects: ObjectBatch) -> Matches:
        """Return the candidates of each object."""
        rows, handles = self._candidates.of(objects.ids)
        mine = self._slots.present(handles)
        rows, handles = rows[mine], handles[mine]
        return Matches.of(np.bincount(rows, minlength=len(objects)).astype(np.int64), handles)

    def observe(self, objects: ObjectBatch) -> None:
        """Do nothing: this index does not learn from objects."""

    def check(self) -> None:
        """Verify that every slot is free or belongs to one subscription."""
        self._slots.check()
        used = self._slots.values[self._slots.keys != NO_KEY]
        slots = np.sort(np.concatenate([used, self._free]))
        if not np.array_equal(slots, np.arange(len(slots))):
            raise InconsistentIndexError("the candidate index has a slot twice, or has lost one")

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""
        return (
            self._reach_m.nbytes
            + self._reach_id.nbytes
            + self._free.nbytes
            + self._slots.keys.nbytes
            + self._slots.values.nbytes
        )


@dataclass(frozen=True, slots=True)
class MakeCandidateIndex:
    """Makes candidate indexes that share their candidates."""

    candidates: Candidates

    def __call__(self) -> CandidateIndex:
        """Make an index."""
        return CandidateIndex(self.candidates)
