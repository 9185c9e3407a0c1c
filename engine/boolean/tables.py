"""Hold the data of the boolean matcher: subscriptions, clauses, polygons and a finder; find matches.

The objects that a device holds are not stored: they are the matches, and the indexes find them whenever
they are needed.

Operations: append and remove O(clauses) a subscription; find costs a search of the object index, and O(1)
for each of its candidates; nearest costs the same for somewhat more objects than requested, unless all of
them are at one place.
"""

from __future__ import annotations

import numpy as np

from engine.boolean import expression_kernels, pair_kernels
from engine.boolean import layout as L
from engine.boolean.capped import Capped
from engine.boolean.crowds import Crowds
from engine.boolean.finders import ClauseFinder, Finder, MovingFinder
from engine.boolean.layout import BooleanSpecs
from engine.boolean.pairs import PAIR_BITS, Pairs, Places, joined
from engine.boolean.pending import Pending
from engine.boolean.work import Work
from engine.contracts import Bools
from engine.objects import Objects
from engine.options import EngineOptions
from engine.polygons import Polygons
from engine.windows import Lasts
from index.batches import Boxes, Floats, Ints, KeywordIds, KeywordLists, Matches, ObjectBatch
from index.tables import SlotTable
from index.tables.growth import longer
from index.tables.slots import Slots

_LEAST_M = 1.0
"""The least radius of a search: the radius doubles, so a search that starts at 0 would never end."""
_NO_KEYWORDS: KeywordIds = np.empty(0, dtype=np.int32)


