"""The ledger: objects and subscriptions in words, over the engine, which knows numbers only.

Keywords become numbers, live objects and specs become rows, and what the engine says becomes deltas.
Every operation returns the deltas it causes, at most one a subscription. Cost beyond the engine's: O(1) a
keyword, an object, a change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from engine import Choice, Engine, EngineOptions, Positions
from engine.top_k.invariants import check_engine
from engine.top_k.layout import Rows
from index.batches import Floats, InterestBatch, Ints, KeywordIds, KeywordLists, ObjectBatch
from safe_region.anchored import RegionMode
from safe_region.frame import Frame, Point
from safe_region.scoring import text_weight
from server.core.keyword_dictionary import KeywordDictionary
from server.core.object_table import ObjectTable, RemovedObject
from server.core.spec_table import SpecTable
from server.model import Cause, Delta, DropReason, Entry, LiveObject, Place, Reach, TopK
from server.store.mutations import ObjectColumns, SubscriptionColumns


class Ranked(NamedTuple):
    """One object of a search result."""

    item: LiveObject
    length_m: float
    r_m: float


class MatchingService:
    """All objects and subscriptions, and what devices hold of them.

    Parameters
    ----------
    frame
        The service area.
    options
        How the engine works.
    """

    def __init__(self, frame: Frame, options: EngineOptions | None = None) -> None:
        self.frame = frame
        self.engine = Engine(options)
        self.pending: dict[int, set[int]] = {}
        self.unasked: list[int] = []
        """Handles that have begun to pend; whoever asks their devices empties it."""
        self._dictionary = KeywordDictionary()
        self._specs = SpecTable(self.engine.subscriptions, self._dictionary)
        self.objects = ObjectTable(self.engine.objects, self._dictionary)

    @property
    def now_ms(self) -> int:
        """The present time."""
        return self.engine.now_ms

    # -- time and objects ------------------------------------------------------------------------

    def advance(self, now_ms: int) -> list[RemovedObject]:
        """Set the time; return what expired. Nobody is told: both sides know the expiry.

        Raises
        ------
        ValueError
            If time would go backwards.
        """
        gone: list[RemovedObject] = []
        self.engine.advance(now_ms, lambda due: gone.extend(self.objects.take(due.tolist())))
        return gone

    def publish(self, objects: Sequence[LiveObject], replaced: Iterable[int] = ()) -> list[Delta]:
        """Add objects, in place of those replaced. What has to be asked first is in `pending`."""
        deltas: dict[int, Delta] = {}
        self._remove(list(replaced), Cause.REPLACED, DropReason.REPLACED, deltas)
        if objects:
            batch = ObjectBatch(
                np.array([item.object_id for item in objects], dtype=np.int64),
                np.array([item.point.x_m for item in objects], dtype=np.float64),
                np.array([item.point.y_m for item in objects], dtype=np.float64),
                KeywordLists.of([self._dictionary.take(item.keywords) for item in objects]),
            )
            expiry_ms = np.array([item.expiry_ms for item in objects], dtype=np.int64)
            published = self.engine.publish(batch, expiry_ms)
            self.objects.put(objects)
            self._note(published.changes, Cause.PUBLISHED, DropReason.OUT_OF_REACH, deltas)
            for handle in published.lowered.tolist():
                deltas.setdefault(handle, self._delta(handle, Cause.PUBLISHED))
            for handle, object_id in zip(
                published.pending.handles.tolist(), published.pending.object_ids.tolist(), strict=True
            ):
                if handle not in self.pending:
                    self.pending[handle] = set()
                    self.unasked.append(handle)
                self.pending[handle].add(object_id)
        return self._dated(deltas)

    def restore_objects(self, columns: ObjectColumns) -> None:
        """Add objects while there is no subscription that is awake: nobody has to be told."""
        keywords = self._dictionary.take_all(columns.keywords)
        x_m = (columns.lon - self.frame.lon0_deg) * self.frame.x_m_per_deg  # as `Frame.project` does
        y_m = (columns.lat - self.frame.lat0_deg) * self.frame.y_m_per_deg
        self.engine.publish(ObjectBatch(columns.ids, x_m, y_m, keywords), columns.expiry_ms)
        self.objects.put_columns(columns)

    def retract(self, ids: Sequence[int]) -> list[Delta]:
        """Remove live objects."""
        deltas: dict[int, Delta] = {}
        self._remove(ids, Cause.RETRACTED, DropReason.RETRACTED, deltas)
        return self._dated(deltas)

    def _remove(
        self, ids: Sequence[int], cause: Cause, reason: DropReason, deltas: dict[int, Delta]
    ) -> None:
        if ids:
            self.objects.take(ids)
            self._note(self.engine.remove(np.array(ids, dtype=np.int64)), cause, reason, deltas)

    # -- subscriptions ---------------------------------------------------------------------------

    def subscribe(self, handle: int, spec: TopK) -> None:
        """Make a subscription known, parked; `anchor` wakes it."""
        self._subscribe(
            _ids(handle),
            self._interest(spec, self._dictionary.take(spec.keywords)),
            _ids(spec.k),
            _ids(spec.region),
            np.array([spec.alpha]),
        )

    def restore_subscriptions(self, handles: Ints, columns: SubscriptionColumns) -> None:
        """Make many subscriptions known, parked."""
        weights = [text_weight(alpha, self.frame.maxdist_m) for alpha in columns.alpha.tolist()]
        keywords = self._dictionary.take_all(columns.keywords)
        interests = InterestBatch(np.array(weights), columns.similarity.astype(np.int8), keywords)
        self._subscribe(handles, interests, columns.k, columns.region, columns.alpha)

    def _subscribe(
        self, handles: Ints, interests: InterestBatch, k: Ints, region: Ints, alpha: Floats
    ) -> None:
        self.engine.subscribe(handles, interests, k, region)
        self._specs.put(handles, alpha)

    def unsubscribe(self, handle: int) -> None:
        """Forget a subscription."""
        keywords = self._specs.keywords(handle)
        self.engine.unsubscribe(_ids(handle))
        self.pending.pop(handle, None)
        self._dictionary.give_back(keywords)

    def park(self, handle: int) -> None:
        """Stop evaluating a subscription until `anchor`. Nothing happens if it is parked already."""
        self.engine.park(_ids(handle))
        self.pending.pop(handle, None)

    def is_parked(self, handle: int) -> bool:
        """Whether a subscription waits for its device."""
        return not self.engine.is_awake(handle)

    def spec(self, handle: int) -> TopK:
        """Return what a subscription asks for."""
        return self._specs.spec(handle)

    def region(self, handle: int) -> RegionMode:
        """Return the mode of a subscription's safe region."""
        return self._specs.region(handle)

    def look(self, positions: Mapping[int, Place]) -> list[Choice] | None:
        """Retrieve and choose what `anchor` is to settle, in any thread; others may be settled."""
        if any(handle in self.pending for handle in positions):
            return None
        return self.engine.look(_places(list(positions), positions))

    def anchor(
        self, positions: Mapping[int, Place], cause: Cause, seen: list[Choice] | None = None
    ) -> list[Delta]:
        """Evaluate subscriptions anew, each at its position; wake those that are parked.

        The delta of a woken subscription is a snapshot, of any other the difference. What pends for a
        subscription is decided, and its delta says PUBLISHED. `seen` is what `look` has said.
        """
        deltas: dict[int, Delta] = {}
        if not positions:
            return []
        awake = self.engine.are_awake(np.array(list(positions), dtype=np.int64))
        for handle, is_awake in zip(positions, awake, strict=True):
            reason = Cause.PUBLISHED if handle in self.pending else cause
            deltas[handle] = self._delta(handle, reason, snapshot=not is_awake)
        asked = [handle for handle in positions if handle in self.pending]
        if asked:
            waiting = [sorted(self.pending.pop(handle)) for handle in asked]
            offsets = np.zeros(len(asked) + 1, dtype=np.int64)
            np.cumsum([len(row) for row in waiting], out=offsets[1:])
            ids = np.array([one for row in waiting for one in row], dtype=np.int64)
            changes = self.engine.locate(_places(asked, positions), offsets, ids)
            self._note(changes, cause, DropReason.OUT_OF_REACH, deltas)
        known = set(asked)
        others = [handle for handle in positions if handle not in known]
        changes = self.engine.anchor(_places(others, positions), seen)
        self._note(changes, cause, DropReason.OUT_OF_REACH, deltas)
        return self._dated(deltas)

    def snapshot(self, handle: int, cause: Cause) -> Delta:
        """Return all that the device of a subscription should hold. Not for parked ones."""
        delta = self._delta(handle, cause, snapshot=True)
        ids, shares = self.engine.buffer(handle)
        items = self.objects.ready(ids.tolist())
        delta.add = [
            Entry(items[one], r_m) for one, r_m in zip(ids.tolist(), shares.tolist(), strict=True)
        ]
        return self._dated({handle: delta})[0]

    def search(self, spec: TopK, point: Point) -> list[Ranked]:
        """Return the result of a subscription at one place, now."""
        keyword_ids = self._dictionary.take(spec.keywords)
        ranking = self.engine.search(
            self._interest(spec, keyword_ids),
            np.array([spec.k], dtype=np.int64),
            np.array([point.x_m]),
            np.array([point.y_m]),
        )
        self._dictionary.give_back(spec.keywords)
        ids = ranking.ids.tolist()
        items = self.objects.ready(ids)
        rows = zip(ids, ranking.length_m.tolist(), ranking.r_m.tolist(), strict=True)
        return [Ranked(items[object_id], length_m, r_m) for object_id, length_m, r_m in rows]

    def _interest(self, spec: TopK, keyword_ids: KeywordIds) -> InterestBatch:
        return InterestBatch(
            np.array([text_weight(spec.alpha, self.frame.maxdist_m)]),
            np.array([spec.similarity], dtype=np.int8),
            KeywordLists.of([keyword_ids]),
        )

    # -- deltas ----------------------------------------------------------------------------------

    def _delta(self, handle: int, cause: Cause, *, snapshot: bool = False) -> Delta:
        """Begin a delta; `_dated` completes it."""
        return Delta(handle, cause, _NOWHERE, _NOTHING, self.now_ms, snapshot=snapshot)

    def _note(self, changes: Rows, cause: Cause, reason: DropReason, deltas: dict[int, Delta]) -> None:
        """Enter what the engine said into the delta of each subscription."""
        columns = (changes[name].tolist() for name in ("handle", "object_id", "r_m", "is_drop"))
        added = self.objects.ready(changes["object_id"][changes["is_drop"] == 0].tolist())
        for handle, object_id, r_m, is_drop in zip(*columns, strict=True):
            delta = deltas.get(handle)
            if delta is None:
                delta = deltas[handle] = self._delta(handle, cause)
            if is_drop:
                delta.drop[object_id] = reason
            else:
                delta.add.append(Entry(added[object_id], r_m))

    def _dated(self, deltas: dict[int, Delta]) -> list[Delta]:
        """Give deltas the anchors and reaches that are true now."""
        if not deltas:
            return []
        rows = self.engine.rows(np.array(list(deltas), dtype=np.int64))
        columns = (rows[name].tolist() for name in ("x_m", "y_m", "reach_m", "reach_id"))
        for delta, x_m, y_m, reach_m, reach_id in zip(deltas.values(), *columns, strict=True):
            delta.anchor = Point(x_m, y_m)
            delta.reach = Reach(reach_m, reach_id)
        return list(deltas.values())

    def check(self) -> None:
        """Verify every invariant, from the definitions. O(subscriptions * objects).

        Raises
        ------
        InconsistentIndexError
            Naming what does not hold.
        """
        check_engine(self.engine)
        handles = set(self.engine.subscriptions.rows["id"][self.engine.subscriptions.used()].tolist())
        if not set(self.pending) <= handles:
            raise AssertionError("something pends for subscriptions that have ended")
        for handle in handles:
            if (int(self.engine.row(handle)["pending_count"]) > 0) != (handle in self.pending):
                raise AssertionError(f"ledger and engine disagree on what pends for {handle}")


_NOWHERE = Point(0.0, 0.0)
_NOTHING = Reach(0.0, 0)


def _ids(*values: int) -> Ints:
    return np.array(values, dtype=np.int64)


def _places(handles: Sequence[int], positions: Mapping[int, Place]) -> Positions:
    places = [positions[handle] for handle in handles]
    return Positions(
        np.array(handles, dtype=np.int64),
        np.array([place.point.x_m for place in places], dtype=np.float64),
        np.array([place.point.y_m for place in places], dtype=np.float64),
        np.radians(_known([place.heading_deg for place in places])),
        _known([place.speed_mps for place in places]),
        np.array([place.margin_m for place in places], dtype=np.float64),
    )


def _known(values: Sequence[float | None]) -> Floats:
    """Return numbers, NaN for what is not known."""
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
