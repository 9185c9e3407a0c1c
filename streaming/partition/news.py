"""The changes of results in a batch: sums up the changes that the engine reports.

Operations: O(1) a change, plus sorting them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from engine import Engine
from engine.change_kernels import net
from engine.contracts import CHANGE_DTYPE, STATIONARY, Rows, kinds_of, numbers_of
from engine.stationary.matcher import StationaryMatcher
from index.batches import Floats, Ints
from index.tables.order_kernels import order_of
from streaming.arrays.changes import Changes
from streaming.partition.score_kernels import scores_of
from streaming.partition.window import Bools

_SAME_SCORE = 1e-12
"""Scores that differ by no more than this are equal, in whatever order their terms were added."""
_NOTHING = np.empty(0, dtype=np.int64)

Emit = Callable[[Rows], None]
"""Called with changes, in their order."""


def nobody(_rows: Rows) -> None:
    """Ignore changes."""


class News:
    """Collects the changes of a batch.

    Parameters
    ----------
    engine
        The engine with the objects and subscriptions.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._matcher: StationaryMatcher = engine.matchers[STATIONARY]  # type: ignore[assignment]
        self.ending: Ints = _NOTHING
        """Boolean subscriptions that will end in this batch, and may be replaced."""
        self._rows: list[Rows] = [np.empty(0, dtype=CHANGE_DTYPE)]
        self._scores: list[Floats] = [np.empty(0)]
        """Scores of entries, and of the objects that ending subscriptions lose; NaN for other drops."""

    def emit(self, rows: Rows) -> None:
        """Record changes, while the objects that enter are in the engine."""
        scores = self._scores_of(rows, np.flatnonzero(rows["is_drop"] == 0))
        has_no_score = (rows["is_drop"] == 1) & ~np.isin(rows["handle"], self.ending)
        self._rows.append(rows)
        self._scores.append(np.where(has_no_score, np.nan, scores))

    def emit_ended(self, handles: Ints) -> None:
        """Record that subscriptions lose their results, before they end."""
        found = [self._engine.held(int(handle)) for handle in handles]
        counts = [len(held) for held, _ in found]
        rows = np.zeros(sum(counts), dtype=CHANGE_DTYPE)
        rows["handle"] = np.repeat(handles, counts)
        rows["object_id"] = np.concatenate([_NOTHING, *(held for held, _ in found)])
        rows["r_m"] = np.concatenate([np.empty(0), *(shares for _, shares in found)])
        rows["is_drop"] = 1
        self._rows.append(rows)
        self._scores.append(self._scores_of(rows, np.arange(len(rows))))

    def net(self) -> Changes:
        """Return the net changes by object; an object that entered and left again is omitted."""
        rows, scores = np.concatenate(self._rows), np.concatenate(self._scores)
        # A subscription that replaces another of its number may be of another kind.
        numbers, ids = numbers_of(rows["handle"]), rows["object_id"].copy()
        order = order_of(ids, order_of(numbers, np.arange(len(rows))))
        again = _rescored(numbers, ids, rows["is_drop"] == 1, scores, order)
        kept = order[: net(numbers, ids, order)]
        if len(again):
            kept = np.concatenate([kept, again])
            kept = kept[np.lexsort((numbers[kept], ids[kept]))]
        is_left = rows["is_drop"][kept] == 1
        return Changes(ids[kept], numbers[kept], is_left, np.where(is_left, 0.0, scores[kept]))

    def _scores_of(self, rows: Rows, which: Ints) -> Floats:
        """Return the scores of the rows in `which`; 0 for other rows and for boolean subscriptions."""
        scores = np.zeros(len(rows))
        which = which[kinds_of(rows["handle"][which]) == STATIONARY]
        if len(which):
            objects, subscriptions = self._engine.objects.table, self._matcher.subscriptions
            scores_of(
                objects.rows,
                subscriptions.rows,
                objects.slots(rows["object_id"][which]),
                subscriptions.slots(rows["handle"][which]),
                rows["r_m"].copy(),
                which,
                self._engine.options.maxdist_m,
                scores,
            )
        return scores


def _rescored(numbers: Ints, ids: Ints, is_drop: Bools, scores: Floats, order: Ints) -> Ints:
    """Return changes of objects that stay in a result with another score: the subscription was replaced.

    Parameters
    ----------
    numbers, ids, is_drop, scores
        The changes. Drops of a subscription that ended have a score, other drops NaN.
    order
        All changes, ordered so that those of a pair follow each other in the order of their arrival.
    """
    ended = np.flatnonzero((is_drop & ~np.isnan(scores))[order])
    if not len(ended):
        return _NOTHING
    is_first = np.ones(len(order), dtype=np.bool_)
    is_first[1:] = (np.diff(numbers[order]) != 0) | (np.diff(ids[order]) != 0)
    starts = np.append(np.flatnonzero(is_first), len(order))
    pair = np.cumsum(is_first)[ended] - 1
    last = order[starts[pair + 1] - 1]
    stays = ((starts[pair + 1] - starts[pair]) % 2 == 0) & ~is_drop[last]
    found: Ints = last[stays & (np.abs(scores[last] - scores[order[ended]]) > _SAME_SCORE)]
    return found