class BooleanTables:
    """Subscriptions and their clauses.

    Parameters
    ----------
    objects
        The live objects, common to all matchers.
    options
        The choice of the indexes.
    """

    def __init__(self, objects: Objects, options: EngineOptions) -> None:
        self.objects = objects
        self.subscriptions = SlotTable(L.SUBSCRIPTION_DTYPE)
        self.clauses = SlotTable(L.CLAUSE_DTYPE)
        self.excluded = SlotTable(L.EXCLUDED_DTYPE)
        self.finder = _finder(options, self.clauses, objects)
        self.polygons = Polygons()
        self.capped = Capped(objects, self.subscriptions)
        self.pending = Pending(objects)
        self.crowds = Crowds(objects)
        self.work = Work()
        self._marks: Ints = np.zeros(0, dtype=np.int64)
        """By slot of an object: the mark of the row that tested it last."""
        self._next_mark = 1

    # -- subscriptions ---------------------------------------------------------------------------

    def append(self, handles: Ints, specs: BooleanSpecs) -> Slots:
        """Add subscriptions; return their slots."""
        ranges = specs.ranges
        counts = np.diff(specs.clause_offsets)
        nothing = np.zeros(len(handles))
        boxes = ranges.boxes
        lasts = specs.lasts or Lasts.none(len(handles))
        slots = self.subscriptions.append(
            handles,
            _united(specs),
            {
                "x_m": ranges.x_m,
                "y_m": ranges.y_m,
                "radius_m": ranges.radius_m,
                "x1_m": boxes.x1_m,
                "y1_m": boxes.y1_m,
                "x2_m": boxes.x2_m,
                "y2_m": boxes.y2_m,
                "margin_m": nothing,
                "slack_m": nothing,
                "speed_mps": np.full(len(handles), np.nan),
                "anchored_ms": nothing,
                "held_m": nothing,
                "held_id": nothing,
                "next_id": nothing,
                "settled_ms": nothing,
                "ring_start": self.polygons.append(ranges.rings),
                "ring_count": np.diff(ranges.rings.offsets),
                "window": self.objects.windows.take(lasts, self.objects.now_ms),
                "match_count": nothing,
                "clause_count": counts,
                "shape": ranges.shape,
                "region": specs.region,
                "is_moving": ranges.is_moving,
                "is_awake": nothing,
                "too_many": nothing,
                "is_dirty": nothing,
            },
        )
        ids = _clause_ids(slots, counts)
        bare = np.diff(specs.excluded.offsets) == 0
        excluded = np.full(len(ids), L.NOTHING, dtype=np.int32)
        rows = KeywordLists.of([specs.excluded.row(i) for i in np.flatnonzero(~bare).tolist()])
        excluded[~bare] = self.excluded.append(ids[~bare], rows, {})
        covered = np.zeros(len(ids), dtype=np.int8)
        if len(ids) > len(handles):
            required = specs.required
            expression_kernels.mark_covered(specs.clause_offsets, required.offsets, required.ids, covered)
        self.clauses.append(ids, specs.required, {"excluded": excluded, "is_covered": covered})
        return slots

    def remove(self, handles: Ints) -> None:
        """Remove subscriptions that are parked."""
        slots = self.subscriptions.slots(handles)
        rows = self.subscriptions.rows
        ids = _clause_ids(slots, rows["clause_count"][slots].astype(np.int64))
        excluded = self.clauses.rows["excluded"][self.clauses.remove(ids)]
        self.excluded.remove(ids[excluded != L.NOTHING])
        self.polygons.discard(int(rows["ring_count"][slots].sum()))
        self.subscriptions.remove(handles)
        self.objects.windows.give_back(rows["window"][slots])
        if self.polygons.is_wasteful:
            used = self.subscriptions.used()
            columns = (rows[name][used].astype(np.int64) for name in ("ring_start", "ring_count"))
            rows["ring_start"][used] = self.polygons.pack(*columns)

    def wake(self, slots: Slots) -> None:
        """Add subscriptions to the finder, with the current places of their ranges."""
        clauses, owners = self.clauses_of(slots)
        self.finder.enter(clauses, self.boxes(self.places(slots)).part(owners))

    def move(self, slots: Slots, before: Places) -> tuple[Pairs, Pairs]:
        """Move ranges in the finder; return the objects that start and that cease to match, by slot.

        Parameters
        ----------
        slots
            Subscriptions.
        before
            The previous places of their ranges.
        """
        clauses, owners = self.clauses_of(slots)
        now = self.places(slots)
        which, objects = self.finder.move(
            clauses,
            self.boxes(before).part(owners),
            self.boxes(now).part(owners),
            self._same(before, now).part(owners),
        )
        rows = owners[which]
        ceased = self._matching(before, rows, objects)
        started = self._matching(now, rows, objects)
        return started.without(ceased).of(slots), ceased.without(started).of(slots)

    def place(self, slots: Slots) -> None:
        """Set the current places of ranges in the finder."""
        clauses, owners = self.clauses_of(slots)
        self.finder.place(clauses, self.boxes(self.places(slots)).part(owners))

    def sleep(self, slots: Slots) -> None:
        """Remove subscriptions from the finder."""
        self.finder.leave(self.clauses_of(slots)[0])

    def clauses_of(self, slots: Slots) -> tuple[Slots, Ints]:
        """Return the slots of all clauses of subscriptions, and the row in `slots` of each."""
        counts = self.subscriptions.rows["clause_count"][slots].astype(np.int64)
        return self.clauses.slots(_clause_ids(slots, counts)), np.repeat(np.arange(len(slots)), counts)

    def clause_keyword_count(self, slots: Slots) -> int:
        """Return the number of keywords that all clauses of subscriptions require and exclude."""
        clauses = self.clauses.rows[self.clauses_of(slots)[0]]
        excluded = clauses["excluded"][clauses["excluded"] != L.NOTHING]
        return int(clauses["keyword_count"].sum() + self.excluded.rows["keyword_count"][excluded].sum())

    def expression(self, slot: int) -> list[tuple[KeywordIds, KeywordIds]]:
        """Return required and excluded keywords of each clause of a subscription."""
        found = []
        for clause in self.clauses_of(np.array([slot], dtype=np.int32))[0].tolist():
            place = int(self.clauses.rows["excluded"][clause])
            excluded = _NO_KEYWORDS if place == L.NOTHING else self.excluded.keywords(place)
            found.append((self.clauses.keywords(clause), excluded))
        return found

    def places(self, slots: Slots) -> Places:
        """Return the places of ranges, and their reach.

        The reach is the distance within which devices hold matches.
        """
        rows = self.subscriptions.rows
        beyond_m = np.where(rows["too_many"][slots] == 1, rows["margin_m"][slots], rows["slack_m"][slots])
        return Places(slots, rows["x_m"][slots], rows["y_m"][slots], rows["radius_m"][slots] + beyond_m)

    def boxes(self, places: Places) -> Boxes:
        """Return boxes about ranges."""
        boxes = np.empty((4, len(places.slots)))
        pair_kernels.fill_boxes(
            self.subscriptions.rows, places.slots, places.x_m, places.y_m, places.reach_m, boxes
        )
        return Boxes(*boxes)

    def _same(self, before: Places, now: Places) -> Boxes:
        """Return boxes that lie within ranges before and now; bounds are reversed if there is none."""
        boxes = np.empty((2, 4, len(now.slots)))
        for places, part in zip((before, now), boxes, strict=True):
            pair_kernels.fill_cores(
                self.subscriptions.rows, places.slots, places.x_m, places.y_m, places.reach_m, part
            )
        return Boxes(*boxes[:, :2].max(axis=0), *boxes[:, 2:].min(axis=0))

    # -- matches ---------------------------------------------------------------------------------

    def find(self, places: Places) -> Pairs:
        """Return the live objects that match subscriptions at places; rows are those of `places`."""
        return self._find_in(places, self.boxes(places))

    def _find_in(self, places: Places, boxes: Boxes) -> Pairs:
        """Return the same for objects that meet boxes, and perhaps for some that do not."""
        clauses, owners = self.clauses_of(places.slots)
        if len(clauses) > len(places.slots):
            is_looked_for = self.clauses.rows["is_covered"][clauses] == 0
            clauses, owners = clauses[is_looked_for], owners[is_looked_for]
        which, objects = self.objects.near(self.clauses.keyword_lists(clauses), boxes.part(owners))
        return self._matching(places, owners[which], objects)

    def nearest(self, places: Places, count: int, first_m: Floats) -> tuple[Pairs, Bools]:
        """Return the live objects that match, for each row those with points nearest to the middle.

        Parameters
        ----------
        places
            The places to search at.
        count
            The number of objects that is enough.
        first_m
            The radius of the first search, but at least a metre; it doubles with each further search.

        Returns
        -------
        Pairs, array of bool
            All matches, or all within a distance that has more than `count` of them; and whether these
            are all, by row.
        """
        boxes, limit_m = self.boxes(places), np.maximum(first_m, _LEAST_M)
        rows, are_all = np.arange(len(places.slots)), np.zeros(len(places.slots), dtype=np.bool_)
        found = Pairs.nothing()
        while len(rows):
            these = places.part(rows)
            part = _cut_down(boxes.part(rows), these, limit_m[rows])
            is_all = self.crowds.is_all(boxes.part(rows), part)
            pairs = self._find_in(these, part)
            pairs = pairs.part(is_all[pairs.rows] | (pairs.distance_m <= limit_m[rows][pairs.rows]))
            is_done = is_all | (np.bincount(pairs.rows, minlength=len(rows)) > count)
            found = joined(found, pairs.part(is_done[pairs.rows]).of(rows))
            are_all[rows] = is_all
            rows = rows[~is_done]
            limit_m[rows] *= 2.0
        return found.part(np.argsort(found.keys(), kind="stable")), are_all

    def published(self, objects: ObjectBatch, slots: Slots) -> Pairs:
        """Return the subscriptions that are awake and match new objects; rows are their slots."""
        return self._concerned(self.finder.publish(objects, slots), slots)

    def retracted(self, slots: Slots) -> Pairs:
        """Return the subscriptions that are awake and match removed objects; rows are their slots."""
        return self._concerned(self.finder.retract(self.objects.batch(slots)), slots)

    def known(self, slots: Slots) -> Pairs:
        """Return the subscriptions that are awake and match live objects; rows are their slots."""
        return self._concerned(self.finder.match(self.objects.batch(slots)), slots)

    def _concerned(self, found: Matches, slots: Slots) -> Pairs:
        if not len(found.ids):
            return Pairs.nothing()
        which = np.repeat(np.arange(len(slots)), np.diff(found.offsets))
        clauses = found.ids.astype(np.int32)
        owners = self.clauses.rows["id"][clauses] >> L.CLAUSE_BITS
        distinct, rows = np.unique(owners, return_inverse=True)
        places, objects = self.places(distinct.astype(np.int32)), slots[which]
        self.work.pairs += len(clauses)
        distance_m, nearest_m = np.empty(len(clauses)), np.empty(len(clauses))
        marks = np.zeros(len(distinct), dtype=np.int64)
        pair_kernels.measure_concerned(
            self._clause_arrays(),
            self._object_arrays(),
            self._ranges(places),
            clauses,
            rows,
            objects,
            (marks, 0),
            distance_m,
            nearest_m,
        )
        pairs = _matched(rows, objects, distance_m, nearest_m)
        return pairs.part(np.argsort(pairs.keys())).of(distinct)

    def _matching(self, places: Places, rows: Ints, objects: Slots) -> Pairs:
        """Return the pairs of a row and an object that match, each once, by row.

        Objects have all keywords that some clause of the row requires. An object that does not count in
        the window of a subscription does not match it.
        """
        if len(rows) and (rows[1:] < rows[:-1]).any():
            order = np.argsort(rows, kind="stable")
            rows, objects = rows[order], objects[order]
        clauses, owners = self.clauses_of(places.slots)
        distance_m, nearest_m = np.empty(len(rows)), np.empty(len(rows))
        self.work.pairs += len(rows)
        marks, first_mark = self._marks_for(len(places.slots))
        pair_kernels.measure_found(
            self._clause_arrays(),
            self._object_arrays(),
            self._ranges(places),
            (clauses, np.searchsorted(owners, np.arange(len(places.slots) + 1))),
            rows,
            objects,
            (marks, first_mark),
            distance_m,
            nearest_m,
        )
        return _matched(rows, objects, distance_m, nearest_m)

    def _marks_for(self, row_count: int) -> tuple[Ints, int]:
        """Return a mark for each object, and the first of `row_count` marks that no object has."""
        self._marks = longer(self._marks, self.objects.table.end)
        first = self._next_mark
        self._next_mark += row_count
        return self._marks, first

    def _ranges(self, places: Places) -> pair_kernels.Ranges:
        windows = self.subscriptions.rows["window"][places.slots]
        return pair_kernels.Ranges(*places, self.objects.windows.first_ids[windows])

    def _clause_arrays(self) -> expression_kernels.Clauses:
        return expression_kernels.Clauses(
            self.subscriptions.rows,
            self.clauses.rows,
            self.clauses.pool,
            self.excluded.rows,
            self.excluded.pool,
            self.polygons.pool,
        )

    def _object_arrays(self) -> pair_kernels.Objects:
        table = self.objects.table
        return pair_kernels.Objects(table.rows, table.pool, self.objects.areas.arrays)

    # -- for tests and operators -----------------------------------------------------------------

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""
        parts = (self.subscriptions, self.clauses, self.excluded, self.polygons, self.finder)
        return self._marks.nbytes + sum(part.memory_bytes() for part in parts)


