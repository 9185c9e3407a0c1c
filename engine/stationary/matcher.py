"""The matcher of stationary top-k subscriptions: the server alone keeps their results right.

As Skype has it (skype.txt sections 4 to 6): a subscription index says whom a new object concerns, a
buffer of objects above a threshold refills a result when one of it goes, and is built anew from the
object index when fewer than k are left in it. The device holds its result, k objects, and nothing else,
and is told of each change of it; what k newer and better ones beat is not even in the buffer.

Operations (batches; costs per item beyond those of the two indexes): publish O(entries) a match, remove
O(entries) a holder, evaluate O(entries^2).
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from engine.contracts import CHANGE_DTYPE, Bools, Bounds, Positions, Published, Rows, grouped
from engine.objects import Objects
from engine.options import EngineOptions, StationaryPolicy
from engine.stationary import update_kernels as kernels
from engine.stationary.history import History
from engine.stationary.invariants import check_stationary
from engine.stationary.layout import NOBODY, NOTHING
from engine.stationary.policies import (
    N_FACTOR_MAX,
    Cost,
    InitialBuffers,
    cheapest_counts,
    initial_buffers,
    steady_counts,
)
from engine.stationary.tables import StationaryTables
from engine.windows import Lasts
from index.batches import Floats, InterestBatch, Ints, KeywordLists, ObjectBatch, Ranking
from index.tables.slots import Slots

_LOOK_S = 5e-9
"""About what a look at an entry takes: the unit of costs."""
_RETRIEVAL_FIRST = 10_000.0
"""Of a retrieval, before any was measured: fifty microseconds."""
_UPDATE_FIRST = 400.0
"""Of an object that comes into a buffer, or leaves it, before it was measured: two microseconds."""
_REMEMBERED = 10_000
"""So many of the last ones make their mean."""


class StationarySpecs(NamedTuple):
    """What subscriptions ask for, a row each."""

    interests: InterestBatch
    k: Ints
    lasts: Lasts | None = None
    """Their windows; None for no windows."""
    scale_m: Floats | None = None
    """What distances are divided by for scores; None for `EngineOptions.maxdist_m`."""


class StationaryMatcher:
    """See `engine.contracts.Matcher`.

    Parameters
    ----------
    objects
        What is alive.
    options
        The indexes, and how much buffers hold.
    """

    def __init__(self, objects: Objects, options: EngineOptions) -> None:
        self.tables = StationaryTables(objects, options)
        self.subscriptions = self.tables.subscriptions
        self.windows = objects.windows
        self.weights = objects.weights
        self.policy = options.stationary
        self.refills = 0
        """How many buffers were built anew because too few were left, since the beginning."""
        self._short: list[Slots] = []
        """Subscriptions whose buffers are to be built anew when the objects that go are gone."""
        self._shrunk: list[Slots] = []
        """Subscriptions that have lost one of k results to expiry, since they were taken last."""
        self._objects = objects
        self._maxdist_m = options.maxdist_m
        self._retrievals = Cost(_RETRIEVAL_FIRST, _REMEMBERED)
        self._updates = Cost(_UPDATE_FIRST, _REMEMBERED)
        self._history = History() if self.policy is StationaryPolicy.CSKYBAND else None
        self._share = options.stationary_share
        self._factor = options.stationary_factor

    def __len__(self) -> int:
        return len(self.subscriptions)

    # -- subscriptions ---------------------------------------------------------------------------

    def subscribe(self, handles: Ints, specs: StationarySpecs) -> None:
        """Make subscriptions known, parked; `evaluate` wakes them. Handles were never used before."""
        interests, k, lasts, scale_m = specs
        windows = self.windows.take(lasts or Lasts.none(len(handles)), self._objects.now_ms)
        nothing = np.zeros(len(handles))
        self.subscriptions.append(
            handles,
            interests.keywords,
            {
                "weight_m": interests.weight_m,
                "scale_m": np.full(len(handles), self._maxdist_m) if scale_m is None else scale_m,
                "similarity": interests.similarity,
                "k": k,
                "window": windows,
                "oldest_left_out": np.full(len(handles), NOBODY),
                "cost": np.full(len(handles), np.nan),
                "entry_count": nothing,
                "entry_room": nothing,
                "is_awake": nothing,
                "index": nothing,
            },
        )

    def unsubscribe(self, handles: Ints) -> None:
        """Forget subscriptions."""
        self.park(handles)
        slots = self.subscriptions.remove(handles)
        if self._history is not None:
            self._history.forget(slots)
        self.windows.give_back(self.subscriptions.rows["window"][slots])

    def park(self, handles: Ints) -> None:
        """Stop evaluating subscriptions until `evaluate`. Nothing happens to those parked already."""
        slots = self.subscriptions.slots(handles)
        slots = slots[self.subscriptions.rows["is_awake"][slots] == 1]
        if len(slots):
            self.tables.park(slots)

    def are_awake(self, handles: Ints) -> Bools:
        """Whether each subscription is evaluated."""
        awake: Bools = self.subscriptions.rows["is_awake"][self.subscriptions.slots(handles)] == 1
        return awake

    def are_pending(self, handles: Ints) -> Bools:
        """Nothing waits for the position of a device that stands."""
        return np.zeros(len(handles), dtype=np.bool_)

    def keyword_lists(self, handles: Ints) -> KeywordLists:
        """Return the keywords of subscriptions."""
        return self.subscriptions.keyword_lists(self.subscriptions.slots(handles))

    # -- evaluation ------------------------------------------------------------------------------

    def retrieve(self, positions: Positions) -> None:
        """Nothing is looked up before."""

    def evaluate(self, positions: Positions, retrieved: object | None = None) -> Rows:  # noqa: ARG002
        """Evaluate subscriptions where they stand now; wake those that are parked."""
        slots = self.subscriptions.slots(positions.handles)
        rows = self.subscriptions.rows
        rows["x_m"][slots] = positions.x_m
        rows["y_m"][slots] = positions.y_m
        return self._build(slots)

    def _build(self, slots: Slots) -> Rows:
        """Build buffers anew from the object index; return how results change."""
        if not len(slots):
            return np.empty(0, dtype=CHANGE_DTYPE)
        begin = self._begin(slots)
        rows, k = self.subscriptions.rows, self.subscriptions.rows["k"][slots].astype(np.int64)
        self.tables.make_room(slots, np.diff(begin.ranking.offsets))
        changes = np.empty(2 * int(k.sum()), dtype=CHANGE_DTYPE)
        emitted = kernels.settle(
            self._objects.table.rows,
            self._objects.table.ids.keys,
            self._objects.table.ids.values,
            rows,
            self.tables.entries,
            slots,
            begin.ranking.offsets,
            begin.ranking.ids,
            self._objects.table.rows["expiry_ms"][self._objects.table.slots(begin.ranking.ids)],
            begin.ranking.length_m,
            begin.ranking.r_m,
            begin.reach_m,
            begin.reach_id,
            int(self.policy is not StationaryPolicy.KMAX),
            changes,
            np.empty(int(k.max()), dtype=np.int64),
        )
        self.tables.enter(slots)
        return grouped(changes[:emitted])

    def _begin(self, slots: Slots) -> InitialBuffers:
        """Return what buffers begin with, as the policy has it."""
        k = self.subscriptions.rows["k"][slots].astype(np.int64)
        cost = self.subscriptions.rows["cost"][slots].astype(np.float64)
        cost = np.where(np.isnan(cost), self._retrievals.mean, cost)
        if self._history is not None:
            count = cheapest_counts(k, cost, self._history.factors(slots), self._history.ratio)
            self._history.note_built(slots, count, len(self._objects))
            return initial_buffers(self._best_of_each(slots, count + 1), count)
        if self.policy is StationaryPolicy.COST:
            count = steady_counts(k, cost / (2.0 * self._updates.mean))
            began_s = time.process_time()
            best = self.tables.best(slots, count + 1)
            spent_s = (time.process_time() - began_s) / len(slots)
            self._learn_cost(slots, np.full(len(slots), spent_s))
            return initial_buffers(best, count)
        if self.policy is StationaryPolicy.KMAX:
            return initial_buffers(self.tables.best(slots, self._factor * k + 1), self._factor * k)
        return self._begin_by_score(slots, k)

    def _best_of_each(self, slots: Slots, count: Ints) -> Ranking:
        """Return the best objects of each, looked for one after the other, and learn what each takes."""
        found: list[Ranking] = []
        ends_s = [time.process_time()]
        for row in range(len(slots)):
            found.append(self.tables.best(slots[row : row + 1], count[row : row + 1]))
            ends_s.append(time.process_time())
        self._learn_cost(slots, np.diff(ends_s))
        return Ranking.join(found)

    def _begin_by_score(self, slots: Slots, k: Ints) -> InitialBuffers:
        """Return all that has a share of the k-th best score, if that is not too much."""
        first = self.tables.best(slots, k)
        found = np.diff(first.offsets)
        kth_m = np.full(len(slots), np.inf)
        has_k = found >= k
        kth_m[has_k] = first.length_m[first.offsets[1:][has_k] - 1]
        theta_m = self._below(slots, kth_m)
        most = N_FACTOR_MAX * k
        best = initial_buffers(self.tables.best(slots, most + 1, theta_m), most)
        is_within = has_k & np.isinf(best.reach_m)
        reach_m = np.where(is_within, theta_m, best.reach_m)
        # What lies at theta itself is in it: the reach is behind it.
        return InitialBuffers(best.ranking, reach_m, np.where(is_within, NOBODY, best.reach_id))

    def _below(self, slots: Slots, kth_m: Floats) -> Floats:
        """Return lengths of the scores that are a share of those of some lengths; infinite ones stay."""
        # A score of 1 - length / unit is one of similarity: larger is better.
        rows = self.subscriptions.rows
        unit_m = rows["scale_m"][slots] + rows["weight_m"][slots]
        score = np.maximum(0.0, 1.0 - kth_m / unit_m)
        theta_m: Floats = np.maximum(kth_m, unit_m * (1.0 - self._share * score))
        return np.where(np.isinf(kth_m), np.inf, theta_m)

    def _learn_cost(self, slots: Slots, spent_s: Floats) -> None:
        """Note what each retrieval has taken: half of what was known, half of what it is now."""
        rows = self.subscriptions.rows
        now = spent_s / _LOOK_S
        before = rows["cost"][slots]
        rows["cost"][slots] = np.where(np.isnan(before), now, (before + now) / 2.0)
        self._retrievals.note(float(now.sum()), len(slots))

    # -- objects ---------------------------------------------------------------------------------

    def publish(self, objects: ObjectBatch, slots: Slots) -> Published:
        """Take note of new objects, which are in the table already."""
        began_s = time.process_time()
        nobody = np.empty(0, dtype=np.int64)
        matches = self.tables.indexes.match(objects, self._objects.norms_of(slots))
        which = np.repeat(np.arange(len(objects)), np.diff(matches.offsets))
        owners = self.subscriptions.slots(matches.ids)
        counts = self.windows.do_count(objects.ids[which], self.subscriptions.rows["window"][owners])
        which, owners = which[counts], owners[counts]
        if self._history is not None:
            self._history.note_arrivals(len(objects), owners)
        if not len(owners):
            return Published(np.empty(0, dtype=CHANGE_DTYPE), nobody, nobody)
        order = np.lexsort((objects.ids[which], owners))
        owners, new_slots = owners[order], slots[which[order]]
        touched, more = np.unique(owners, return_counts=True)
        rows = self.subscriptions.rows
        self.tables.make_room(touched, rows["entry_count"][touched] + more)
        changes = np.empty(2 * len(owners), dtype=CHANGE_DTYPE)
        lowered = np.empty(len(owners), dtype=np.int32)
        emitted, lowered_count = kernels.admit(
            self._objects.table.rows,
            self._objects.table.pool,
            rows,
            self.subscriptions.pool,
            self.weights.squares,
            self.tables.entries,
            owners,
            new_slots,
            self._factor if self.policy is StationaryPolicy.KMAX else 0,
            changes,
            lowered,
        )
        if lowered_count:
            self.tables.move(np.unique(lowered[:lowered_count]))
        self._updates.note((time.process_time() - began_s) / _LOOK_S, len(owners))
        return Published(grouped(changes[:emitted], undo=True), nobody, nobody)

    def remove(self, slots: Slots, *, notify: bool) -> Rows:
        """Take objects out of buffers; what takes their place in results is told in any case."""
        return self._take_out(slots, NOTHING, notify=notify)

    def leave(self, slots: Slots, window: int, *, notify: bool) -> Rows:
        """Take objects out of the buffers of subscriptions of a window, as `remove` does."""
        return self._take_out(slots, window, notify=notify)

    def _take_out(self, slots: Slots, window: int, *, notify: bool) -> Rows:
        if self._history is not None:
            self._history.note_gone(len(slots))
        began_s = time.process_time()
        rows = self._objects.table.rows
        count = kernels.count_entries(rows, self.tables.entries, slots)
        if not count:
            return np.empty(0, dtype=CHANGE_DTYPE)
        changes = np.empty(2 * count, dtype=CHANGE_DTYPE)
        short = np.empty(count, dtype=np.int32)
        shrunk = np.empty(count, dtype=np.int32)
        emitted, short_count, shrunk_count = kernels.remove(
            rows,
            self._objects.table.pool,
            self.subscriptions.rows,
            self.subscriptions.pool,
            self.weights.squares,
            self.tables.entries,
            slots,
            window,
            int(notify),
            self._objects.now_ms,
            changes,
            short,
            shrunk,
        )
        self._short.append(short[:short_count])
        self._shrunk.append(shrunk[:shrunk_count])
        self._updates.note((time.process_time() - began_s) / _LOOK_S, count)
        return changes[:emitted]

    def refill(self) -> Rows:
        """Build buffers anew of which too little is left."""
        if not self._short:
            return np.empty(0, dtype=CHANGE_DTYPE)
        slots = np.unique(np.concatenate(self._short))
        self._short.clear()
        self.refills += len(slots)
        return self._build(slots)

    def take_shrunk(self) -> Ints:
        """Return handles of subscriptions that had k results, and have fewer now for what expired.

        Nothing takes the place of that: it is all there is, which their devices cannot know.
        """
        if not self._shrunk:
            return np.empty(0, dtype=np.int64)
        slots = np.unique(np.concatenate(self._shrunk))
        self._shrunk.clear()
        rows = self.subscriptions.rows[slots]
        handles: Ints = rows["id"][(rows["is_awake"] == 1) & (rows["entry_count"] < rows["k"])]
        return handles

    # -- what devices hold -----------------------------------------------------------------------

    def held(self, handle: int) -> tuple[Ints, Floats]:
        """Return ids and text shares of the result of a subscription."""
        return self.tables.results(int(self.subscriptions.slots(np.array([handle], dtype=np.int64))[0]))

    def bounds(self, handles: Ints) -> Bounds:
        """Return where subscriptions stand: there, devices hold all that they need."""
        rows = self.subscriptions.rows[self.subscriptions.slots(handles)]
        reach_m, reach_id = np.full(len(handles), np.inf), np.zeros(len(handles), dtype=np.int64)
        return Bounds(rows["x_m"], rows["y_m"], reach_m, reach_id)

    def generation(self, handle: int) -> int:
        """Return that of the weights a subscription was evaluated by; 0 if its keywords count alike."""
        slot = self.subscriptions.slots(np.array([handle], dtype=np.int64))[0]
        number = int(self.subscriptions.rows["index"][slot])
        return self.weights.generations[number - 1] if number else 0

    def search(self, specs: StationarySpecs, x_m: Floats, y_m: Floats) -> Ranking:
        """Return the k best at each place, now, for nobody in particular."""
        lasts = specs.lasts or Lasts.none(len(specs.k))
        first_ids = self.windows.first_ids_of(lasts, self._objects.now_ms)
        unbounded = np.full(len(specs.k), np.inf)
        interests = self._objects.weighed(specs.interests)
        return self._objects.index.best(interests, x_m, y_m, specs.k, unbounded, first_ids)

    def outdated(self, count: int) -> Positions:
        """Return where some subscriptions, at most so many, were evaluated by weights of before."""
        return self.tables.outdated(count)

    # -- for tests and operators -----------------------------------------------------------------

    def memory_bytes(self) -> int:
        """Size of all arrays."""
        return self.tables.memory_bytes()

    def check(self) -> None:
        """Verify every invariant from the definitions. O(subscriptions * objects).

        Raises
        ------
        InconsistentIndexError
            Naming what does not hold.
        """
        check_stationary(self.tables, self.policy)
