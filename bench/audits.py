"""Compare the results of a sample of a benchmark's devices with the oracle."""

from __future__ import annotations

import numpy as np

from bench.datasets import Subscriptions, keyword_sets
from bench.engines import top_k_of
from engine import Engine
from index.batches import Floats, Ints, ObjectBatch, Ranking
from safe_region import oracle
from safe_region.earth.frame import Point
from safe_region.regions.anchored import AnchoredRegion
from safe_region.regions.region import Buffered
from safe_region.scoring.formulas import Similarity

_FOREVER = 2**62
_KNOWN_MIN = 200
"""Length of a computed result if several indexes or sizes may be compared with it."""


class Audit:
    """A copy of the live objects in plain Python, and comparisons with it.

    The oracle receives only the objects that share a keyword, so that a sample of hundreds is affordable
    with a million objects.

    Parameters
    ----------
    subscriptions
        The subscriptions of the benchmark.
    maxdist_m
        Diagonal of the area.
    """

    def __init__(self, subscriptions: Subscriptions, maxdist_m: float) -> None:
        self.lists = 0
        self.mismatches = 0
        self._subscriptions = subscriptions
        self._words = keyword_sets(subscriptions.interests.keywords)
        self._maxdist_m = maxdist_m
        self._alive: dict[int, oracle.OracleObject] = {}
        self._having: dict[str, set[int]] = {}
        self._known: dict[int, tuple[int, list[int]]] = {}

    def publish(self, objects: ObjectBatch) -> None:
        """Record published objects."""
        self._known.clear()
        words = keyword_sets(objects.keywords)
        columns = (objects.ids.tolist(), objects.x_m.tolist(), objects.y_m.tolist(), words)
        for object_id, x_m, y_m, row in zip(*columns, strict=True):
            keywords = frozenset(map(str, row.tolist()))
            self._alive[object_id] = oracle.OracleObject(object_id, x_m, y_m, keywords, 0, _FOREVER)
            for word in keywords:
                self._having.setdefault(word, set()).add(object_id)

    def remove(self, ids: Ints) -> None:
        """Record removed objects."""
        self._known.clear()
        for object_id in ids.tolist():
            for word in self._alive.pop(object_id).keywords:
                self._having[word].discard(object_id)

    def compare_found(self, found: Ranking, count: Ints | None = None) -> None:
        """Compare the results of an object index, for subscriptions 1, 2, ... at their first positions.

        Parameters
        ----------
        found
            Results of the first subscriptions, or of all.
        count
            Number of compared objects of each; by default k.
        """
        started = self._subscriptions
        for row in range(len(found.offsets) - 1):
            self.lists += 1
            wanted = int(started.k[row] if count is None else count[row])
            ids = found.ids[found.offsets[row] : found.offsets[row + 1]][:wanted]
            if ids.tolist() != self._expected_at_start(row, wanted):
                self.mismatches += 1

    def _expected_at_start(self, row: int, count: int) -> list[int]:
        """Return the true result at a device's first position; cached until objects change."""
        requested, ids = self._known.get(row, (-1, []))
        if requested < count:
            requested = max(count, _KNOWN_MIN)
            started = self._subscriptions
            ids = self._expected(row + 1, float(started.x_m[row]), float(started.y_m[row]), requested)
            self._known[row] = (requested, ids)
        return ids[:count]

    def compare(self, engine: Engine, handles: Ints, x_m: Floats, y_m: Floats) -> None:
        """Compare the results that devices at these positions compute from the objects that they hold."""
        for handle, x, y in zip(handles.tolist(), x_m.tolist(), y_m.tolist(), strict=True):
            self.lists += 1
            k = int(self._subscriptions.k[handle - 1])
            if self._shown(engine, handle, x, y) != self._expected(handle, x, y, k):
                self.mismatches += 1

    def compare_sets(self, handles: Ints, shown: list[list[int]], x_m: Floats, y_m: Floats) -> None:
        """Compare unordered results at these positions."""
        for handle, ids, x, y in zip(handles.tolist(), shown, x_m.tolist(), y_m.tolist(), strict=True):
            self.lists += 1
            k = int(self._subscriptions.k[handle - 1])
            if sorted(ids) != sorted(self._expected(handle, x, y, k)):
                self.mismatches += 1

    def compare_list(self, handle: int, shown: list[int] | None, x_m: float, y_m: float) -> None:
        """Compare the result that one device shows at a position."""
        self.lists += 1
        if shown != self._expected(handle, x_m, y_m, int(self._subscriptions.k[handle - 1])):
            self.mismatches += 1

    def compare_range(self, handle: int, held: set[int], x_m: float, y_m: float, radius_m: float) -> None:
        """Compare the objects that a device holds with the definition.

        The definition is all objects that have its keywords and lie within a stationary circle.
        """
        self.lists += 1
        wanted = frozenset(map(str, self._words[handle - 1].tolist()))
        circle = oracle.OracleCircle(radius_m, (x_m, y_m))
        query = oracle.OracleRange((oracle.OracleClause(wanted, frozenset()),), circle)
        candidates = [self._alive[one] for one in self._having.get(min(wanted), set())]
        found = oracle.matching(query, x_m, y_m, candidates, 1)
        if held != {match.object_id for match in found}:
            self.mismatches += 1

    def _expected(self, handle: int, x_m: float, y_m: float, count: int) -> list[int]:
        row = handle - 1
        wanted = frozenset(map(str, self._words[row].tolist()))
        interests = self._subscriptions.interests
        query = oracle.OracleSubscription(
            wanted,
            count,
            float(self._subscriptions.alpha[row]),
            Similarity(int(interests.similarity[row])).name.lower(),
        )
        ids: set[int] = set()
        for word in wanted:
            ids |= self._having.get(word, set())
        candidates = [self._alive[object_id] for object_id in ids]
        found = oracle.top_k(query, x_m, y_m, self._maxdist_m, candidates, 1)
        return [match.object_id for match in found]

    def _shown(self, engine: Engine, handle: int, x_m: float, y_m: float) -> list[int] | None:
        """Return the result that a device shows; None if it knows that it is not exact."""
        row = top_k_of(engine).row(handle)
        ids, shares = engine.held(handle)
        table = engine.objects.table
        places = table.rows[table.slots(ids)]
        region = AnchoredRegion(int(row["k"]))
        held = zip(
            ids.tolist(), places["x_m"].tolist(), places["y_m"].tolist(), shares.tolist(), strict=True
        )
        region.update(
            Point(float(row["x_m"]), float(row["y_m"])),
            float(row["reach_m"]),
            int(row["reach_id"]),
            [Buffered(object_id, x, y, r_m, _FOREVER) for object_id, x, y, r_m in held],
        )
        evaluation = region.evaluate(x_m, y_m, 1)
        return [object_id for _, object_id in evaluation.best] if evaluation.exact else None


def audit_seconds(seconds: int, audits: int) -> set[int]:
    """Return the seconds of a run at which to audit: evenly distributed, the last at its end."""
    return {max(1, seconds * number // audits) for number in range(1, audits + 1)}


def sample(count: int, size: int, chance: np.random.Generator) -> Ints:
    """Draw handles, all different."""
    return np.sort(chance.choice(count, min(size, count), replace=False)).astype(np.int64) + 1
