"""The engine: one table of objects, and a matcher for each kind of subscription over it.

Every operation takes a batch and returns what entered and left buffers, grouped by subscription; nothing
else changes that a device can see, but for bounds. Within an instant the caller applies: advance, remove,
publish, settle, evaluate.

No I/O, no clock of its own, no asyncio. It trusts its caller: ids are new, handles exist, time does not
go backwards. Costs are those of the matchers.
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
    grouped,
    kind_of,
    kinds_of,
)
from engine.objects import Objects
from engine.options import EngineOptions
from engine.polygons import Rings
from engine.stationary.matcher import StationaryMatcher
from engine.top_k.matcher import TopKMatcher
from engine.windows import Leaving
from index.batches import Floats, Ints, ObjectBatch

MATCHERS: dict[int, Callable[[Objects, EngineOptions], Matcher[Any]]] = {
    TOP_K: TopKMatcher,
    BOOLEAN: BooleanMatcher,
    STATIONARY: StationaryMatcher,
}
"""What makes the matcher of each kind."""


_NO_HANDLES: Ints = np.empty(0, dtype=np.int64)


class Part(NamedTuple):
    """The rows of a batch that are of one kind."""

    matcher: Matcher[Any]
    rows: slice | Bools
    positions: Positions
    retrieved: object | None = None
    """What was looked up for them, if anything was."""


class Evaluated(NamedTuple):
    """What came of a batch.

    Parameters
    ----------
    changes
        What enters and leaves buffers, grouped by subscription.
    were_awake
        Whether each subscription was evaluated before.
    bounds
        How far what each device holds is right.
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
        What makes the matcher of each kind.
    """

    def __init__(
        self,
        options: EngineOptions | None = None,
        matchers: Mapping[int, Callable[[Objects, EngineOptions], Matcher[Any]]] = MATCHERS,
    ) -> None:
        self.options = options or EngineOptions()
        self.objects = Objects(self.options.object_index, self.options.object_index())
        self.matchers = {kind: make(self.objects, self.options) for kind, make in matchers.items()}

    @property
    def now_ms(self) -> int:
        """The present time."""
        return self.objects.now_ms

    @property
    def subscription_count(self) -> int:
        """How many subscriptions there are."""
        return sum(len(matcher) for matcher in self.matchers.values())

    def matcher_of(self, handle: int) -> Matcher[Any]:
        """Return what keeps a subscription."""
        return self.matchers[kind_of(handle)]

    # -- time and objects ------------------------------------------------------------------------

    def advance(
        self,
        now_ms: int,
        on_due: Callable[[Ints], None] = lambda _due: None,
        on_changes: Callable[[Rows], None] = lambda _changes: None,
        *,
        notify: bool = False,
    ) -> Ints:
        """Set the time and remove what expires by it, from buffers too; return its ids.

        Devices are not told: both sides know the expiry, and how long a window of so many milliseconds
        is. But what takes the place of what goes is told, of stationary subscriptions.

        Parameters
        ----------
        now_ms
            The time.
        on_due
            Is called with the ids before they go.
        on_changes
            Is called with what enters buffers, and may leave them again.
        notify
            Whether what goes is told, too.

        Raises
        ------
        ValueError
            If time would go backwards.
        """
        self.take_shrunk()
        due = self.objects.due(now_ms)
        if len(due):
            on_due(due)
            on_changes(self._remove(due, notify=notify))
        on_changes(self._let_go(self.objects.windows.due(now_ms), notify=notify))
        self.objects.look_ahead(self.next_settle_ms())
        return due

    @property
    def quiet_until_ms(self) -> int:
        """Before this time nothing is due; it may be longer until something is. O(1)."""
        # What leaves windows is looked for at every step of time.
        return self.now_ms if len(self.objects.windows) else self.objects.due_ms

    def skip_to(self, now_ms: int) -> bool:
        """Set the time, if until then `advance` and `settle` have nothing to do; return whether. O(1)."""
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
            When each ends.
        rings
            A row for each, with one ring for a polygon; None if all areas are rectangles.
        created_ms
            When each was published; None for now.
        """
        left = np.empty(0, dtype=CHANGE_DTYPE)
        if len(self.objects.windows):
            left = self._let_go(self.objects.windows.leaving(objects.ids), notify=True)
        slots = self.objects.insert(objects, expiry_ms, rings, created_ms)
        found = [matcher.publish(objects, slots) for matcher in self.matchers.values()]
        return Published(*map(np.concatenate, zip(*found, strict=True)))._replace(left=left)

    # -- weights ---------------------------------------------------------------------------------

    @property
    def generation(self) -> int:
        """Of the weights by which subscriptions are evaluated; 0 for none."""
        weights = self.objects.weights
        return weights.generations[weights.current]

    def begin_weights(self, generation: int, squares: Floats) -> None:
        """Begin to let other weights of keywords come into force; `reweigh` goes on with it.

        Parameters
        ----------
        generation
            Its number, above 0.
        squares
            Squared weights by keyword.
        """
        self.objects.begin_weights(generation, squares)

    def reweigh(self, count: int) -> Positions | None:
        """Go on to let other weights come into force, for so many objects or subscriptions.

        Returns
        -------
        Positions or None
            Subscriptions that the caller is to evaluate anew, there where they were; None at the end.
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
        """Take objects out of the buffers of those in whose windows they do not count any more."""
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
        """Remove live objects; return what left buffers."""
        return self._remove(ids, notify=True)

    def _remove(self, ids: Ints, *, notify: bool) -> Rows:
        slots = self.objects.table.slots(ids)
        changes = [matcher.remove(slots, notify=notify) for matcher in self.matchers.values()]
        self.objects.remove(ids)
        return self._with_refilled(changes)

    def _with_refilled(self, changes: list[Rows]) -> Rows:
        """Return changes, with what takes the place of what has gone."""
        refilled = np.concatenate([matcher.refill() for matcher in self.matchers.values()])
        # In one order, refilled or not: whether somebody is may depend on the time that things take.
        return grouped(np.concatenate([*changes, refilled]))

    def take_shrunk(self) -> Ints:
        """Return handles of stationary subscriptions, in place of whose expired results there is nothing.

        Since the last `advance`. See `StationaryMatcher.take_shrunk`.
        """
        stationary = self.matchers.get(STATIONARY)
        return stationary.take_shrunk() if isinstance(stationary, StationaryMatcher) else _NO_HANDLES

    def settle(self, *, everything: bool = False) -> Settled:
        """Bring up to date what is held of boolean subscriptions with too many matches.

        Of those that are due, some at a time, or of all of them: see `BooleanMatcher.settle`.
        """
        boolean = self.matchers.get(BOOLEAN)
        if isinstance(boolean, BooleanMatcher):
            return boolean.settle(everything=everything)
        return Settled(np.empty(0, dtype=CHANGE_DTYPE), _NO_HANDLES)

    @property
    def pairs_tested(self) -> int:
        """How many pairs of a boolean subscription and an object were tested, since the beginning."""
        boolean = self.matchers.get(BOOLEAN)
        return boolean.tables.work.pairs if isinstance(boolean, BooleanMatcher) else 0

    def next_settle_ms(self) -> int | None:
        """Return when there is something to settle; None if there is nothing."""
        boolean = self.matchers.get(BOOLEAN)
        return boolean.next_settle_ms() if isinstance(boolean, BooleanMatcher) else None

    # -- subscriptions ---------------------------------------------------------------------------

    def unsubscribe(self, handles: Ints) -> None:
        """Forget subscriptions."""
        for matcher, which in self._by_kind(handles):
            matcher.unsubscribe(handles[which])

    def park(self, handles: Ints) -> None:
        """Stop evaluating subscriptions until `evaluate`. Nothing happens to those parked already."""
        for matcher, which in self._by_kind(handles):
            matcher.park(handles[which])

    def are_awake(self, handles: Ints) -> Bools:
        """Whether each subscription is evaluated."""
        found = np.zeros(len(handles), dtype=np.bool_)
        for matcher, which in self._by_kind(handles):
            found[which] = matcher.are_awake(handles[which])
        return found

    def are_pending(self, handles: Ints) -> Bools:
        """Whether something waits for the position of each subscription's device."""
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
        """Divide positions by kind, and look up what `evaluate_parts` will need.

        See `Matcher.retrieve` about threads.
        """
        return [
            part._replace(retrieved=part.matcher.retrieve(part.positions))
            for part in self.divided(positions)
        ]

    def evaluate(self, positions: Positions) -> Rows:
        """Evaluate subscriptions where their devices are; wake those that are parked."""
        changes = [part.matcher.evaluate(part.positions) for part in self.divided(positions)]
        return np.concatenate(changes) if changes else np.empty(0, dtype=CHANGE_DTYPE)

    def evaluate_parts(self, parts: list[Part]) -> Evaluated:
        """Do the same for parts of a batch, and return what devices have to know besides.

        Parameters
        ----------
        parts
            What `divided` or `retrieve` has returned, if no object has come or gone since.
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
        return found._replace(changes=np.concatenate(changes)) if changes else found

    def held(self, handle: int) -> tuple[Ints, Floats]:
        """Return ids and text shares of what the device of a subscription holds."""
        return self.matcher_of(handle).held(handle)

    def bounds(self, handles: Ints) -> Bounds:
        """Return how far what devices hold is right."""
        found = _bounds_of(len(handles))
        for matcher, which in self._by_kind(handles):
            for column, values in zip(found, matcher.bounds(handles[which]), strict=True):
                column[which] = values
        return found

    def _by_kind(self, handles: Ints) -> Iterator[tuple[Matcher[Any], slice | Bools]]:
        """Yield each matcher that is meant, with the rows that are its."""
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
        """Size of all arrays."""
        return self.objects.memory_bytes() + sum(one.memory_bytes() for one in self.matchers.values())

    def check(self) -> None:
        """Verify every invariant from the definitions. O(subscriptions * objects).

        Raises
        ------
        InconsistentIndexError
            Naming what does not hold.
        """
        self.objects.check()
        for matcher in self.matchers.values():
            matcher.check()


def _evaluated(part: Part) -> Evaluated:
    matcher, _, positions, retrieved = part
    # Read now, not when objects were looked up: what was parked since holds nothing any more.
    were_awake = matcher.are_awake(positions.handles)
    changes = matcher.evaluate(positions, retrieved)
    return Evaluated(changes, were_awake, matcher.bounds(positions.handles))


def _bounds_of(count: int) -> Bounds:
    """Return room for the bounds of so many subscriptions."""
    return Bounds(np.empty(count), np.empty(count), np.empty(count), np.empty(count, dtype=np.int64))
