"""What an owner says of its subscriptions to their replicas: where they are needed, how far they reach.

A subscription needs a replica on each partition that has a keyword of its loose prefix (skype.txt section
7.3.4): a message without any of these is not similar enough wherever it lies. A reach that grows needs
more of them. Replicas that are not needed any more stay: what they cost is less than to move them.

Operations: O(keywords^2) a subscription whose reach has changed.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import NamedTuple

import numpy as np

from engine.contracts import Bools
from engine.standing.matcher import StandingMatcher
from index.batches import Ints, KeywordIds
from index.tables.growth import longer
from index.tables.slots import Slots
from streaming.arrays.numbers import Numbers
from streaming.distribution.keywords import TFIDF, Replicated
from streaming.distribution.prefix_kernels import find_prefixes
from streaming.partition.partition import Partition
from streaming.partition.replicas import Heard, Placements, Replicas

_ALL = "all"
_PARTS_MIN = 10_000
"""Rows said in parts before everything is said anew, beside as many as there are subscriptions."""


class Placer:
    """Decides where replicas are.

    Parameters
    ----------
    mechanism
        Which partitions have which keyword.
    """

    def __init__(self, mechanism: Replicated) -> None:
        self.token = secrets.randbits(62)
        """Whose reaches are said: an owner that is built anew has others."""
        self.rows_since_all = -1
        """Said in parts since everything was said; -1 if that was never."""
        self.replica_count = 0
        """Of subscriptions, also of one that has ended until another has its slot."""
        self._mechanism = mechanism
        self._parts = mechanism.look_up(np.empty(0, dtype=np.int64))[0]
        self._rank: KeywordIds = np.empty(0, dtype=np.int32)
        self._masks: Ints = np.zeros(16, dtype=np.int64)
        """By slot."""

    def place(self, matcher: StandingMatcher, numbers: Numbers, handles: Ints, fresh: Ints) -> Placements:
        """Return what is to be said of subscriptions, some of which may be gone.

        Parameters
        ----------
        matcher
            Where they are.
        numbers
            Of keywords.
        handles
            Which ones.
        fresh
            Those of them that have begun.
        """
        table = matcher.subscriptions
        is_there = table.ids.present(handles)
        slots = table.slots(handles[is_there])
        rows = table.rows[slots]
        is_new = np.isin(rows["id"], fresh)
        keywords = table.keyword_lists(slots)
        words, inverse = np.unique(keywords.ids, return_inverse=True)
        high, low = numbers.digests(words)
        said = Placements(
            keywords.offsets,
            inverse.astype(np.int32),
            high,
            low,
            matcher.weights.of_keywords(words, matcher.weights.current),
            handle=rows["id"].copy(),
            x_m=rows["x_m"].copy(),
            y_m=rows["y_m"].copy(),
            weight_m=rows["weight_m"].copy(),
            similarity=rows["similarity"].copy(),
            reach_m=rows["reach_m"].copy(),
            reach_id=rows["reach_id"].copy(),
            mask=self._mask(matcher, numbers, slots, is_new),
            is_new=is_new.astype(np.int8),
        )
        return said if is_there.all() else Placements.join([said, _ended(handles[~is_there])])

    def _mask(self, matcher: StandingMatcher, numbers: Numbers, slots: Slots, is_new: Bools) -> Ints:
        """Return where replicas are needed, or are already."""
        rows, keywords = matcher.subscriptions.rows[slots], matcher.subscriptions.keyword_lists(slots)
        squares = matcher.weights.of_keywords(keywords.ids, matcher.weights.current)
        is_weighed = np.repeat(rows["similarity"] == TFIDF, np.diff(keywords.offsets))
        self._learn(numbers)
        counts = np.diff(keywords.offsets)
        places = np.repeat(rows["x_m"], counts), np.repeat(rows["y_m"], counts)
        cells = self._mechanism.cells(self._parts[:, keywords.ids], *places)
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
            bits = np.where(is_in_prefix, 1 << cells, 0)
        else:
            bits = 1 << cells
        found = np.empty(0, dtype=np.int64)
        if len(slots):
            found = np.bitwise_or.reduceat(bits, keywords.offsets[:-1])
        self._masks = longer(self._masks, int(slots.max(initial=-1)) + 1)
        found |= np.where(is_new, 0, self._masks[slots])
        self.replica_count += int(np.bitwise_count(found).sum())
        self.replica_count -= int(np.bitwise_count(self._masks[slots]).sum())
        self._masks[slots] = found
        return found

    def _learn(self, numbers: Numbers) -> None:
        """Look up the partitions of keywords that are new."""
        fresh = np.arange(self._parts.shape[1], len(numbers), dtype=np.int32)
        parts, rank = self._mechanism.look_up(numbers.digests(fresh)[0])
        self._parts = np.concatenate([self._parts, parts], axis=1)
        self._rank = np.concatenate([self._rank, rank])


def _ended(handles: Ints) -> Placements:
    """Return what is said of subscriptions that are gone."""
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


class Board:
    """What owners have said, in files in memory: everything, and then what is new, version by version.

    Parameters
    ----------
    folder
        Common to all owners and replicas of a job.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def say(
        self,
        owner: int,
        version: int,
        placer: Placer,
        partition: Partition,
        handles: Ints,
        fresh: Ints,
    ) -> None:
        """Say what is new of some subscriptions; of all of them, from time to time.

        Parameters
        ----------
        owner, version
            Who says it, behind which batch.
        placer, partition
            Of the owner.
        handles, fresh
            Subscriptions whose reach has changed or that have gone, and those that have begun.
        """
        folder = self._folder / str(owner)
        folder.mkdir(parents=True, exist_ok=True)
        before = _files(folder)
        matcher = partition.matcher
        is_gap = not before or before[-1].heard != Heard(placer.token, version - 1)
        is_all = is_gap or placer.rows_since_all > max(_PARTS_MIN, len(matcher))
        if is_all:
            handles = matcher.subscriptions.rows["id"][matcher.subscriptions.used()]
        placer.rows_since_all = 0 if is_all else placer.rows_since_all + len(handles)
        name = f"{version:012d}-{placer.token:x}-{_ALL if is_all else 'part'}"
        hidden = folder / f".{name}"
        hidden.write_bytes(placer.place(matcher, partition.numbers, handles, fresh).pack())
        hidden.rename(folder / name)
        for one in before if is_all else ():
            if one.path.name != name:
                one.path.unlink(missing_ok=True)

    def hear(self, owner: int, owners: int, replicas: Replicas) -> None:
        """Let replicas hear what is new."""
        files = _files(self._folder / str(owner))
        begins = [number for number, one in enumerate(files) if one.is_all]
        if not begins:
            replicas.forget(owner, owners)
            return
        files = files[begins[-1] :]
        heard = replicas.heard.get(owner)
        if heard is None or heard not in {one.heard for one in files}:
            replicas.forget(owner, owners)
            heard = Heard(0, -1)
        for one in files:
            if one.heard.version > heard.version:
                replicas.hear(Placements.unpack(one.path.read_bytes()))
                replicas.heard[owner] = one.heard


class _File(NamedTuple):
    """Something that was said."""

    heard: Heard
    is_all: bool
    path: Path


def _files(folder: Path) -> list[_File]:
    """Return what an owner has said, in order."""
    found = []
    for path in sorted(folder.glob("[0-9]*")):
        version, token, kind = path.name.split("-")
        found.append(_File(Heard(int(token, 16), int(version)), kind == _ALL, path))
    return found
