"""The matching service: objects and subscriptions with their keywords, over the engine of numbers.

The service translates keywords into numbers, live objects and specs into rows, and the changes that the
engine reports into deltas. It knows no devices and no sessions; `server/core/coordinator.py` holds them.
Callers that only read use the service directly. Every operation returns the deltas that it causes, at
most one per subscription. The cost in addition to the engine's is O(1) per keyword, object and change.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from engine import Engine, EngineOptions
from engine.contracts import BOOLEAN, STATIONARY, Bounds, Rows, handle_of, kind_of
from engine.engine import Part
from engine.expiries import ALL
from engine.weights import SLOTS
from identity.principal import local_name
from index.batches import Ints, KeywordLists, ObjectBatch
from safe_region.earth.frame import Frame, Point
from safe_region.scoring.idf import IdfTable
from server.core.area_columns import with_areas
from server.core.evaluation_batch import EvaluationBatch
from server.core.keyword_dictionary import KeywordDictionary
from server.core.object_table import ObjectTable, RemovedObject
from server.core.specs import KINDS, Kind, kind_of_spec
from server.core.specs.boolean import BooleanKind
from server.errors import StoreError
from server.model import Bound, Cause, Delta, DropReason, Entry, LiveObject, Reach, Spec, Window
from server.store.mutations import ObjectColumns, SubscriptionColumns

_MANY = 64
"""Number of changes from which they are entered per subscription: microseconds more first, then less."""


class Ranked(NamedTuple):
    """One object of a search result."""

    item: LiveObject
    length_m: float
    r_m: float


class SearchRequest(NamedTuple):
    """A subscription to be evaluated once, at a place."""

    spec: Spec
    lon: float
    lat: float


class MatchingService:
    """All objects and subscriptions, and the objects that devices hold for them.

    Parameters
    ----------
    frame
        The service area.
    options
        Options of the engine.
    """

    def __init__(self, frame: Frame, options: EngineOptions | None = None) -> None:
        self.frame = frame
        self.engine = Engine(options)
        self.pending: set[int] = set()
        """Subscriptions (modes ELLIPSE, NEAREST) with objects that wait for a position of the device."""
        self.located: list[int] = []
        """The pending subscriptions for which a `Locate` is to be sent. The sender empties the list."""
        self._tables: list[IdfTable | None] = [None] * SLOTS
        """Tables of keyword weights, by slot of the engine."""
        self.is_reweighing = False
        """Whether a table of weights is coming into force."""
        self._dictionary = KeywordDictionary(self._weigh)
        self.objects = ObjectTable(self.engine.objects.table, self._dictionary)
        self._kinds: dict[int, Kind[Any]] = {
            kind.number: kind(self.engine.matchers[kind.number], self._dictionary, frame)
            for kind in KINDS
        }
        self._next_number = 1
        self.on_expiry: Callable[[list[int]], None] | None = None
        """Called with the ids of objects that have expired, before they are removed."""
        self.publishes_late = False
        """Whether objects may be published some time after they were created."""

    @property
    def now_ms(self) -> int:
        """The current time in milliseconds."""
        return self.engine.objects.now_ms

    # -- time and objects ------------------------------------------------------------------------

    def advance(self, now_ms: int, count_max: int = ALL) -> tuple[list[RemovedObject], list[Delta]]:
        """Set the time; return the expired objects, at most `count_max` of them, and the deltas.

        The expiry itself causes no delta, since both sides know it. The deltas are those of stationary
        subscriptions: each has the object that replaces the expired one, or only a new bound if none
        does.

        Raises
        ------
        ValueError
            If time would go backwards.
        """
        gone: list[RemovedObject] = []
        changes: list[Rows] = []
        self.engine.advance(
            now_ms,
            lambda due: gone.extend(self._take_expired(due.tolist())),
            changes.append,
            count_max=count_max,
        )
        deltas: dict[int, Delta] = {}
        for some in changes:
            self.note(some, Cause.REFILLED, DropReason.OUT_OF_REACH, deltas)
        for handle in self.engine.take_shrunk().tolist():
            deltas.setdefault(handle, self._delta(handle, Cause.REFILLED))
        return gone, self._complete(deltas)

    def _take_expired(self, ids: list[int]) -> list[RemovedObject]:
        if self.on_expiry is not None:
            self.on_expiry(ids)
        return self.objects.take(ids)

    def settle(self, *, everything: bool = False) -> list[Delta]:
        """Settle subscriptions with too many matches: some that are due, or all of them.

        A change that makes a difference to such a subscription makes it due, at most once a second.
        """
        settled = self.engine.settle(everything=everything)
        if not len(settled.changes) and not len(settled.rebound):
            return []
        deltas: dict[int, Delta] = {}
        self.note(settled.changes, Cause.REFILLED, DropReason.OUT_OF_REACH, deltas)
        for handle in settled.rebound.tolist():
            deltas.setdefault(handle, self._delta(handle, Cause.REFILLED))
        return self._complete(deltas)

    def next_due_ms(self) -> int | None:
        """Return the time at which deltas may be due without any command; None for never.

        It is the next time at which an object expires or leaves a window, or a subscription is to be
        settled.
        """
        times = [self.engine.next_settle_ms()]
        if len(self.engine.matchers[STATIONARY]):
            times.append(self.engine.objects.next_due_ms())
        return min((one for one in times if one is not None), default=None)

    def publish(
        self,
        objects: Sequence[LiveObject],
        replaced: Sequence[int] = (),
        next_id: int = 0,
        retracted: Sequence[int] = (),
    ) -> list[Delta]:
        """Add objects and remove the replaced ones; `located` gets subscriptions that need a position.

        Parameters
        ----------
        objects
            In the order of their ids.
        replaced
            Ids.
        next_id
            Above every id that was given to an object, if the latest ones are of objects that are not
            matched: windows of the last n objects count these, too.
        retracted
            Ids of live objects to remove.
        """
        deltas: dict[int, Delta] = {}
        if retracted:
            self._remove(retracted, Cause.RETRACTED, DropReason.RETRACTED, deltas)
        if replaced:
            self._remove(replaced, Cause.REPLACED, DropReason.REPLACED, deltas)
        if next_id:
            left = self.engine.pass_ids(next_id)
            self.note(left, Cause.PUBLISHED, DropReason.OUT_OF_WINDOW, deltas)
        if objects:
            batch = ObjectBatch(
                np.array([item.object_id for item in objects], dtype=np.int64),
                np.array([item.point.x_m for item in objects], dtype=np.float64),
                np.array([item.point.y_m for item in objects], dtype=np.float64),
                KeywordLists.of([self._dictionary.take(item.keywords) for item in objects]),
            )
            areas = {i: item.area for i, item in enumerate(objects) if item.area is not None}
            batch, rings = with_areas(batch, areas, self.frame)
            expiry_ms = np.array([item.expiry_ms for item in objects], dtype=np.int64)
            created_ms = None
            if self.publishes_late:
                created_ms = np.array([item.created_ms for item in objects], dtype=np.int64)
            published = self.engine.publish(batch, expiry_ms, rings, created_ms)
            self.objects.put(objects)
            self.note(published.left, Cause.PUBLISHED, DropReason.OUT_OF_WINDOW, deltas)
            self.note(published.changes, Cause.PUBLISHED, DropReason.OUT_OF_REACH, deltas)
            for handle in published.rebound.tolist():
                deltas.setdefault(handle, self._delta(handle, Cause.PUBLISHED))
            if len(published.pending):
                self.located += published.pending.tolist()
                self.pending.update(self.located)
        return self._complete(deltas)

    def restore_objects(self, columns: ObjectColumns) -> None:
        """Add objects while no subscription is awake, so that there are no deltas."""
        keywords = self._dictionary.take_all(columns.keywords)
        x_m = (columns.lon - self.frame.lon0_deg) * self.frame.x_m_per_deg  # as `Frame.project` does
        y_m = (columns.lat - self.frame.lat0_deg) * self.frame.y_m_per_deg
        rows = dict(zip(columns.ids.tolist(), range(len(columns)), strict=True)) if columns.areas else {}
        areas = {rows[object_id]: area for object_id, area in columns.areas.items()}
        batch = ObjectBatch(columns.ids, x_m, y_m, keywords)
        batch, rings = with_areas(batch, areas, self.frame)
        self.engine.publish(batch, columns.expiry_ms, rings, columns.created_ms)
        self.objects.put_columns(columns)

    def begin_ids(self, next_id: int) -> None:
        """Set the next object id: windows of the last n objects count removed objects, too."""
        self.engine.objects.windows.next_id = next_id

    def retract(self, ids: Sequence[int]) -> list[Delta]:
        """Remove live objects."""
        deltas: dict[int, Delta] = {}
        if ids:
            self._remove(ids, Cause.RETRACTED, DropReason.RETRACTED, deltas)
        return self._complete(deltas)

    def _remove(
        self, ids: Sequence[int], cause: Cause, reason: DropReason, deltas: dict[int, Delta]
    ) -> None:
        self.objects.take(ids)
        self.note(self.engine.remove(np.array(ids, dtype=np.int64)), cause, reason, deltas)

    # -- weights of keywords ---------------------------------------------------------------------

    @property
    def keyword_count(self) -> int:
        """The number of keywords in use."""
        return len(self._dictionary)

    @property
    def generation(self) -> int:
        """The generation of the latest table of weights; 0 if there was none."""
        return max(self.engine.objects.weights.generations)

    def _weigh(self, number: int, word: str) -> None:
        """Pass the weight of a keyword that has a new number to the engine."""
        if any(self._tables):
            word = local_name(word)
            squares = [1.0 if table is None else table.weight(word) ** 2 for table in self._tables]
            self.engine.objects.weights.put(number, (squares[0], squares[1]))

    def restore_weights(self, generation: int, table: IdfTable) -> None:
        """Restore a table while there are no keywords."""
        weights = self.engine.objects.weights
        weights.generations[weights.current] = generation
        self._tables[weights.current] = table

    def begin_weights(self, generation: int, table: IdfTable) -> None:
        """Start to bring a table into force; `reweigh` continues. O(objects)."""
        self._tables[self.engine.objects.weights.other] = table
        squares = [table.weight(local_name(word)) ** 2 for word in self._dictionary.vocabulary()]
        self.engine.begin_weights(generation, np.array(squares, dtype=np.float64))
        self.is_reweighing = True

    def reweigh(self, count: int) -> list[Delta]:
        """Continue with `count` objects or subscriptions: the objects that these hold get new weights."""
        positions = self.engine.reweigh(count)
        if positions is None:
            self.is_reweighing = False
            return []
        self.engine.evaluate(positions)
        snapshots = (self._snapshot(one, Cause.REWEIGHED) for one in positions.handles.tolist())
        return self._complete({delta.handle: delta for delta in snapshots})

    # -- subscriptions ---------------------------------------------------------------------------

    def subscribe(self, spec: Spec) -> int:
        """Add a subscription, parked; `evaluate` wakes it. Returns its handle."""
        kind = self._kinds[kind_of_spec(spec).number]
        handle = handle_of(kind.number, self._next_number)
        self._next_number += 1
        kind.subscribe(handle, spec)
        return handle

    def restore_subscriptions(self, columns: SubscriptionColumns) -> Ints:
        """Add many subscriptions, parked. Returns their handles."""
        first, self._next_number = self._next_number, self._next_number + len(columns)
        handles = np.arange(first, self._next_number, dtype=np.int64)
        for number in np.unique(columns.kinds).tolist():
            rows = np.flatnonzero(columns.kinds == number)
            handles[rows] = handle_of(number, 0) + handles[rows]
            self._restore_kind(number, handles[rows], columns, rows.tolist())
        return handles

    def _restore_kind(
        self, number: int, handles: Ints, columns: SubscriptionColumns, rows: Sequence[int]
    ) -> None:
        kind = self._kinds.get(number)
        if kind is None:
            raise StoreError(
                f"the store has a subscription of kind {number}, of device "
                f"{columns.device_ids[rows[0]]!r}, which this version does not support: use a newer "
                "version"
            )
        try:
            kind.restore(handles, [columns.specs[row] for row in rows])
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            devices = f"{columns.device_ids[rows[0]]!r} to {columns.device_ids[rows[-1]]!r}"
            raise StoreError(
                f"the store is damaged: a spec of kind {number}, of one of the devices {devices}, "
                f"cannot be decoded: {error}"
            ) from error

    @property
    def window_count(self) -> int:
        """The number of different windows of the subscriptions."""
        return len(self.engine.objects.windows)

    @property
    def has_count_window(self) -> bool:
        """Whether any subscription has a window of the last n objects."""
        return self.engine.objects.windows.has_count

    def knows_window(self, window: Window) -> bool:
        """Return whether some subscription has this window, or it is `NO_WINDOW`."""
        return self.engine.objects.windows.is_known(window.duration_ms, window.count)

    def clause_keyword_count(self, handles: Iterable[int]) -> int:
        """Return the number of keywords in the clauses of subscriptions. O(clauses)."""
        boolean = self._kinds[BOOLEAN]
        assert isinstance(boolean, BooleanKind)  # noqa: S101 - for the type checker
        return boolean.clause_keyword_count([one for one in handles if kind_of(one) == BOOLEAN])

    def unsubscribe(self, handle: int) -> None:
        """Remove a subscription."""
        self._kind(handle).unsubscribe(handle)
        self.pending.discard(handle)

    def park(self, handles: Iterable[int]) -> None:
        """Stop evaluating subscriptions until `evaluate`. Subscriptions that are parked stay parked."""
        handles = _ids(handles)
        self.engine.park(handles)
        self.pending.difference_update(handles.tolist())

    def spec(self, handle: int) -> Spec:
        """Return the spec of a subscription."""
        found: Spec = self._kind(handle).spec(handle)
        return found

    def bound(self, handle: int, bound_m: float, bound_id: int) -> Bound:
        """Return the bound that the engine's pair for a subscription encodes."""
        return self._kind(handle).bound(handle, bound_m, bound_id)

    def is_awake(self, handle: int) -> bool:
        """Return whether a subscription is evaluated."""
        return bool(self.engine.are_awake(_ids((handle,)))[0])

    def needs_exact_position(self, handle: int) -> bool:
        """Return whether the server has to know the exact position of the subscription's device."""
        return self._kind(handle).needs_exact_position(handle)

    def resume(self, batch: EvaluationBatch) -> None:
        """Add the rows that subscriptions of devices with a hello need to a batch."""
        batch.resume(self.engine.are_awake(_ids(batch.arrivals)), self.pending)

    def retrieve(self, batch: EvaluationBatch) -> list[Part]:
        """Look up the data that `evaluate` needs, in any thread, while other batches are evaluated."""
        return self.engine.retrieve(batch.positions(self.frame))

    def evaluate(self, batch: EvaluationBatch, retrieved: list[Part] | None = None) -> list[Delta]:
        """Re-evaluate subscriptions, each at its place; wake those that are parked.

        The delta of a subscription that wakes, or for which the batch requests a snapshot, has all
        objects that its device should hold. Any other delta has the difference only. The evaluation
        decides the pending objects of a subscription; the cause of its delta is then PUBLISHED.
        `retrieved` is the result of `retrieve` for this batch.
        """
        deltas: dict[int, Delta] = {}
        bounds: Bounds | None = None
        if batch.places:
            if retrieved is None:
                retrieved = self.engine.divided(batch.positions(self.frame))
            changes, were_awake, bounds = self.engine.evaluate_parts(retrieved)
            causes, pending = batch.causes, self.pending
            for handle, was_awake in zip(batch.places, were_awake.tolist(), strict=True):
                cause = Cause.PUBLISHED if handle in pending else causes.get(handle, Cause.REPORTED)
                deltas[handle] = self._delta(handle, cause, snapshot=not was_awake)
            if pending:
                pending.difference_update(batch.places)
            self.note(changes, Cause.REPORTED, DropReason.OUT_OF_REACH, deltas)
        for handle, cause in batch.snapshots.items():
            before = deltas.get(handle)
            if before is None or not before.snapshot:
                deltas[handle] = self._snapshot(handle, cause)
        if not batch.unplaced:
            return self._complete(deltas, bounds)
        self.park(batch.unplaced)
        unplaced = [self._unplaced(handle, Cause.RESUMED) for handle in batch.unplaced]
        return self._complete(deltas, bounds) + unplaced

    def snapshot(self, handle: int, cause: Cause) -> Delta:
        """Return all objects that the device of a subscription should hold: none, if it is parked."""
        if not self.is_awake(handle):
            return self._unplaced(handle, cause)
        return self._complete({handle: self._snapshot(handle, cause)})[0]

    def _unplaced(self, handle: int, cause: Cause) -> Delta:
        """Return the delta for the device of a subscription that is not evaluated at its position.

        It has no bound: the objects that the device does not hold may be anywhere.
        """
        return Delta(handle, cause, _NOWHERE, None, self.now_ms, snapshot=True)

    def _snapshot(self, handle: int, cause: Cause) -> Delta:
        delta = self._delta(handle, cause, snapshot=True)
        ids, shares = self.engine.held(handle)
        items = self.objects.ready(ids.tolist())
        delta.add = [
            Entry(items[one], r_m) for one, r_m in zip(ids.tolist(), shares.tolist(), strict=True)
        ]
        return delta

    def search(self, requests: Sequence[SearchRequest]) -> list[list[Ranked]]:
        """Return the current results of subscriptions, each at its place."""
        by_kind: defaultdict[int, list[int]] = defaultdict(list)
        for i, request in enumerate(requests):
            by_kind[kind_of_spec(request.spec).number].append(i)
        results: list[list[Ranked]] = [[] for _ in requests]
        for number, rows in by_kind.items():
            points = [self.frame.project(requests[i].lon, requests[i].lat) for i in rows]
            x_m, y_m = np.array(points, dtype=np.float64).T
            ranking = self._kinds[number].search([requests[i].spec for i in rows], x_m, y_m)
            columns = (ranking.ids.tolist(), ranking.length_m.tolist(), ranking.r_m.tolist())
            items = self.objects.ready(columns[0])
            found = [Ranked(items[one], *rest) for one, *rest in zip(*columns, strict=True)]
            ends = ranking.offsets.tolist()
            for place, i in enumerate(rows):
                results[i] = found[ends[place] : ends[place + 1]]
        return results

    def _kind(self, handle: int) -> Kind[Any]:
        return self._kinds[kind_of(handle)]

    # -- deltas ----------------------------------------------------------------------------------

    def _delta(self, handle: int, cause: Cause, *, snapshot: bool = False) -> Delta:
        """Start a delta; `_complete` sets its anchor and bound."""
        return Delta(handle, cause, _NOWHERE, _NOTHING, self.now_ms, snapshot=snapshot)

    def note(self, changes: Rows, cause: Cause, reason: DropReason, deltas: dict[int, Delta]) -> None:
        """Enter the changes that the engine returned into the delta of each subscription."""
        if len(changes) >= _MANY and self._note_many(changes, cause, reason, deltas):
            return
        columns = (changes[name].tolist() for name in ("handle", "object_id", "r_m", "is_drop"))
        added = self.objects.ready(changes["object_id"][changes["is_drop"] == 0].tolist())
        for handle, object_id, r_m, is_drop in zip(*columns, strict=True):
            delta = deltas.get(handle)
            if delta is None:
                delta = deltas[handle] = self._delta(handle, cause)
            if is_drop:
                kept = [entry for entry in delta.add if entry.item.object_id != object_id]
                if len(kept) == len(delta.add):
                    delta.drop[object_id] = reason
                delta.add = kept  # a subscription with too many matches got it for a replaced one
            else:
                delta.add.append(Entry(added[object_id], r_m))

    def _note_many(
        self, changes: Rows, cause: Cause, reason: DropReason, deltas: dict[int, Delta]
    ) -> bool:
        """Enter many changes, a subscription at a time; return whether that was possible.

        It is possible where the drops of each subscription come before its additions, and its delta has
        no additions yet. One entry serves all subscriptions if no object of the changes has a text share.
        """
        handles, is_drop = changes["handle"], changes["is_drop"]
        is_first = np.append(True, handles[1:] != handles[:-1])
        starts = np.flatnonzero(is_first)
        owners = handles[starts].tolist()
        is_ordered = (is_first[1:] | (is_drop[1:] <= is_drop[:-1])).all()
        if not is_ordered or any(one in deltas and deltas[one].add for one in owners):
            return False
        ids, shares = changes["object_id"].tolist(), changes["r_m"].tolist()
        added = self.objects.ready(np.unique(changes["object_id"][is_drop == 0]).tolist())
        shared = {one: Entry(item, 0.0) for one, item in added.items()} if not any(shares) else None
        ends = [*starts[1:].tolist(), len(ids)]
        counts = np.add.reduceat(is_drop.astype(np.int64), starts).tolist()
        for handle, start, stop, count in zip(owners, starts.tolist(), ends, counts, strict=True):
            delta = deltas.get(handle)
            if delta is None:
                delta = deltas[handle] = self._delta(handle, cause)
            middle = start + count
            delta.drop.update(dict.fromkeys(ids[start:middle], reason))
            if shared is None:
                pairs = zip(ids[middle:stop], shares[middle:stop], strict=True)
                delta.add.extend(Entry(added[one], r_m) for one, r_m in pairs)
            else:
                delta.add.extend(map(shared.__getitem__, ids[middle:stop]))
        return True

    def _complete(self, deltas: dict[int, Delta], known: Bounds | None = None) -> list[Delta]:
        """Set the current anchors and bounds of deltas.

        The delta of a subscription that was evaluated with other weights than before, for whatever
        reason, becomes a snapshot: the objects that its device holds have other shares. `known` are the
        bounds of the first deltas, if they were read already.
        """
        weights = self.engine.objects.weights
        for handle in weights.take_reweighed().tolist() if weights.reweighed else ():
            before = deltas.get(handle)
            if before is None or not before.snapshot:
                cause = Cause.REWEIGHED if before is None else before.cause
                deltas[handle] = self._snapshot(handle, cause)
        if not deltas:
            return []
        known_count = 0 if known is None else len(known.x_m)
        columns: list[list[Any]] = [] if known is None else [column.tolist() for column in known]
        if len(deltas) > known_count:
            others = self.engine.bounds(_ids(list(deltas)[known_count:]))
            more = [column.tolist() for column in others]
            columns = [a + b for a, b in zip(columns, more, strict=True)] if columns else more
        rows = zip(deltas.items(), *columns, strict=True)
        for (handle, delta), x_m, y_m, bound_m, bound_id in rows:
            delta.anchor = Point(x_m, y_m)
            delta.bound = self._kinds[kind_of(handle)].bound(handle, bound_m, bound_id)
        return list(deltas.values())

    def check(self) -> None:
        """Verify every invariant, from the definitions. O(subscriptions * objects).

        Raises
        ------
        InconsistentIndexError
            Naming the invariant that does not hold.
        """
        self.engine.check()


_NOWHERE = Point(0.0, 0.0)
_NOTHING = Reach(0.0, 0)


def _ids(handles: Iterable[int]) -> Ints:
    return np.fromiter(handles, dtype=np.int64)
