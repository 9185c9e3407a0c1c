"""The arrays of an AP-Tree and of a build in progress: their creation and growth."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from index.batches import Floats, Ints, Matches, ObjectBatch
from index.published.ap_tree import layout as L
from index.published.ap_tree import match_kernels
from index.published.ap_tree.layout import Build, Chunks, Numbers, Tree, Units
from index.published.ap_tree.motions import Motions
from index.tables import SlotTable
from index.tables.clauses import columns_of
from index.tables.growth import as_long, longer
from index.tables.runs import lengthened, new_runs

_ROOM_MIN = 64
_STACK_MIN = 256
_NEEDS = (L.NODES_NEEDED, L.PARTS_NEEDED, L.ENTRIES_NEEDED, L.CHUNKS_NEEDED, L.STACK_NEEDED)


class TreeArrays:
    """The arrays of `Tree`."""

    def __init__(self, limits: dict[int, int], shares: tuple[float, float]) -> None:
        self.table = SlotTable(L.CLAUSE_DTYPE)
        self.limits: Ints = np.zeros(L.LIMITS_SIZE, dtype=np.int64)
        for place, value in limits.items():
            self.limits[place] = value
        self.shares: Floats = np.array(shares)
        self.meta: Ints = np.zeros(L.META_SIZE, dtype=np.int64)
        self.order: Numbers = np.zeros(1, dtype=np.int32)
        self.job_order = self.order
        self.codes: Numbers = np.zeros(_ROOM_MIN, dtype=np.int32)
        self.stack: Numbers = np.zeros(_ROOM_MIN, dtype=np.int32)
        self.due: Numbers = np.zeros(L.DUE_MAX, dtype=np.int32)
        self.frequency: Ints = np.zeros(1, dtype=np.int64)
        """Clauses by keyword."""
        self.seen: Ints = np.zeros(1, dtype=np.int64)
        self.motions = Motions()
        self.positions: Floats = np.zeros(2 * L.POSITIONS_MAX)
        self._found_room = _ROOM_MIN
        self._match_stack: Numbers = np.zeros(_STACK_MIN, dtype=np.int32)
        self.clear()

    @classmethod
    def of(
        cls, fanout: int, leaf_max: int, drift_max: float, change_share: float, variant: int = L.HEURISTIC
    ) -> TreeArrays:
        """Return the arrays of an empty tree with these parameters."""
        limits = {
            L.FANOUT: fanout,
            L.LEAF_MAX: leaf_max,
            L.PER_PART: max(1, leaf_max // 4),
            L.VARIANT: variant,
        }
        return cls(limits, (drift_max, change_share))

    def clear(self) -> None:
        """Remove all nodes."""
        lasting = [
            L.SEEN_NUMBER,
            L.POSITION_COUNT,
            L.JOB_NUMBER,
        ]  # marks of clauses are from earlier rebuilds
        kept = self.meta[lasting].copy()
        self.meta[:] = 0
        self.meta[lasting] = kept
        self.meta[[L.FREE_NODE, L.JOB_OLD, L.JOB_NEW]] = L.NOTHING
        self.nodes = np.zeros(_ROOM_MIN, dtype=L.NODE_DTYPE)
        self.parts = np.zeros(_ROOM_MIN, dtype=L.PART_DTYPE)
        self.part_heads: Ints = np.full(L.PART_CLASSES, L.NOTHING, dtype=np.int64)
        self.runs = new_runs(L.ENTRY_DTYPE, _ROOM_MIN)

    def tree(self) -> Tree:
        """Return the arguments of kernels."""
        return Tree(
            self.table.rows,
            self.table.pool,
            self.nodes,
            self.parts,
            self.part_heads,
            self.runs,
            self.order,
            self.job_order,
            self.codes,
            self.stack,
            self.due,
            self.seen,
            self.positions,
            self.meta,
            self.limits,
            self.shares,
        )

    def know_keywords(self, keyword_count: int, clause_keywords_max: int) -> None:
        """Size the arrays for keywords with ids below `keyword_count`, and for clauses of this many."""
        is_same = self.job_order is self.order
        self.order = longer(self.order, keyword_count + 1)
        self.job_order = self.order if is_same else longer(self.job_order, keyword_count + 1)
        self.seen = longer(self.seen, keyword_count + 1)
        self.frequency = longer(self.frequency, keyword_count)
        self.codes = longer(self.codes, clause_keywords_max)

    def renewed_order(self, *, is_rarest_first: bool) -> Numbers:
        """Return an order by the present frequencies, ties by keyword. O(keywords log keywords)."""
        keywords = np.flatnonzero(self.frequency)
        counts = self.frequency[keywords]
        ranked = keywords[np.argsort(counts if is_rarest_first else -counts, kind="stable")]
        order = np.zeros(len(self.order), dtype=np.int32)
        order[ranked + 1] = np.arange(1, len(ranked) + 1)
        order[0] = len(ranked)
        return order

    def grow(self, build: BuildArrays) -> None:
        """Lengthen the arrays that a kernel reported as full."""
        nodes, parts, entries, _, stack = (int(self.meta[place]) for place in _NEEDS)
        self.nodes = longer(self.nodes, int(self.meta[L.NODE_END]) + nodes)
        self.parts = longer(self.parts, int(self.meta[L.PART_END]) + parts)
        if entries > 0:
            self.runs = lengthened(self.runs, entries)
        self.stack = longer(self.stack, stack)
        build.grow(int(self.meta[L.CHUNKS_NEEDED]), stack)
        self.meta[list(_NEEDS)] = 0

    def match(self, objects: ObjectBatch) -> tuple[Matches, int]:
        """Return the clauses that match, and the number of tested ones."""
        tree = self.tree()
        boxes = np.empty((4, 0))
        if objects.boxes is not None:
            boxes = np.stack(list(columns_of(objects.boxes).values()))
        offsets = np.zeros(len(objects) + 1, dtype=np.int64)
        codes = np.empty(int(np.diff(objects.keywords.offsets).max(initial=0)) + 1, dtype=np.int32)
        while True:
            found = np.empty(self._found_room, dtype=np.int64)
            self.meta[L.CANDIDATES] = 0
            total = match_kernels.match(
                tree,
                objects.x_m,
                objects.y_m,
                boxes,
                objects.keywords.offsets,
                objects.keywords.ids,
                codes,
                self._match_stack,
                offsets,
                found,
            )
            if total == match_kernels.LACKS_STACK:
                self._match_stack = np.zeros(2 * len(self._match_stack), dtype=np.int32)
            elif total > self._found_room:
                self._found_room = 2 * total
            else:
                return Matches(offsets, found[:total]), int(self.meta[L.CANDIDATES])

    def sample(self, objects: ObjectBatch, stride: int) -> None:
        """Sample every `stride`-th object: its position, and its keywords.

        With a stride of 1, keywords that no clause has had are counted as well.
        """
        if stride == 1:
            self.know_keywords(1 + int(objects.keywords.ids.max(initial=-1)), 1)
        match_kernels.sample_all(
            self.tree(),
            objects.x_m,
            objects.y_m,
            objects.keywords.offsets,
            objects.keywords.ids,
            stride,
        )

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""
        own: list[npt.NDArray[Any]] = [
            self.nodes,
            self.parts,
            self.runs.records,
            self.order,
            self.codes,
            self.stack,
            self.seen,
            self.frequency,
            self.positions,
        ]
        if self.job_order is not self.order:
            own.append(self.job_order)
        return sum(array.nbytes for array in own) + self.table.memory_bytes()


class BuildArrays:
    """The arrays of `Build`."""

    def __init__(self, limits: Ints, motions: Motions) -> None:
        self._motions = motions
        fanout = int(limits[L.FANOUT])
        self._is_optimal = limits[L.VARIANT] == L.OPTIMAL
        self.state: Ints = np.zeros(L.STATE_SIZE, dtype=np.int64)
        self._tasks: Numbers = np.zeros(_ROOM_MIN, dtype=np.int32)
        self._walk_nodes: Numbers = np.zeros(_ROOM_MIN, dtype=np.int32)
        self._walk_places: Numbers = np.zeros(_ROOM_MIN, dtype=np.int32)
        self._tally: Numbers = np.zeros(1, dtype=np.int32)
        self._words: Numbers = np.zeros(1, dtype=np.int32)
        self._touched: Numbers = np.zeros(1, dtype=np.int32)
        self._unit_ends: Numbers = np.zeros(1, dtype=np.int32)
        self._bounds: Numbers = np.zeros(fanout + 2, dtype=np.int32)
        self._cut_ends: Numbers = np.zeros(fanout + 2, dtype=np.int32)
        self._units = Units(*(np.zeros(2 * L.SAMPLE_MAX + 2) for _ in Units._fields))
        self._edges: Floats = np.zeros(2 * L.SAMPLE_MAX + 2)
        self._columns: Floats = np.zeros(fanout + 2)
        self._lines: Floats = np.zeros(fanout + 2)
        self._boxes: Floats = np.zeros((6, L.SAMPLE_MAX))
        self._positions: Floats = np.zeros((3, L.POSITIONS_MAX))
        self._cells: Floats = np.zeros((2, max(4, fanout) + 2))
        unit_count = L.OPTIMAL_UNITS_MAX + 2 if self._is_optimal else 1
        self._costs: Floats = np.zeros((2, unit_count))
        self._choices: Numbers = np.zeros((fanout + 1 if self._is_optimal else 1, unit_count), np.int32)
        self.clear()

    def clear(self) -> None:
        """Discard the build in progress."""
        self.state[:] = 0
        self._tally[:] = 0
        self._chunks = Chunks(
            np.zeros(0, dtype=np.int32),
            np.zeros(0, dtype=np.int32),
            np.zeros(0, dtype=np.int32),
            np.zeros(0, dtype=np.int32),
            np.array([0, L.NOTHING, 0], dtype=np.int64),
        )

    def build(self, order: Numbers) -> Build:
        """Return the arguments of kernels."""
        return Build(
            self.state,
            order,
            self._chunks,
            self._tasks,
            self._walk_nodes,
            self._walk_places,
            self._tally,
            self._words,
            self._touched,
            self._units,
            self._unit_ends,
            self._bounds,
            self._cut_ends,
            self._edges,
            self._columns,
            self._lines,
            self._boxes,
            self._positions,
            self._cells,
            self._costs,
            self._choices,
            self._motions.displacements,
            self._motions.pace,
        )

    def know_codes(self, code_count: int) -> None:
        """Size the arrays for this many codes."""
        self._tally = longer(self._tally, code_count)
        self._words = longer(self._words, code_count)
        self._touched = longer(self._touched, code_count)
        self._unit_ends = longer(self._unit_ends, code_count + 1)
        self._units = Units(*(longer(one, code_count + 1) for one in self._units))
        if len(self._bounds) < code_count + 2:
            self._bounds = longer(self._bounds, code_count + 2)
            self._cut_ends = longer(self._cut_ends, code_count + 2)

    def grow(self, chunks: int, stack: int) -> None:
        """Make space for this many more chunks, and for stacks of a length."""
        self._tasks = longer(self._tasks, stack)
        self._walk_nodes = longer(self._walk_nodes, stack)
        self._walk_places = as_long(self._walk_places, len(self._walk_nodes))
        old = self._chunks
        links = longer(old.links, int(old.ends[L.CHUNK_END]) + chunks)
        self._chunks = Chunks(
            as_long(old.slots, len(links) * L.CHUNK_LENGTH),
            as_long(old.generations, len(links) * L.CHUNK_LENGTH),
            links,
            as_long(old.sizes, len(links)),
            old.ends,
        )

    def let_go(self) -> None:
        """Free the chunks when no build is in progress."""
        if self._chunks.ends[L.FREE_CHUNK] != L.NOTHING or self._chunks.ends[L.CHUNK_END] == 0:
            self._chunks = self._chunks._replace(
                slots=np.zeros(0, dtype=np.int32),
                generations=np.zeros(0, dtype=np.int32),
                links=np.zeros(0, dtype=np.int32),
                sizes=np.zeros(0, dtype=np.int32),
                ends=np.array([0, L.NOTHING, 0], dtype=np.int64),
            )

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""
        flat: list[npt.NDArray[Any]] = [*self._units, *self._chunks]
        flat += [one for one in self.build(self.state) if isinstance(one, np.ndarray)]  # type: ignore[arg-type]
        return sum(one.nbytes for one in flat) - self.state.nbytes
