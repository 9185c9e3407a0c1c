"""Match top-k subscriptions: keep the buffers of devices correct. Arrays in, arrays out.

Operations (batches; costs per item beyond those of the two indexes): publish O(matches * k), remove
O(holders), evaluate O((k + b)^2).

Plan: `tables` has the data, `evaluation` anchors subscriptions, and this module adds and removes objects
and subscriptions. Both are rows; buffers are spans of holdings, chained by object, which is the result
index. The object index finds the best objects at a place, the subscription index the subscriptions that
an object affects. In the mode ELLIPSE (Lamps) a new object is pending until the device's position is
known: the next `evaluate` decides.

Source: lamps.txt section 3 (framework), algorithms 2 to 4 (the three event paths).
"""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np

from engine.contracts import CHANGE_DTYPE, Bools, Bounds, Positions, Published, Rows, concatenated
from engine.objects import Objects
from engine.options import EngineOptions
from engine.top_k import buffer_kernels, prune_kernels
from engine.top_k.evaluation import Choice, Evaluation
from engine.top_k.invariants import check_top_k
from engine.top_k.layout import BY_COST, ELLIPSE, NO_PENDING, TFIDF
from engine.top_k.tables import TopKTables
from engine.windows import Lasts
from index.batches import Floats, InterestBatch, Ints, KeywordLists, ObjectBatch, Ranking
from index.tables.slots import Slots


class TopKSpecs(NamedTuple):
    """The specs of top-k subscriptions, a row each."""

    interests: InterestBatch
    k: Ints
    region: Ints
    """Mode of each safe region (`RegionMode`)."""
    extra: Ints | None = None
    """b of each anchored subscription; by default that of the options, or by cost."""
    lasts: Lasts | None = None
    """Their windows; None for no windows, as in the mode ELLIPSE."""


