"""Combine one table of objects with a matcher for each kind of subscription over it: the engine.

Every operation takes a batch and returns the objects that entered and left buffers, grouped by
subscription. Except for bounds, nothing else changes that a device can see. Within an instant the caller
applies: advance, remove, publish, settle, evaluate.

No I/O, no clock, no asyncio. The engine trusts its caller: ids are new, handles exist, time does not go
backwards. Costs are those of the matchers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from engine.boolean.matcher import BooleanMatcher
from engine.contracts import (
    BOOLEAN,
    CHANGE_DTYPE,
    STATIONARY,
    TOP_K,
    Bools,
    Bounds,
    Matcher,
    Positions,
    Published,
    Rows,
    Settled,
    concatenated,
    grouped,
    kind_of,
    kinds_of,
)
from engine.expiries import ALL
from engine.objects import Objects
from engine.options import EngineOptions
from engine.polygons import Rings
from engine.stationary.matcher import StationaryMatcher
from engine.top_k.matcher import TopKMatcher
from engine.windows import Leaving
from index.batches import Floats, Ints, ObjectBatch
from index.tables.slots import Slots

MATCHERS: dict[int, Callable[[Objects, EngineOptions], Matcher[Any]]] = {
    TOP_K: TopKMatcher,
    BOOLEAN: BooleanMatcher,
    STATIONARY: StationaryMatcher,
}
"""The factory of the matcher of each kind."""


_NO_HANDLES: Ints = np.empty(0, dtype=np.int64)


class Part(NamedTuple):
    """The rows of a batch that are of one kind."""

    matcher: Matcher[Any]
    rows: slice | Bools
    positions: Positions
    retrieved: object | None = None
    """The data that was looked up for these rows, if any."""


class Evaluated(NamedTuple):
    """The results of a batch.

    Parameters
    ----------
    changes
        Objects that enter and leave buffers, grouped by subscription.
    were_awake
        Whether each subscription was evaluated before.
    bounds
        The bounds of the validity of each device's buffer.
    """

    changes: Rows
    were_awake: Bools
    bounds: Bounds


class Engine:
    """Exact results for subscriptions of all kinds.

    Parameters
    ----------
    options
        Buffers and the choice of indexes.
    matchers
        The factory of the matcher of each kind.
    objects
        The objects, if several engines have the same: each engine then `admit`s and `drop`s what changes.
    """

    def __init__(
        self,
        options: EngineOptions | None = None,
        matchers: Mapping[int, Callable[[Objects, EngineOptions], Matcher[Any]]] = MATCHERS,
        objects: Objects | None = None,
    ) -> None:
        self.options = options or EngineOptions()
        if objects is None:
            objects = Objects(self.options.object_index, self.options.object_index())
        self.objects = objects
        self.matchers = {kind: make(self.objects, self.options) for kind, make in matchers.items()}

    @property
    def now_ms(self) -> int:
        """Return the current time."""
        return self.objects.now_ms

    @property
    def subscription_count(self) -> int:
        """Return the number of subscriptions."""
        return sum(len(matcher) for matcher in self.matchers.values())

    def matcher_of(self, handle: int) -> Matcher[Any]:
        """Return the matcher that holds a subscription."""
        return self.matchers[kind_of(handle)]

    # -- time and objects ------------------------------------------------------------------------

    def advance(
        self,
        now_ms: int,
        on_due: Callable[[Ints], None] = lambda _due: None,
        on_changes: Callable[[Rows], None] = lambda _changes: None,
        *,
        notify: bool = False,
        count_max: int = ALL,
    ) -> Ints:
        """Set the time and remove objects that expire by it, from buffers too; return their ids.

        Devices are not notified: both sides know the expiry of objects, and the duration of windows. But
        for stationary subscriptions the replacements of these objects are reported.

        Parameters
        ----------
        now_ms
            The time.
        on_due
            Called with the ids before the objects are removed.
        on_changes
            Called with the objects that enter buffers; they may leave them again.
        notify
            Whether to report the removed objects, too.
        count_max
            Maximum number of objects to remove. While more are due (`objects.has_due`), evaluations may
            find them, and the call is to be repeated.

        Raises
        ------
        ValueError
            If time would go backwards.
        """
        self.take_shrunk()
        due = self.objects.due(now_ms, count_max)
        if len(due):
            on_due(due)
            on_changes(self._remove(due, notify=notify))
        on_changes(self._let_go(self.objects.windows.due(now_ms), notify=notify))
        self.objects.look_ahead(self.next_settle_ms())
        return due

    @property
    def quiet_until_ms(self) -> int:
        """Return a time before which nothing is due; the next due time may be later. O(1)."""
        # Each step of time searches for objects that leave windows.
        return self.now_ms if len(self.objects.windows) else self.objects.due_ms

    def skip_to(self, now_ms: int) -> bool:
        """Set the time if `advance` and `settle` have no work until then. O(1).

        Returns whether the time was set.
        """
        if not self.objects.now_ms <= now_ms < self.quiet_until_ms:
            return False
        self.objects.now_ms = now_ms
        return True

    def publish(
        self,
        objects: ObjectBatch,
        expiry_ms: Ints,
        rings: Rings | None = None,
        created_ms: Ints | None = None,
    ) -> Published:
        """Add objects.

        Parameters
        ----------
        objects
            With boxes, if some of them have areas.
        expiry_ms
            The expiry time of each object.
        rings
            A row for each object, with one ring for a polygon; None if all areas are rectangles.
        created_ms
            The time at which each object was published; None for now.
        """
        left = np.empty(0, dtype=CHANGE_DTYPE)
        if len(self.objects.windows):
            left = self._let_go(self.objects.windows.leaving(objects.ids), notify=True)
        slots = self.objects.insert(objects, expiry_ms, rings, created_ms)
        return self.admit(objects, slots)._replace(left=left)

    def admit(self, objects: ObjectBatch, slots: Slots) -> Published:
        """Match new objects, which are already in the table and the index."""
        found = [matcher.publish(objects, slots) for matcher in self.matchers.values()]
        return Published(*map(concatenated, zip(*found, strict=True)))

    def drop(self, slots: Slots) -> Rows:
        """Remove hidden objects (`Objects.hide`) from buffers; return the changes of buffers."""
        return self._with_refilled(
            [matcher.remove(slots, notify=True) for matcher in self.matchers.values()]
        )

    def pass_ids(self, next_id: int) -> Rows:
        """Let ids pass that no object here has: they count in windows of a number of objects.

        Parameters
        ----------
        next_id
            Above every id that was given to an object.

        Returns
        -------
        Rows
            The changes of buffers: objects that leave a window.
        """
        windows = self.objects.windows
        windows.next_id = max(windows.next_id, next_id)
        return self._let_go(windows.leaving(np.empty(0, dtype=np.int64)), notify=True)

    # -- weights ---------------------------------------------------------------------------------

    @property
    def generation(self) -> int:
        """Return the generation of the weights by which subscriptions are evaluated; 0 for none."""
        weights = self.objects.weights
        return weights.generations[weights.current]

    def begin_weights(self, generation: int, squares: Floats) -> None:
        """Start the change to other weights of keywords; `reweigh` continues it.

        Parameters
        ----------
        generation
            Its number, above 0.
        squares
            Squared weights by keyword.
        """
        self.objects.begin_weights(generation, squares)

    def reweigh(self, count: int) -> Positions | None:
        """Continue the change to other weights, for at most `count` objects or subscriptions.

        Returns
        -------
        Positions or None
            Subscriptions that the caller is to evaluate again, at their previous places; None at the end.
        """
        if not self.objects.fill(count):
            nothing = np.empty(0, dtype=np.int64)
            return Positions(nothing, np.empty(0), np.empty(0))
        for matcher in self.matchers.values():
            outdated = matcher.outdated(count)
            if len(outdated.handles):
                return outdated
        return None

    def _let_go(self, leaving: list[Leaving], *, notify: bool) -> Rows:
        """Remove objects from the buffers of windows that they leave."""
        changes = [np.empty(0, dtype=CHANGE_DTYPE)]
        for one in leaving:
            if len(one.slots):
                changes += [
                    matcher.leave(one.slots, one.window, notify=notify)
                    for matcher in self.matchers.values()
                ]
            self.objects.windows.let_go(one, self.now_ms)
        return self._with_refilled(changes) if leaving else changes[0]

    def remove(self, ids: Ints) -> Rows:
        """Remove live objects; return the changes of buffers."""
        return self._remove(ids, notify=True)

    def _remove(self, ids: Ints, *, notify: bool) -> Rows:
        slots = self.objects.table.slots(ids)
        changes = [matcher.remove(slots, notify=notify) for matcher in self.matchers.values()]
        self.objects.remove(ids)
        return self._with_refilled(changes)

    def _with_refilled(self, changes: list[Rows]) -> Rows:
        """Return changes, with the replacements of removed objects."""
        refilled = [matcher.refill() for matcher in self.matchers.values()]
        # Always in one order: whether a subscription is refilled may depend on the duration of other
        # work.
        return grouped(concatenated([*changes, *refilled]))

    def take_shrunk(self) -> Ints:
        """Return the stationary subscriptions with an expired result that no object replaces.

        Returns their handles, since the last `advance`. See `StationaryMatcher.take_shrunk`.
        """
        stationary = self.matchers.get(STATIONARY)
        return stationary.take_shrunk() if isinstance(stationary, StationaryMatcher) else _NO_HANDLES

    def settle(self, *, everything: bool = False) -> Settled:
        """Update the buffers of boolean subscriptions with too many matches.

        Without `everything`, only some of those that are due: see `BooleanMatcher.settle`.
        """
        boolean = self.matchers.get(BOOLEAN)
        if isinstance(boolean, BooleanMatcher):
            return boolean.settle(everything=everything)
        return Settled.nothing()

    @property
    def pairs_tested(self) -> int:
        """Return the number of tested pairs of a boolean subscription and an object since the start."""
        boolean = self.matchers.get(BOOLEAN)
        return boolean.tables.work.pairs if isinstance(boolean, BooleanMatcher) else 0

    def next_settle_ms(self) -> int | None:
        """Return the time of the next work for `settle`; None if there is none."""
        boolean = self.matchers.get(BOOLEAN)
        return boolean.next_settle_ms() if isinstance(boolean, BooleanMatcher) else None

    # -- subscriptions ---------------------------------------------------------------------------

    def unsubscribe(self, handles: Ints) -> None:
        """Remove subscriptions."""
        for matcher, which in self._by_kind(handles):
            matcher.unsubscribe(handles[which])

    def park(self, handles: Ints) -> None:
        """Stop evaluating subscriptions until `evaluate`. Those that are already parked do not change."""
        for matcher, which in self._by_kind(handles):
            matcher.park(handles[which])

    def are_awake(self, handles: Ints) -> Bools:
        """Return whether each subscription is evaluated."""
        found = np.zeros(len(handles), dtype=np.bool_)
        for matcher, which in self._by_kind(handles):
            found[which] = matcher.are_awake(handles[which])
        return found

    def are_pending(self, handles: Ints) -> Bools:
        """Return whether an object waits for the position of each subscription's device."""
        found = np.zeros(len(handles), dtype=np.bool_)
        for matcher, which in self._by_kind(handles):
            found[which] = matcher.are_pending(handles[which])
        return found

    def divided(self, positions: Positions) -> list[Part]:
        """Divide positions by the kinds of their subscriptions."""
        return [
            Part(matcher, which, positions.part(which))
            for matcher, which in self._by_kind(positions.handles)
        ]

    def retrieve(self, positions: Positions) -> list[Part]:
        """Divide positions by kind, and look up data for `evaluate_parts`.

        See `Matcher.retrieve` about threads.
        """
        return [
            part._replace(retrieved=part.matcher.retrieve(part.positions))
            for part in self.divided(positions)
        ]

    def evaluate(self, positions: Positions) -> Rows:
        """Evaluate subscriptions at the positions of their devices; wake those that are parked."""
        changes = [part.matcher.evaluate(part.positions) for part in self.divided(positions)]
        return concatenated(changes) if changes else np.empty(0, dtype=CHANGE_DTYPE)

    def evaluate_parts(self, parts: list[Part]) -> Evaluated:
        """Evaluate the parts of a batch; return changes, and the bounds that devices need.

        Parameters
        ----------
        parts
            The result of `divided` or `retrieve`, if no object was added or removed since then.
        """
        if len(parts) == 1:  # nearly always
            return _evaluated(parts[0])
        count = sum(len(part.positions.handles) for part in parts)
        found = Evaluated(
            np.empty(0, dtype=CHANGE_DTYPE), np.zeros(count, dtype=np.bool_), _bounds_of(count)
        )
        changes = []
        for part in parts:
            one = _evaluated(part)
            changes.append(one.changes)
            found.were_awake[part.rows] = one.were_awake
            for column, values in zip(found.bounds, one.bounds, strict=True):
                column[part.rows] = values
        return found._replace(changes=concatenated(changes)) if changes else found

    def held(self, handle: int) -> tuple[Ints, Floats]:
        """Return the ids of the objects that a subscription's device holds, and their constant parts."""
        return self.matcher_of(handle).held(handle)

    def bounds(self, handles: Ints) -> Bounds:
        """Return the bounds of the validity of the devices' buffers."""
        found = _bounds_of(len(handles))
        for matcher, which in self._by_kind(handles):
            for column, values in zip(found, matcher.bounds(handles[which]), strict=True):
                column[which] = values
        return found

    def _by_kind(self, handles: Ints) -> Iterator[tuple[Matcher[Any], slice | Bools]]:
        """Yield each matcher that has rows, with its rows."""
        if not len(handles):
            return
        kinds = kinds_of(handles)
        first = int(kinds[0])
        if (kinds == first).all():
            yield self.matchers[first], slice(None)
            return
        for kind, matcher in self.matchers.items():
            which = kinds == kind
            if which.any():
                yield matcher, which

    # -- for tests and operators -----------------------------------------------------------------

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""
        return self.objects.memory_bytes() + sum(one.memory_bytes() for one in self.matchers.values())

    def check(self) -> None:
        """Verify every invariant from the definitions. O(subscriptions * objects).

        Raises
        ------
        InconsistentIndexError
            Names the invariant that does not hold.
        """
        self.objects.check()
        for matcher in self.matchers.values():
            matcher.check()


def _evaluated(part: Part) -> Evaluated:
    matcher, _, positions, retrieved = part
    # Read now, not when objects were looked up: subscriptions parked since then hold nothing any more.
    were_awake = matcher.are_awake(positions.handles)
    changes = matcher.evaluate(positions, retrieved)
    return Evaluated(changes, were_awake, matcher.bounds(positions.handles))


def _bounds_of(count: int) -> Bounds:
    """Return uninitialised bounds of `count` subscriptions."""
    return Bounds(np.empty(count), np.empty(count), np.empty(count), np.empty(count, dtype=np.int64))
