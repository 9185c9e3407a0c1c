"""The engine.

Operations (batches; costs with the naive indexes, per item): publish and retract O(subscriptions),
anchor O(objects), advance O(log n) an expired object. Every operation returns the deltas it causes, at
most one a subscription. Within an instant the caller applies: advance, retract, publish, anchor.

Warnings: the engine trusts its caller. Input is validated, ids are new, handles exist. Expired objects
are removed by `advance` without a delta: both sides know the expiry.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from index.batches import KeywordLists, ObjectBatch, Ranking
from index.contracts import InconsistentIndexError, ObjectIndex, SubscriptionIndex
from index.naive import NaiveObjectIndex, NaiveSubscriptionIndex
from safe_region.frame import Frame, Point
from safe_region.scoring import length, text_distance, text_weight
from server.engine.changes import Changes
from server.engine.invariants import check_alive, check_buffer, check_holders
from server.engine.standing import Held, Standing, interest_batch, reach_batch
from server.engine.vocabulary import Vocabulary
from server.model import Cause, Delta, DropReason, Entry, LiveObject, Reach, TopK


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """How the engine works.

    Parameters
    ----------
    buffer_extra
        b: how many objects beyond k a device is given. More of them, fewer reports and more pushes.
    """

    buffer_extra: int = 8
    object_index: Callable[[], ObjectIndex] = NaiveObjectIndex
    subscription_index: Callable[[], SubscriptionIndex] = NaiveSubscriptionIndex


class Ranked(NamedTuple):
    """One object of a search result."""

    item: LiveObject
    length_m: float
    r_m: float


class Engine:
    """Exact top-k results for moving subscriptions, in anchored mode.

    Parameters
    ----------
    frame
        The service area.
    options
        Buffer size and the choice of indexes.
    """

    def __init__(self, frame: Frame, options: EngineOptions | None = None) -> None:
        self.frame = frame
        self.options = options or EngineOptions()
        self.now_ms = 0
        self.objects: dict[int, LiveObject] = {}
        self._standing: dict[int, Standing] = {}
        self._holders: dict[int, set[int]] = {}  # the result index: object id -> handles
        self._expiries: list[tuple[int, int]] = []  # heap of (expiry_ms, object id)
        self._vocabulary = Vocabulary()
        self._object_index = self.options.object_index()
        self._subscription_index = self.options.subscription_index()

    # -- time ------------------------------------------------------------------------------------

    def advance(self, now_ms: int) -> list[LiveObject]:
        """Set the time and remove what expires by it, from buffers too. Nobody is told.

        Returns
        -------
        list of LiveObject
            What expired.

        Raises
        ------
        ValueError
            If time would go backwards.
        """
        if now_ms < self.now_ms:
            raise ValueError(f"now_ms is {now_ms}, must be at least {self.now_ms}")
        self.now_ms = now_ms
        due = []
        while self._expiries and self._expiries[0][0] <= now_ms:
            _, object_id = heapq.heappop(self._expiries)
            if object_id in self.objects:
                due.append(object_id)
        return self._remove(due, lambda _handle, _object_id: None)

    # -- objects ---------------------------------------------------------------------------------

    def publish(self, objects: Sequence[LiveObject], replaced: Iterable[int] = ()) -> list[Delta]:
        """Add objects, in place of those replaced."""
        changes = Changes(Cause.PUBLISHED)
        self._remove(list(replaced), changes.dropper(DropReason.REPLACED))
        if not objects:
            return changes.deltas(self._standing, self.now_ms)
        batch = ObjectBatch(
            np.array([item.object_id for item in objects], dtype=np.int64),
            np.array([item.point.x_m for item in objects], dtype=np.float64),
            np.array([item.point.y_m for item in objects], dtype=np.float64),
            KeywordLists.of([self._vocabulary.take(item.keywords) for item in objects]),
        )
        self._object_index.insert(batch)
        for item in objects:
            self.objects[item.object_id] = item
            heapq.heappush(self._expiries, (item.expiry_ms, item.object_id))
        matches = self._subscription_index.match(batch)
        for i, item in enumerate(objects):
            for handle in matches.row(i).tolist():
                changes.add(handle, Entry(item, self._hold(handle, item)))
        self._shrink(changes)
        return changes.deltas(self._standing, self.now_ms)

    def retract(self, ids: Sequence[int]) -> list[Delta]:
        """Remove live objects."""
        changes = Changes(Cause.RETRACTED)
        self._remove(ids, changes.dropper(DropReason.RETRACTED))
        return changes.deltas(self._standing, self.now_ms)

    def _remove(self, ids: Sequence[int], dropped: Callable[[int, int], None]) -> list[LiveObject]:
        """Remove live objects everywhere; call `dropped(handle, id)` for every buffer they leave."""
        if not ids:
            return []
        self._object_index.remove(np.array(ids, dtype=np.int64))
        removed = []
        for object_id in ids:
            item = self.objects.pop(object_id)
            removed.append(item)
            self._vocabulary.give_back(item.keywords)
            for handle in self._holders.pop(object_id, ()):
                del self._standing[handle].buffer[object_id]
                dropped(handle, object_id)
        return removed

    def _shrink(self, changes: Changes) -> None:
        """Lower the reach of buffers that arrivals have made too large."""
        extra = self.options.buffer_extra
        moved = []
        for handle in changes.gained():
            standing = self._standing[handle]
            keep = standing.spec.k + extra
            # Twice the extra before shrinking: a shrink costs a move in the index.
            if len(standing.buffer) <= keep + extra:
                continue
            order = sorted((held.length_m, object_id) for object_id, held in standing.buffer.items())
            standing.reach = Reach(*order[keep])
            for _, object_id in order[keep:]:
                del standing.buffer[object_id]
                self._release(object_id, handle)
                changes.drop(handle, object_id, DropReason.OUT_OF_REACH)
            moved.append(standing)
        if moved:
            self._subscription_index.move(reach_batch(moved))

    # -- subscriptions ---------------------------------------------------------------------------

    def subscribe(self, handle: int, spec: TopK) -> None:
        """Make a subscription known, parked; `anchor` wakes it."""
        self._standing[handle] = Standing(
            handle,
            spec,
            self._vocabulary.take(spec.keywords),
            text_weight(spec.alpha, self.frame.maxdist_m),
        )

    def unsubscribe(self, handle: int) -> None:
        """Forget a subscription."""
        self.park(handle)
        standing = self._standing.pop(handle)
        self._vocabulary.give_back(standing.spec.keywords)

    def park(self, handle: int) -> None:
        """Stop evaluating a subscription until `anchor`. Nothing happens if it is parked already."""
        standing = self._standing[handle]
        if standing.parked:
            return
        self._subscription_index.remove(np.array([handle], dtype=np.int64))
        for object_id in standing.buffer:
            self._release(object_id, handle)
        standing.buffer = {}
        standing.parked = True

    def is_parked(self, handle: int) -> bool:
        """Whether a subscription waits for its device."""
        return self._standing[handle].parked

    def spec(self, handle: int) -> TopK:
        """Return what a subscription asks for."""
        return self._standing[handle].spec

    def anchor(self, positions: dict[int, Point], cause: Cause) -> list[Delta]:
        """Evaluate subscriptions anew, each at its position; wake those that are parked.

        The delta of a woken subscription is a snapshot, of any other the difference.
        """
        if not positions:
            return []
        standings = [self._standing[handle] for handle in positions]
        keep = [standing.spec.k + self.options.buffer_extra for standing in standings]
        ranking = self._rank(standings, list(positions.values()), [count + 1 for count in keep])
        woken = [standing for standing in standings if standing.parked]
        deltas = [
            self._anchored(standing, positions[standing.handle], ranking, i, keep[i], cause)
            for i, standing in enumerate(standings)
        ]
        known = {standing.handle for standing in woken}
        if woken:
            self._subscription_index.insert(reach_batch(woken), interest_batch(woken))
        moved = [standing for standing in standings if standing.handle not in known]
        if moved:
            self._subscription_index.move(reach_batch(moved))
        return deltas

    def _anchored(
        self, standing: Standing, point: Point, ranking: Ranking, row: int, keep: int, cause: Cause
    ) -> Delta:
        """Give one subscription its new anchor, reach and buffer; say what changed."""
        start, end = int(ranking.offsets[row]), int(ranking.offsets[row + 1])
        ids = ranking.ids[start:end].tolist()
        lengths = ranking.length_m[start:end].tolist()
        shares = ranking.r_m[start:end].tolist()
        standing.anchor = point
        if len(ids) > keep:
            standing.reach = Reach(lengths[keep], ids[keep])
        else:
            standing.reach = Reach(math.inf, 0)
        old = standing.buffer
        standing.buffer = {
            object_id: Held(length_m, r_m)
            for object_id, length_m, r_m in zip(ids[:keep], lengths[:keep], shares[:keep], strict=True)
        }
        delta = Delta(
            standing.handle, cause, point, standing.reach, self.now_ms, snapshot=standing.parked
        )
        standing.parked = False
        for object_id in old:
            if object_id not in standing.buffer:
                self._release(object_id, standing.handle)
                delta.drop[object_id] = DropReason.OUT_OF_REACH
        for object_id, held in standing.buffer.items():
            if object_id not in old:
                self._holders.setdefault(object_id, set()).add(standing.handle)
                delta.add.append(Entry(self.objects[object_id], held.r_m))
        return delta

    def snapshot(self, handle: int, cause: Cause) -> Delta:
        """Return all that the device of a subscription should hold. Not for parked ones."""
        standing = self._standing[handle]
        add = [Entry(self.objects[key], held.r_m) for key, held in standing.buffer.items()]
        return Delta(handle, cause, standing.anchor, standing.reach, self.now_ms, add, snapshot=True)

    def search(self, spec: TopK, point: Point) -> list[Ranked]:
        """Return the result of a subscription at one place, now."""
        keyword_ids = self._vocabulary.take(spec.keywords)
        weight_m = text_weight(spec.alpha, self.frame.maxdist_m)
        asked = Standing(0, spec, keyword_ids, weight_m)
        ranking = self._rank([asked], [point], [spec.k])
        self._vocabulary.give_back(spec.keywords)
        rows = zip(ranking.ids.tolist(), ranking.length_m.tolist(), ranking.r_m.tolist(), strict=True)
        return [Ranked(self.objects[object_id], length_m, r_m) for object_id, length_m, r_m in rows]

    def _rank(
        self, standings: Sequence[Standing], points: Sequence[Point], counts: Sequence[int]
    ) -> Ranking:
        return self._object_index.best(
            interest_batch(standings),
            np.array([point.x_m for point in points], dtype=np.float64),
            np.array([point.y_m for point in points], dtype=np.float64),
            np.array(counts, dtype=np.int64),
            np.full(len(points), math.inf),
        )

    def _hold(self, handle: int, item: LiveObject) -> float:
        """Put a matching object into a buffer; return its text share."""
        standing = self._standing[handle]
        spec = standing.spec
        common = len(set(spec.keywords).intersection(item.keywords))
        r_m = standing.weight_m * text_distance(
            spec.similarity, common, len(spec.keywords), len(item.keywords)
        )
        anchor = standing.anchor
        length_m = length(anchor.x_m - item.point.x_m, anchor.y_m - item.point.y_m, r_m)
        standing.buffer[item.object_id] = Held(length_m, r_m)
        self._holders.setdefault(item.object_id, set()).add(handle)
        return r_m

    def _release(self, object_id: int, handle: int) -> None:
        holders = self._holders[object_id]
        holders.discard(handle)
        if not holders:
            del self._holders[object_id]

    def check(self) -> None:
        """Verify every invariant, from the definitions. O(subscriptions * objects).

        Raises
        ------
        InconsistentIndexError
            Naming what does not hold.
        """
        self._object_index.check()
        self._subscription_index.check()
        awake = [standing for standing in self._standing.values() if not standing.parked]
        if len(self._subscription_index) != len(awake):
            raise InconsistentIndexError("the subscription index does not hold what is awake")
        if len(self._object_index) != len(self.objects):
            raise InconsistentIndexError("the object index does not hold what is alive")
        check_alive(self.objects.values(), self.now_ms)
        check_holders(self._holders, awake)
        for standing in awake:
            check_buffer(standing, self.objects.values(), self.options.buffer_extra)
