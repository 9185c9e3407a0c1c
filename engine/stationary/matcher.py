"""Match stationary top-k subscriptions: the server alone keeps their results correct.

As in Skype (skype.txt sections 4 to 6), a subscription index finds the subscriptions that a new object
affects. A buffer of objects above a threshold refills a result when one of its objects goes. The matcher
rebuilds a buffer from the object index when fewer than k objects are left in it. The device holds its
result, k objects, and nothing else, and is notified of each change of it. Objects dominated by k newer
and better ones are not even in the buffer.

Operations (batches; costs per item beyond those of the two indexes): publish O(entries) a match, remove
O(entries) a holder, evaluate O(entries^2).
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from engine.contracts import CHANGE_DTYPE, Bools, Bounds, Positions, Published, Rows, grouped
from engine.layout import NO_WINDOW
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
"""The approximate time of a look at an entry, in seconds: the unit of costs."""
_RETRIEVAL_FIRST = 10_000.0
"""The assumed cost of a retrieval before any was measured: fifty microseconds."""
_UPDATE_FIRST = 400.0
"""The assumed cost of an object that enters or leaves a buffer, before it was measured: two
microseconds."""
_REMEMBERED = 10_000
"""Means are over about this many of the last measurements."""


class StationarySpecs(NamedTuple):
    """The specs of subscriptions, a row each."""

    interests: InterestBatch
    k: Ints
    lasts: Lasts | None = None
    """Their windows; None for no windows."""
    scale_m: Floats | None = None
    """The divisor of distances in scores; None for `EngineOptions.maxdist_m`."""


class StationaryMatcher:
    """See `engine.contracts.Matcher`.

    Parameters
    ----------
    objects
        The live objects.
    options
        The indexes, and the policy for the size of buffers.
    """

    def __init__(self, objects: Objects, options: EngineOptions) -> None:
        self.tables = StationaryTables(objects, options)
        self.subscriptions = self.tables.subscriptions
        self.windows = objects.windows
        self.weights = objects.weights
        self.policy = options.stationary
        self.refills = 0
        """The number of buffers that were rebuilt since the start because too few objects were left."""
        self._short: list[Slots] = []
        """Subscriptions with buffers to rebuild after the removed objects have left the table."""
        self._shrunk: list[Slots] = []
        """Subscriptions that lost one of k results to expiry, since the last call of `take_shrunk`."""
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
        """Add subscriptions, parked; `evaluate` wakes them. Their handles were never used before."""
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
        """Remove subscriptions."""
        self.park(handles)
        slots = self.subscriptions.remove(handles)
        if self._history is not None:
            self._history.forget(slots)
        self.windows.give_back(self.subscriptions.rows["window"][slots])

    def park(self, handles: Ints) -> None:
        """Stop evaluating subscriptions until `evaluate`. Those that are already parked do not change."""
        slots = self.subscriptions.slots(handles)
        slots = slots[self.subscriptions.rows["is_awake"][slots] == 1]
        if len(slots):
            self.tables.park(slots)

    def are_awake(self, handles: Ints) -> Bools:
        """Return whether each subscription is evaluated."""
        awake: Bools = self.subscriptions.rows["is_awake"][self.subscriptions.slots(handles)] == 1
        return awake

    def are_pending(self, handles: Ints) -> Bools:
        """Return false for each: no object waits for the position of a stationary device."""
        return np.zeros(len(handles), dtype=np.bool_)

    def keyword_lists(self, handles: Ints) -> KeywordLists:
        """Return the keywords of subscriptions."""
        return self.subscriptions.keyword_lists(self.subscriptions.slots(handles))

    # -- evaluation ------------------------------------------------------------------------------

    def retrieve(self, positions: Positions) -> None:
        """Look up nothing in advance."""

    def evaluate(self, positions: Positions, retrieved: object | None = None) -> Rows:  # noqa: ARG002
        """Evaluate subscriptions at their current fixed places; wake those that are parked."""
        slots = self.subscriptions.slots(positions.handles)
        rows = self.subscriptions.rows
        rows["x_m"][slots] = positions.x_m
        rows["y_m"][slots] = positions.y_m
        return self._build(slots)

    def _build(self, slots: Slots) -> Rows:
        """Rebuild buffers from the object index; return the changes of results."""
        if not len(slots):
            return np.empty(0, dtype=CHANGE_DTYPE)
        ranking, reach_m, reach_id = self._begin(slots)
        rows, k = self.subscriptions.rows, self.subscriptions.rows["k"][slots].astype(np.int64)
        self.tables.make_room(slots, np.diff(ranking.offsets))
        changes = np.empty(2 * int(k.sum()), dtype=CHANGE_DTYPE)
        table = self._objects.table
        emitted = kernels.settle(
            table.rows,
            self.tables.heads(),
            table.ids.keys,
            table.ids.values,
            rows,
            self.tables.entries,
            slots,
            kernels.Best(
                ranking.offsets,
                ranking.ids,
                table.rows["expiry_ms"][table.slots(ranking.ids)],
                ranking.length_m,
                ranking.r_m,
                reach_m,
                reach_id,
            ),
            int(self.policy is not StationaryPolicy.KMAX),
            changes,
            np.empty(int(k.max()), dtype=np.int64),
        )
        self.tables.enter(slots)
        return grouped(changes[:emitted])

    def _begin(self, slots: Slots) -> InitialBuffers:
        """Return the initial buffers, according to the policy."""
        k = self.subscriptions.rows["k"][slots].astype(np.int64)
        cost = self.subscriptions.rows["cost"][slots].astype(np.float64)
        cost = np.where(np.isnan(cost), self._retrievals.mean, cost)
        if self._history is not None:
            numbers = self.subscriptions.rows["window"][slots]
            ratio = np.where(numbers == NO_WINDOW, self._history.ratio, 1.0)
            count = cheapest_counts(k, cost, self._history.factors(slots), ratio)
            self._history.note_built(slots, count, self.windows.counts_of(numbers))
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
        """Search the best objects of each subscription in turn, and record the cost of each search."""
        found: list[Ranking] = []
        ends_s = [time.process_time()]
        for row in range(len(slots)):
            found.append(self.tables.best(slots[row : row + 1], count[row : row + 1]))
            ends_s.append(time.process_time())
        self._learn_cost(slots, np.diff(ends_s))
        return Ranking.join(found)

    def _begin_by_score(self, slots: Slots, k: Ints) -> InitialBuffers:
        """Return the objects with a fraction of the k-th best score, unless there are too many."""
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
        # The buffer includes objects at theta itself: the reach is behind it.
        return InitialBuffers(best.ranking, reach_m, np.where(is_within, NOBODY, best.reach_id))

    def _below(self, slots: Slots, kth_m: Floats) -> Floats:
        """Return lengths of scores that are a fraction of those of some lengths; infinite ones stay."""
        # A score of 1 - length / unit is a similarity: larger is better.
        rows = self.subscriptions.rows
        unit_m = rows["scale_m"][slots] + rows["weight_m"][slots]
        score = np.maximum(0.0, 1.0 - kth_m / unit_m)
        theta_m: Floats = np.maximum(kth_m, unit_m * (1.0 - self._share * score))
        return np.where(np.isinf(kth_m), np.inf, theta_m)

    def _learn_cost(self, slots: Slots, spent_s: Floats) -> None:
        """Update the cost of retrievals: the mean of the previous estimate and the new measurement."""
        rows = self.subscriptions.rows
        now = spent_s / _LOOK_S
        before = rows["cost"][slots]
        rows["cost"][slots] = np.where(np.isnan(before), now, (before + now) / 2.0)
        self._retrievals.note(float(now.sum()), len(slots))

    # -- objects ---------------------------------------------------------------------------------

    def publish(self, objects: ObjectBatch, slots: Slots) -> Published:
        """Match new objects, which are already in the table."""
        began_s = time.process_time()
        matches = self.tables.indexes.match(objects, self._objects.norms_of(slots))
        if not len(matches.ids):  # as with most objects
            if self._history is not None:
                self._history.note_arrivals(len(objects), np.empty(0, dtype=np.int32))
            return Published.nothing()
        which = np.repeat(np.arange(len(objects)), np.diff(matches.offsets))
        owners = self.subscriptions.slots(matches.ids)
        counts = self.windows.do_count(objects.ids[which], self.subscriptions.rows["window"][owners])
        which, owners = which[counts], owners[counts]
        if self._history is not None:
            self._history.note_arrivals(len(objects), owners)
        if not len(owners):
            return Published.nothing()
        order = np.lexsort((objects.ids[which], owners))
        owners, new_slots = owners[order], slots[which[order]]
        touched, more = np.unique(owners, return_counts=True)
        rows = self.subscriptions.rows
        self.tables.make_room(touched, rows["entry_count"][touched] + more)
        changes = np.empty(2 * len(owners), dtype=CHANGE_DTYPE)
        lowered = np.empty(len(owners), dtype=np.int32)
        emitted, lowered_count = kernels.admit(
            self._objects.table.rows,
            self.tables.heads(),
            rows,
            self._objects.texts_with(self.subscriptions),
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
        return Published.nothing()._replace(changes=grouped(changes[:emitted], undo=True))

    def remove(self, slots: Slots, *, notify: bool) -> Rows:
        """Remove objects from buffers; their replacements in results are reported in any case."""
        if self._history is not None:
            self._history.note_gone(len(slots))
        return self._take_out(slots, NOTHING, notify=notify)

    def leave(self, slots: Slots, window: int, *, notify: bool) -> Rows:
        """Remove objects from the buffers of subscriptions of a window, as `remove` does."""
        return self._take_out(slots, window, notify=notify)

    def _take_out(self, slots: Slots, window: int, *, notify: bool) -> Rows:
        began_s = time.process_time()
        rows = self._objects.table.rows
        count = kernels.count_entries(self.tables.heads(), self.tables.entries, slots)
        if not count:
            return np.empty(0, dtype=CHANGE_DTYPE)
        changes = np.empty(2 * count, dtype=CHANGE_DTYPE)
        short = np.empty(count, dtype=np.int32)
        shrunk = np.empty(count, dtype=np.int32)
        emitted, short_count, shrunk_count = kernels.remove(
            rows,
            self.tables.heads(),
            self.subscriptions.rows,
            self._objects.texts_with(self.subscriptions),
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
        """Rebuild buffers in which too few objects are left."""
        if not self._short:
            return np.empty(0, dtype=CHANGE_DTYPE)
        slots = np.unique(np.concatenate(self._short))
        self._short.clear()
        self.refills += len(slots)
        return self._build(slots)

    def take_shrunk(self) -> Ints:
        """Return handles of subscriptions that had k results, and have fewer because some expired.

        No object replaces the expired ones: there are no others, which their devices cannot know.
        """
        if not self._shrunk:
            return np.empty(0, dtype=np.int64)
        slots = np.unique(np.concatenate(self._shrunk))
        self._shrunk.clear()
        rows = self.subscriptions.rows[slots]
        handles: Ints = rows["id"][(rows["is_awake"] == 1) & (rows["entry_count"] < rows["k"])]
        return handles

    # -- buffers of devices ----------------------------------------------------------------------

    def held(self, handle: int) -> tuple[Ints, Floats]:
        """Return ids and constant parts of the result of a subscription."""
        return self.tables.results(int(self.subscriptions.slots(np.array([handle], dtype=np.int64))[0]))

    def bounds(self, handles: Ints) -> Bounds:
        """Return the fixed places of subscriptions: there, devices hold all objects that they need."""
        rows = self.subscriptions.rows[self.subscriptions.slots(handles)]
        reach_m, reach_id = np.full(len(handles), np.inf), np.zeros(len(handles), dtype=np.int64)
        return Bounds(rows["x_m"], rows["y_m"], reach_m, reach_id)

    def generation(self, handle: int) -> int:
        """Return the generation of a subscription's weights; 0 if its keywords count alike."""
        slot = self.subscriptions.slots(np.array([handle], dtype=np.int64))[0]
        number = int(self.subscriptions.rows["index"][slot])
        return self.weights.generations[number - 1] if number else 0

    def search(self, specs: StationarySpecs, x_m: Floats, y_m: Floats) -> Ranking:
        """Return the k best at each place now, without adding a subscription."""
        lasts = specs.lasts or Lasts.none(len(specs.k))
        first_ids = self.windows.first_ids_of(lasts, self._objects.now_ms)
        unbounded = np.full(len(specs.k), np.inf)
        interests = self._objects.weighed(specs.interests)
        return self._objects.index.best(interests, x_m, y_m, specs.k, unbounded, first_ids)

    def outdated(self, count: int) -> Positions:
        """Return up to `count` subscriptions that earlier weights evaluated, at their places."""
        return self.tables.outdated(count)

    # -- for tests and operators -----------------------------------------------------------------

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""
        return self.tables.memory_bytes()

    def check(self) -> None:
        """Verify every invariant from the definitions. O(subscriptions * objects).

        Raises
        ------
        InconsistentIndexError
            Names the invariant that does not hold.
        """
        check_stationary(self.tables, self.policy)
