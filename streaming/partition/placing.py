"""The feedback of an owner to replicas: where its subscriptions need replicas, and their reaches.

A subscription needs a replica on each partition that has a keyword of its loose prefix (skype.txt section
7.3.4): a message without any of these is not similar enough wherever it lies. When a reach grows, the
subscription needs more replicas. Replicas that are no longer needed stay, as in the
paper (lazy reallocation).

A partition of replicas receives only the subscriptions that it has replicas of. The feedback that it has
received from an owner has a version. If this is not the version that the owner has sent last, the owner
sends all subscriptions that concern the partition.

Operations: O(keywords^2) a subscription whose reach has changed.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import numpy as np

from engine.stationary.matcher import StationaryMatcher
from index.batches import Ints, KeywordIds
from index.tables.growth import longer
from index.tables.id_map import IdMap
from index.tables.slots import Slots
from streaming.arrays.numbers import Numbers
from streaming.distribution.keywords import TFIDF, Replicated
from streaming.distribution.prefix_kernels import find_prefixes
from streaming.partition.replicas import UNKNOWN, Feedback, OwnerVersion, Placements


class Placer:
    """Decides where replicas are, and which changes each partition of replicas receives.

    Parameters
    ----------
    mechanism
        Maps keywords to partitions.
    """

    def __init__(self, mechanism: Replicated) -> None:
        self.token = secrets.randbits(62)
        """Identifies the owner whose reaches are sent: an owner that was rebuilt has other reaches."""
        self.replica_count = 0
        """The number of replicas of all subscriptions."""
        self._mechanism = mechanism
        self._parts = mechanism.look_up(np.empty(0, dtype=np.int64))[0]
        self._rank: KeywordIds = np.empty(0, dtype=np.int32)
        self._placed = IdMap()
        """By handle: a slot of the masks."""
        self._masks: Ints = np.zeros(16, dtype=np.int64)
        self._free: Ints = np.empty(0, dtype=np.int64)
        """Free slots."""
        self._sent = [UNKNOWN] * mechanism.partitions
        """By partition of replicas: the version that was sent to it last."""

    def require(self, partition: int, last_seen: OwnerVersion) -> bool:
        """Return whether a partition of replicas has all feedback; if not, it is sent again."""
        is_known = last_seen == OwnerVersion(self.token, self._sent[partition])
        if not is_known:
            self._sent[partition] = UNKNOWN
        return is_known

    def feedback(
        self,
        owner: int,
        version: int,
        matcher: StationaryMatcher,
        numbers: Numbers,
        changed: Ints,
        started: Ints,
    ) -> Iterator[tuple[int, Feedback]]:
        """Yield the number of each partition of replicas and its feedback, if there are changes.

        A partition that is not known to have all earlier feedback receives all of its subscriptions.

        Parameters
        ----------
        owner, version
            The owner of the change, and the number of the change.
        matcher
            The matcher with the subscriptions.
        numbers
            The numbers of keywords.
        changed
            Subscriptions whose reach has changed, or that have started or ended; each once.
        started
            Those of them that have started, possibly in place of another of their number.
        """
        table = matcher.subscriptions
        is_there = table.ids.present(changed)
        current, ended = changed[is_there], changed[~is_there]
        placements, before = self._place(matcher, numbers, current, started)
        ended, ended_before = self._forget(ended)
        source = OwnerVersion(self.token, version)
        everything: Placements | None = None
        for partition, sent in enumerate(self._sent):
            bit = 1 << partition
            if sent == UNKNOWN:
                if everything is None:
                    handles = table.rows["id"][table.used()]
                    everything, _ = self._place(matcher, numbers, handles, np.empty(0, dtype=np.int64))
                mine = everything.part(np.flatnonzero(everything.mask & bit)).lean()
                yield partition, Feedback(owner, source, mine, is_whole=True)
            else:
                rows = np.flatnonzero((placements.mask | before) & bit)
                gone = ended[(ended_before & bit) != 0]
                if not len(rows) and not len(gone):
                    continue
                mine = Placements.join([placements.part(rows), _ended(gone)]).lean()
                yield partition, Feedback(owner, source, mine, is_whole=False)
            self._sent[partition] = version

    def _place(
        self, matcher: StationaryMatcher, numbers: Numbers, handles: Ints, started: Ints
    ) -> tuple[Placements, Ints]:
        """Decide where some subscriptions have replicas; return placements and former masks."""
        table = matcher.subscriptions
        slots = table.slots(handles)
        rows = table.rows[slots]
        is_new = np.isin(handles, started)
        keywords = table.keyword_lists(slots)
        words, inverse = np.unique(keywords.ids, return_inverse=True)
        high, low = numbers.digests(words)
        own = self._own_slots(handles)
        before = self._masks[own]
        mask = self._needed(matcher, numbers, slots) | np.where(is_new, 0, before)
        self.replica_count += int(np.bitwise_count(mask).sum()) - int(np.bitwise_count(before).sum())
        self._masks[own] = mask
        placements = Placements(
            keywords.offsets,
            inverse.astype(np.int32),
            high,
            low,
            matcher.weights.of_keywords(words, matcher.weights.current),
            handle=handles,
            x_m=rows["x_m"].copy(),
            y_m=rows["y_m"].copy(),
            weight_m=rows["weight_m"].copy(),
            similarity=rows["similarity"].copy(),
            reach_m=rows["reach_m"].copy(),
            reach_id=rows["reach_id"].copy(),
            mask=mask,
            is_new=is_new.astype(np.int8),
        )
        return placements, before

    def _own_slots(self, handles: Ints) -> Slots:
        """Return the slots of the masks of some subscriptions; new ones have no replica yet."""
        is_new = ~self._placed.present(handles)
        count = int(np.count_nonzero(is_new))
        first = len(self._placed) + len(self._free)
        reused, self._free = self._free[:count], self._free[count:]
        added = np.concatenate([reused, np.arange(first, first + count - len(reused))])
        self._placed.insert(handles[is_new], added.astype(np.int32))
        self._masks = longer(self._masks, first + count)
        self._masks[added] = 0
        return self._placed.find(handles)

    def _forget(self, handles: Ints) -> tuple[Ints, Ints]:
        """Forget subscriptions; return those of them that had replicas, and where."""
        known = handles[self._placed.present(handles)]
        slots = self._placed.remove(known)
        before = self._masks[slots]
        self._free = np.concatenate([self._free, slots])
        self.replica_count -= int(np.bitwise_count(before).sum())
        return known, before

    def _needed(self, matcher: StationaryMatcher, numbers: Numbers, slots: Slots) -> Ints:
        """Return where replicas are needed, a bit for each partition."""
        rows, keywords = matcher.subscriptions.rows[slots], matcher.subscriptions.keyword_lists(slots)
        if not len(slots):
            return np.empty(0, dtype=np.int64)
        squares = matcher.weights.of_keywords(keywords.ids, matcher.weights.current)
        counts = np.diff(keywords.offsets)
        is_weighed = np.repeat(rows["similarity"] == TFIDF, counts)
        self._learn(numbers)
        places = np.repeat(rows["x_m"], counts), np.repeat(rows["y_m"], counts)
        bits = 1 << self._mechanism.cells(self._parts[:, keywords.ids], *places)
        if self._mechanism.uses_prefix:
            is_in_prefix = np.empty(len(keywords.ids), dtype=np.bool_)
            find_prefixes(
                keywords.offsets,
                keywords.ids,
                np.where(is_weighed, squares, 1.0),
                rows["similarity"].copy(),
                rows["weight_m"].copy(),
                rows["reach_m"].copy(),
                self._rank,
                is_in_prefix,
            )
            bits = np.where(is_in_prefix, bits, 0)
        found: Ints = np.bitwise_or.reduceat(bits, keywords.offsets[:-1])
        return found

    def _learn(self, numbers: Numbers) -> None:
        """Look up the partitions of keywords that are new."""
        added = np.arange(self._parts.shape[1], len(numbers), dtype=np.int32)
        parts, rank = self._mechanism.look_up(numbers.digests(added)[0])
        self._parts = np.concatenate([self._parts, parts], axis=1)
        self._rank = np.concatenate([self._rank, rank])


def _ended(handles: Ints) -> Placements:
    """Return the placements that report ended subscriptions."""
    metres, whole = np.zeros(len(handles)), np.zeros(len(handles), dtype=np.int64)
    small = whole.astype(np.int8)
    return Placements(
        np.zeros(len(handles) + 1, dtype=np.int64),
        np.empty(0, dtype=np.int32),
        np.empty(0, dtype=np.int64),
        np.empty(0, dtype=np.int64),
        np.empty(0),
        handle=handles,
        x_m=metres,
        y_m=metres,
        weight_m=metres,
        similarity=small,
        reach_m=metres,
        reach_id=whole,
        mask=whole,
        is_new=small,
    )