class TopKMatcher:
    """Exact top-k results for moving subscriptions.

    Parameters
    ----------
    objects
        The live objects.
    options
        Buffer size and the choice of indexes.
    """

    def __init__(self, objects: Objects, options: EngineOptions) -> None:
        self.tables = TopKTables(objects, options)
        self.subscriptions = self.tables.subscriptions
        self.buffers = self.tables.buffers
        self.windows = objects.windows
        self.weights = objects.weights
        self._objects = objects
        self._options = options
        self._evaluation = self.make_evaluation()
        self._short: list[Slots] = []
        """Subscriptions that may need objects that were left out of their buffers."""

    def make_evaluation(self) -> Evaluation:
        """Return the evaluation; another method of keeping devices exact may override it."""
        return Evaluation(self.tables, self._options)

    def __len__(self) -> int:
        return len(self.subscriptions)

    # -- subscriptions ---------------------------------------------------------------------------

    def subscribe(self, handles: Ints, specs: TopKSpecs) -> None:
        """Add subscriptions, parked; `evaluate` wakes them. Their handles were never used before."""
        interests, k, region, extra, lasts = specs
        windows = self._objects.windows.take(lasts or Lasts.none(len(handles)), self._objects.now_ms)
        if extra is None:
            chosen = self._options.buffer_extra
            extra = np.full(len(handles), BY_COST if chosen is None else chosen, dtype=np.int64)
        extra = np.where(region == ELLIPSE, 0, extra)
        self.subscriptions.append(
            handles,
            interests.keywords,
            {
                "weight_m": interests.weight_m,
                "similarity": interests.similarity,
                "k": k,
                "window": windows,
                "extra": np.maximum(extra, 0),
                "base_extra": extra,
                "region": region,
                "anchored_ms": np.zeros(len(handles), dtype=np.int64),
                "speed_mps": np.full(len(handles), np.nan, dtype=np.float32),
                "arrivals": np.zeros(len(handles), dtype=np.float32),
                "held_s": np.zeros(len(handles), dtype=np.float32),
                "ample_m": np.full(len(handles), np.inf, dtype=np.float32),
                "is_awake": np.zeros(len(handles), dtype=np.int8),
                "is_pruned": np.zeros(len(handles), dtype=np.int8),
                "index": np.zeros(len(handles), dtype=np.int8),
                "buffer_count": np.zeros(len(handles), dtype=np.int32),
                "buffer_room": np.zeros(len(handles), dtype=np.int32),
                "first_pending": np.full(len(handles), NO_PENDING, dtype=np.int32),
            },
        )

    def unsubscribe(self, handles: Ints) -> None:
        """Remove subscriptions."""
        self.park(handles)
        slots = self.subscriptions.remove(handles)
        self._objects.windows.give_back(self.subscriptions.rows["window"][slots])

    def park(self, handles: Ints) -> None:
        """Stop evaluating subscriptions until `evaluate`. Those that are already parked do not change."""
        slots = self.subscriptions.slots(handles)
        rows = self.subscriptions.rows
        slots = slots[rows["is_awake"][slots] == 1]
        if not len(slots):
            return
        self.tables.indexes.remove(rows["id"][slots], rows["index"][slots])
        buffer_kernels.clear(self._objects.table.rows, rows, self.buffers.holdings, slots)
        self.buffers.give_back(rows, slots)
        rows["is_awake"][slots] = 0
        self.tables.pending.take(rows, slots)

    def are_awake(self, handles: Ints) -> Bools:
        """Return whether each subscription is evaluated."""
        awake: Bools = self.subscriptions.rows["is_awake"][self.subscriptions.slots(handles)] == 1
        return awake

    def are_pending(self, handles: Ints) -> Bools:
        """Return whether an object waits for the position of each subscription's device."""
        return self.tables.are_pending(handles)

    def keyword_lists(self, handles: Ints) -> KeywordLists:
        """Return the keywords of subscriptions."""
        return self.subscriptions.keyword_lists(self.subscriptions.slots(handles))

    # -- evaluation ------------------------------------------------------------------------------

    def retrieve(self, positions: Positions) -> list[Choice] | None:
        """Retrieve and choose for a later `evaluate`; return None if an object is pending.

        It may run in another thread while no object is added or removed and no subscription starts or
        ends; other subscriptions may be evaluated. Most of the time it is a kernel without the GIL.
        """
        if self.tables.pending.count and self.are_pending(positions.handles).any():
            return None
        return self._evaluation.retrieve(positions)

    def evaluate(self, positions: Positions, retrieved: object | None = None) -> Rows:
        """Evaluate subscriptions at the positions of their devices; wake those that are parked.

        Their pending objects are decided.

        Parameters
        ----------
        positions
            Positions of the devices.
        retrieved
            The result of `retrieve` for these positions, if nothing has changed since then.

        Returns
        -------
        array of CHANGE_DTYPE
            Objects that enter and leave buffers, grouped by subscription.
        """
        is_pending = self.are_pending(positions.handles) if self.tables.pending.count else None
        if is_pending is None or not is_pending.any():
            return self._evaluation.anchor(positions, cast("list[Choice] | None", retrieved))
        slots = self.subscriptions.slots(positions.handles[is_pending])
        waiting = self.tables.pending.take(self.subscriptions.rows, slots)
        located = self._evaluation.locate(positions.part(is_pending), *waiting)
        return concatenated([located, self._evaluation.anchor(positions.part(~is_pending))])

    def refill(self) -> Rows:
        """Insert pruned objects into buffers that may need them now; devices request the rest."""
        if not self._short:
            return np.empty(0, dtype=CHANGE_DTYPE)
        slots = np.unique(np.concatenate(self._short))
        self._short.clear()
        return self._evaluation.restore(slots)

    def held(self, handle: int) -> tuple[Ints, Floats]:
        """Return the ids of the objects that a subscription's device holds, and their constant parts."""
        row = self.row(handle)
        start = int(row["buffer_start"])
        held = self.buffers.holdings[start : start + int(row["buffer_count"])]
        return self._objects.table.rows["id"][held["object"]], held["r_m"].copy()

    def bounds(self, handles: Ints) -> Bounds:
        """Return anchors and reaches."""
        rows = self.tables.rows(handles)
        return Bounds(rows["x_m"], rows["y_m"], rows["reach_m"], rows["reach_id"])

    def row(self, handle: int) -> np.void:
        """Return the row of one subscription, copied (`layout.SUBSCRIPTION_DTYPE`)."""
        found: np.void = self.tables.rows(np.array([handle], dtype=np.int64))[0]
        return found

    def generation(self, handle: int) -> int:
        """Return the generation of a subscription's weights; 0 if its keywords count alike."""
        number = int(self.row(handle)["index"])
        return self.weights.generations[number - 1] if number else 0

    def search(self, specs: TopKSpecs, x_m: Floats, y_m: Floats) -> Ranking:
        """Return the k best at each place now, without adding a subscription."""
        unbounded = np.full(len(specs.k), np.inf)
        lasts = specs.lasts or Lasts.none(len(specs.k))
        first_ids = self._objects.windows.first_ids_of(lasts, self._objects.now_ms)
        interests = self._objects.weighed(specs.interests)
        return self._objects.index.best(interests, x_m, y_m, specs.k, unbounded, first_ids)

    def outdated(self, count: int) -> Positions:
        """Return up to `count` subscriptions that earlier weights evaluated, at their anchors."""
        used = self.subscriptions.used()
        rows = self.subscriptions.rows
        awake = used[(rows["is_awake"][used] == 1) & (rows["similarity"][used] == TFIDF)]
        outdated = rows["index"][awake] != self.tables.index_numbers(awake)
        return self.tables.anchors(awake[outdated][:count])

    # -- objects ---------------------------------------------------------------------------------

    def publish(self, objects: ObjectBatch, slots: Slots) -> Published:
        """Match new objects, which are already in the table."""
        matches = self.tables.indexes.match(objects, self._objects.norms_of(slots))
        if not len(matches.ids):  # as with most objects
            return Published.nothing()
        rows = np.repeat(np.arange(len(objects)), np.diff(matches.offsets))
        owners = self.subscriptions.slots(matches.ids)
        counts = self._objects.windows.do_count(
            objects.ids[rows], self.subscriptions.rows["window"][owners]
        )
        rows, owners = rows[counts], owners[counts]
        is_ellipse = self.subscriptions.rows["region"][owners] == ELLIPSE
        newly_pending: Ints = np.empty(0, dtype=np.int64)
        if is_ellipse.any():
            newly_pending = self._ask_first(owners[is_ellipse], objects.ids[rows[is_ellipse]])
            rows, owners = rows[~is_ellipse], owners[~is_ellipse]
        changes, lowered = self._admit(*self._needed(owners, slots[rows]))
        return Published(changes, lowered, newly_pending)

    def _ask_first(self, owners: Slots, object_ids: Ints) -> Ints:
        """Add pending objects in the mode ELLIPSE; return the subscriptions that need a position now."""
        newly_pending = self.tables.pending.note(self.subscriptions.rows, owners, object_ids)
        handles: Ints = self.subscriptions.rows["id"][newly_pending]
        return handles

    def _needed(self, owners: Slots, new_slots: Slots) -> tuple[Slots, Slots]:
        """Return the pairs of an anchored subscription and a new object that it needs."""
        if not self._options.prunes:
            return owners, new_slots
        kept = np.empty(len(owners), dtype=np.bool_)
        prune_kernels.undominated(
            self._objects.table.rows,
            self.subscriptions.rows,
            self._objects.texts_with(self.subscriptions),
            self._objects.windows.durations,
            self.buffers.holdings,
            owners,
            new_slots,
            kept,
        )
        return owners[kept], new_slots[kept]

    def _admit(self, owners: Slots, new_slots: Slots) -> tuple[Rows, Ints]:
        """Insert objects into buffers of anchored subscriptions; lower reaches where they overflow."""
        if not len(owners):
            return np.empty(0, dtype=CHANGE_DTYPE), np.empty(0, dtype=np.int64)
        order = np.argsort(owners, kind="stable")
        touched = np.unique(owners)
        rows = self.subscriptions.rows
        changes = np.empty(len(owners) + int(rows["buffer_count"][touched].sum()), dtype=CHANGE_DTYPE)
        moved = np.empty(len(touched), dtype=np.int32)
        room = int((rows["k"][touched] + rows["extra"][touched]).max()) + 1
        emitted, moved_count = buffer_kernels.admit(
            self._objects.table.rows,
            rows,
            self._objects.texts_with(self.subscriptions),
            self.buffers.holdings,
            owners[order],
            new_slots[order],
            changes,
            moved,
            np.empty(room),
            np.empty(room, dtype=np.int64),
            np.empty(room),
        )
        if moved_count:
            lowered = moved[:moved_count]
            self.tables.indexes.move(self.tables.reaches(lowered), rows["index"][lowered])
        return changes[:emitted], rows["id"][moved[:moved_count]]

    def remove(self, slots: Slots, *, notify: bool) -> Rows:
        """Remove objects from all buffers while they are still in the table.

        Returns these changes if `notify` is set.
        """
        holdings, objects = self.buffers.holdings, self._objects.table.rows
        count = buffer_kernels.count_holders(objects, holdings, slots) if notify else 0
        if count and self._options.prunes:
            short = np.empty(count, dtype=np.int32)
            found = prune_kernels.pruned_holders(objects, self.subscriptions.rows, holdings, slots, short)
            self._short += [short[:found]] if found else []
        changes = np.empty(count, dtype=CHANGE_DTYPE)
        buffer_kernels.remove_objects(objects, self.subscriptions.rows, holdings, slots, changes)
        return changes[np.argsort(changes["handle"], kind="stable")]

    def leave(self, slots: Slots, window: int, *, notify: bool) -> Rows:
        """Remove objects from the buffers of a window; return these changes if `notify` is set."""
        holdings, objects = self.buffers.holdings, self._objects.table.rows
        count = buffer_kernels.count_holders(objects, holdings, slots) if notify else 0
        changes = np.empty(count, dtype=CHANGE_DTYPE)
        emitted = buffer_kernels.release_in_window(
            objects, self.subscriptions.rows, holdings, slots, window, changes
        )
        return changes[:emitted][np.argsort(changes["handle"][:emitted], kind="stable")]

    # -- for tests and operators -----------------------------------------------------------------

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""
        parts = (self.subscriptions, self.buffers, self.tables.pending, self.tables.indexes)
        return sum(part.memory_bytes() for part in parts)

    def check(self) -> None:
        """Verify every invariant from the definitions. O(subscriptions * objects).

        Raises
        ------
        InconsistentIndexError
            Names the invariant that does not hold.
        """
        check_top_k(self.tables)