def _finder(options: EngineOptions, clauses: SlotTable, objects: Objects) -> Finder:
    if options.moving_index is None:
        return ClauseFinder(options.clause_index(), clauses, objects)
    return MovingFinder(options.moving_index(), clauses, objects)


def _matched(rows: Ints, objects: Slots, distance_m: Floats, nearest_m: Floats) -> Pairs:
    """Return the pairs that match."""
    kept = distance_m != pair_kernels.NO_MATCH
    return Pairs(rows[kept], objects[kept].astype(np.int64), distance_m[kept], nearest_m[kept])


def _cut_down(boxes: Boxes, places: Places, limit_m: Floats) -> Boxes:
    """Return the parts of boxes that are no farther than a limit from their middles along either axis.

    Every object that is computed to be no farther lies in them, as in `pair_kernels.fill_boxes`.
    """
    grown_m = limit_m * (1.0 + 1e-15) + 1e-150
    return Boxes(
        np.maximum(boxes.x1_m, np.nextafter(places.x_m - grown_m, -np.inf)),
        np.maximum(boxes.y1_m, np.nextafter(places.y_m - grown_m, -np.inf)),
        np.minimum(boxes.x2_m, np.nextafter(places.x_m + grown_m, np.inf)),
        np.minimum(boxes.y2_m, np.nextafter(places.y_m + grown_m, np.inf)),
    )


def _clause_ids(slots: Slots, counts: Ints) -> Ints:
    """Return the ids of all clauses of subscriptions with these numbers of clauses."""
    first = np.repeat(np.cumsum(counts) - counts, counts)
    places = np.arange(len(first)) - first
    ids: Ints = np.repeat(slots.astype(np.int64), counts) << L.CLAUSE_BITS | places
    return ids


def _united(specs: BooleanSpecs) -> KeywordLists:
    """Return all keywords of each subscription, those of its clauses together."""
    counts = np.diff(specs.clause_offsets)
    if (counts == 1).all() and not len(specs.excluded.ids):
        return specs.required
    owners = np.repeat(np.arange(len(counts)), counts)
    rows = [np.repeat(owners, np.diff(one.offsets)) for one in (specs.required, specs.excluded)]
    words = np.concatenate([specs.required.ids, specs.excluded.ids]).astype(np.int64)
    keys = np.unique(np.concatenate(rows) << PAIR_BITS | words)
    offsets = np.searchsorted(keys >> PAIR_BITS, np.arange(len(counts) + 1))
    return KeywordLists(offsets, (keys & ((1 << PAIR_BITS) - 1)).astype(np.int32))
