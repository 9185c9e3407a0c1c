"""The boolean matcher that looks at every row, every time: the measure of all others.

A subscription asks for the objects that have all its keywords, within a circle about its device. The
device is given those within the circle grown by a slack, about the anchor (`safe_region.ranges`), which
is where it was. Its slack is its radius, and what covers the margin of its position; it shrinks as far as
needed when more match than are sent. If more match in the circle grown by the margin alone, the
subscription has too many: the device holds those nearest to the anchor, by (distance, id).

Operations: subscribe and unsubscribe O(1) each; evaluate, publish and remove O(subscriptions * objects).
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from engine.contracts import CHANGE_DTYPE, Bools, Bounds, Positions, Published, Rows
from engine.objects import Objects
from engine.options import EngineOptions
from index.batches import Floats, Ints, KeywordLists, ObjectBatch, Ranking
from index.contracts import InconsistentIndexError
from index.tables.slots import Slots
from safe_region.ranges import CAPPED_SHARE


class BooleanSpecs(NamedTuple):
    """What boolean subscriptions ask for, a row each."""

    keywords: KeywordLists
    """All of them are required."""
    radius_m: Floats


@dataclass(slots=True)
class _Subscription:
    """A row."""

    keywords: frozenset[int]
    radius_m: float
    x_m: float = 0.0
    y_m: float = 0.0
    margin_m: float = 0.0
    slack_m: float = 0.0
    too_many: bool = False
    is_awake: bool = False
    held: set[int] = field(default_factory=set)

    @property
    def bound(self) -> tuple[float, float, float, bool]:
        return self.x_m, self.y_m, self.slack_m, self.too_many

    @property
    def reach_m(self) -> float:
        """How far from the anchor a new object matters."""
        return self.radius_m + (self.margin_m if self.too_many else self.slack_m)


class BooleanMatcher:
    """See `engine.contracts.Matcher`.

    Parameters
    ----------
    objects
        What is alive.
    options
        How many matches a device is sent.
    """

    def __init__(self, objects: Objects, options: EngineOptions) -> None:
        self._objects = objects
        self._matches_max = options.matches_max
        self._subscriptions: dict[int, _Subscription] = {}

    def __len__(self) -> int:
        return len(self._subscriptions)

    # -- subscriptions ---------------------------------------------------------------------------

    def subscribe(self, handles: Ints, specs: BooleanSpecs) -> None:
        """Make subscriptions known, parked."""
        for i, handle in enumerate(handles.tolist()):
            keywords = frozenset(specs.keywords.row(i).tolist())
            self._subscriptions[handle] = _Subscription(keywords, float(specs.radius_m[i]))

    def unsubscribe(self, handles: Ints) -> None:
        """Forget subscriptions."""
        for handle in handles.tolist():
            del self._subscriptions[handle]

    def park(self, handles: Ints) -> None:
        """Stop evaluating subscriptions until `evaluate`."""
        for handle in handles.tolist():
            one = self._subscriptions[handle]
            one.is_awake = one.too_many = False
            one.held.clear()

    def are_awake(self, handles: Ints) -> Bools:
        """Whether each subscription is evaluated."""
        return np.array([self._subscriptions[one].is_awake for one in handles.tolist()], dtype=np.bool_)

    def are_pending(self, handles: Ints) -> Bools:
        """Nothing waits for a position."""
        return np.zeros(len(handles), dtype=np.bool_)

    def keyword_lists(self, handles: Ints) -> KeywordLists:
        """Return the keywords of subscriptions."""
        return KeywordLists.of([sorted(self._subscriptions[one].keywords) for one in handles.tolist()])

    # -- evaluation ------------------------------------------------------------------------------

    def retrieve(self, positions: Positions) -> None:
        """Nothing is looked up before."""

    def evaluate(self, positions: Positions, retrieved: object | None = None) -> Rows:  # noqa: ARG002
        """Evaluate subscriptions where their devices are; wake those that are parked."""
        margins = np.zeros(len(positions.handles)) if positions.margin_m is None else positions.margin_m
        columns = (positions.handles, positions.x_m, positions.y_m, margins)
        changes = _Changes()
        for handle, x_m, y_m, margin_m in zip(*(column.tolist() for column in columns), strict=True):
            one = self._subscriptions[handle]
            one.x_m, one.y_m, one.margin_m, one.is_awake = x_m, y_m, margin_m, True
            changes.note(handle, *self._fill(one, one.radius_m + 3.0 * margin_m))
        return changes.rows()

    def _fill(
        self, one: _Subscription, slack_m: float, without: Collection[int] = ()
    ) -> tuple[set[int], set[int]]:
        """Hold what should be held, with this slack or less; return what enters and what leaves."""
        found = self._matches(one.keywords, one.x_m, one.y_m, one.radius_m + slack_m, without)
        inner = sum(distance_m <= one.radius_m + one.margin_m for distance_m, _ in found)
        most = self._matches_max
        one.too_many = inner > most or (one.too_many and inner >= most * CAPPED_SHARE)
        if one.too_many:
            one.slack_m = 0.0
            found = found[: min(inner, most)]
        elif len(found) > most:
            one.slack_m = _slack_below(one.radius_m, found[most][0])
            found = [held for held in found if held[0] <= one.radius_m + one.slack_m]
        else:
            one.slack_m = slack_m
        before, one.held = one.held, {number for _, number in found}
        return one.held - before, before - one.held

    def _matches(
        self,
        keywords: frozenset[int],
        x_m: float,
        y_m: float,
        reach_m: float,
        without: Collection[int] = (),
    ) -> list[tuple[float, int]]:
        """Return what has all keywords and is not farther, as (distance, id), increasing."""
        table = self._objects.table
        rows = table.rows[: table.end]
        dx, dy = rows["x_m"] - x_m, rows["y_m"] - y_m
        distances = np.sqrt(dx * dx + dy * dy)
        near = np.flatnonzero((rows["keyword_count"] > 0) & (distances <= reach_m))
        return sorted(
            (float(distances[slot]), int(rows["id"][slot]))
            for slot in near.tolist()
            if keywords <= set(table.keywords(slot).tolist()) and int(rows["id"][slot]) not in without
        )

    def held(self, handle: int) -> tuple[Ints, Floats]:
        """Return the ids of what the device of a subscription holds, and zeros."""
        found = np.array(sorted(self._subscriptions[handle].held), dtype=np.int64)
        return found, np.zeros(len(found))

    def bounds(self, handles: Ints) -> Bounds:
        """Return anchors, slacks, and 1 where there are too many matches."""
        table = np.array([self._subscriptions[one].bound for one in handles.tolist()]).reshape(-1, 4)
        x_m, y_m, slack_m, too_many = table.T
        return Bounds(x_m, y_m, slack_m, too_many.astype(np.int64))

    def search(self, specs: BooleanSpecs, x_m: Floats, y_m: Floats) -> Ranking:
        """Return what matches at each place, nearest first, as many as are sent."""
        words = [frozenset(specs.keywords.row(i).tolist()) for i in range(len(x_m))]
        rows = zip(words, x_m.tolist(), y_m.tolist(), specs.radius_m.tolist(), strict=True)
        found = [self._matches(*row)[: self._matches_max] for row in rows]
        flat = [one for row in found for one in row]
        return Ranking(
            np.cumsum([0, *map(len, found)], dtype=np.int64),
            np.array([number for _, number in flat], dtype=np.int64),
            np.array([distance_m for distance_m, _ in flat], dtype=np.float64),
            np.zeros(len(flat)),
        )

    # -- objects ---------------------------------------------------------------------------------

    def publish(self, objects: ObjectBatch, slots: Slots) -> Published:  # noqa: ARG002
        """Take note of new objects."""
        changes, rebound = _Changes(), []
        words = [set(objects.keywords.row(i).tolist()) for i in range(len(objects))]
        for handle, one in self._subscriptions.items():
            dx, dy = objects.x_m - one.x_m, objects.y_m - one.y_m
            near = np.flatnonzero(np.sqrt(dx * dx + dy * dy) <= one.reach_m).tolist()
            if one.is_awake and any(one.keywords <= words[i] for i in near):
                before = one.bound
                changes.note(handle, *self._fill(one, one.margin_m if one.too_many else one.slack_m))
                if one.bound != before:
                    rebound.append(handle)
        nobody = np.empty(0, dtype=np.int64)
        return Published(changes.rows(), np.array(rebound, dtype=np.int64), nobody)

    def remove(self, slots: Slots, *, tell: bool) -> Rows:
        """Take objects out of what is held. Who has too many is given others, if it is told."""
        gone = set(self._objects.table.rows["id"][slots].tolist())
        changes = _Changes()
        for handle, one in self._subscriptions.items():
            lost = one.held & gone
            one.held -= lost
            if lost and tell:
                entered, left = self._fill(one, one.margin_m, gone) if one.too_many else (set(), set())
                changes.note(handle, entered, left | lost)
        return changes.rows()

    # -- for tests and operators -----------------------------------------------------------------

    def memory_bytes(self) -> int:
        """Size of what is held, roughly."""
        rows = self._subscriptions.values()
        return sum(sys.getsizeof(one) + sys.getsizeof(one.held) for one in rows)

    def check(self) -> None:
        """Verify that every device holds what the definition says. O(subscriptions * objects)."""
        for handle, one in self._subscriptions.items():
            found = self._matches(one.keywords, one.x_m, one.y_m, one.reach_m) if one.is_awake else []
            if one.too_many:  # the nearest of them; of those some have expired
                places = (i for i, (_, number) in enumerate(found) if number in one.held)
                found = found[: 1 + max(places, default=-1)]
            if {number for _, number in found} != one.held or len(one.held) > self._matches_max:
                raise InconsistentIndexError(f"what is held of subscription {handle} is wrong")


class _Changes:
    """What enters and leaves, subscription by subscription."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, int, float, int]] = []

    def note(self, handle: int, entered: set[int], left: set[int]) -> None:
        """Note what happened to one subscription."""
        self._rows += [(handle, number, 0.0, 1) for number in sorted(left)]
        self._rows += [(handle, number, 0.0, 0) for number in sorted(entered)]

    def rows(self) -> Rows:
        """Return all of it."""
        return np.array(self._rows, dtype=CHANGE_DTYPE)


def _slack_below(radius_m: float, distance_m: float) -> float:
    """Return the largest slack with which an object at this distance, beyond the radius, is not held."""
    slack_m = max(0.0, float(np.nextafter(distance_m, 0.0)) - radius_m)
    while radius_m + slack_m >= distance_m:
        slack_m = float(np.nextafter(slack_m, 0.0))
    return slack_m
