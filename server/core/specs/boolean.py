"""Boolean subscriptions with keywords as text, over the matcher's rows.

This module holds the data that the matcher does not need: the degrees of ranges that are fixed in place.
A `Boolean` is created on demand. A look-up costs O(keywords), subscribe O(clauses).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from engine.boolean.layout import BooleanSpecs
from engine.boolean.matcher import BooleanMatcher
from engine.contracts import BOOLEAN
from index.batches import Floats, Ints, Ranking
from safe_region.earth.frame import Frame
from safe_region.earth.shapes import Range
from safe_region.regions.region import RegionMode
from server.core.keyword_dictionary import KeywordDictionary
from server.core.specs.checks import checked_keywords, require
from server.core.specs.range_table import RangeTable, plane_ranges
from server.core.specs.ranges import checked_range, decoded_range, encoded_range
from server.core.specs.windows import (
    check_window,
    decoded_window,
    encoded_window,
    lasts_of,
    window_of,
)
from server.limits import Limits
from server.model import Boolean, Clause, Slack

DWELL_MS_MAX = 24 * 3_600_000
"""A day: longer than most objects live."""

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class BooleanKind:
    """Boolean subscriptions; see `server.core.specs.Kind`.

    Parameters
    ----------
    matcher
        The matcher that holds the subscriptions.
    dictionary
        The numbers of keywords.
    frame
        The service area.
    """

    number = BOOLEAN

    def __init__(self, matcher: BooleanMatcher, dictionary: KeywordDictionary, frame: Frame) -> None:
        self._matcher = matcher
        self._dictionary = dictionary
        self._frame = frame
        self._ranges = RangeTable(matcher.subscriptions)
        self._dwell_ms: dict[int, int] = {}
        """By slot, for subscriptions with a dwell time."""

    @classmethod
    def checked(cls, spec: Boolean, limits: Limits, frame: Frame) -> Boolean:
        """Return a normalised spec: clauses sorted, each once.

        Raises
        ------
        RefusalError
            Naming the field that is out of its limits.
        """
        field = "spec.boolean.clauses"
        most = limits.clauses_max
        require(1 <= len(spec.clauses) <= most, field, f"{len(spec.clauses)} clauses", f"1 to {most}")
        clauses = {_checked_clause(one, f"{field}[{i}]", limits) for i, one in enumerate(spec.clauses)}
        where = checked_range(spec.range, limits, frame, is_moving=spec.is_moving)
        is_known = spec.is_moving or spec.region is RegionMode.ANCHORED
        require(is_known, "spec.region", spec.region.name, "ANCHORED, since the range does not move")
        limit = f"0 to {DWELL_MS_MAX}"
        require(0 <= spec.dwell_ms <= DWELL_MS_MAX, "spec.boolean.dwell_ms", spec.dwell_ms, limit)
        check_window(spec.window, spec.region, limits, (RegionMode.ANCHORED,))
        return replace(spec, clauses=tuple(sorted(clauses)), range=where)

    @classmethod
    def needs_exact_positions(cls, spec: Boolean) -> bool:
        """Return whether the region ends at the place where the result changes."""
        return spec.region.needs_exact_position

    @classmethod
    def renamed(cls, spec: Boolean, name: Callable[[str], str]) -> Boolean:
        """Return a spec with another name for each keyword; their order stays."""
        clauses = (Clause(*(tuple(map(name, words)) for words in one)) for one in spec.clauses)
        return replace(spec, clauses=tuple(clauses))

    @classmethod
    def encoded(cls, spec: Boolean) -> str:
        """Return a spec as JSON: the fields of the message of the same name."""
        clauses = [
            {"required": one.required} | ({"excluded": one.excluded} if one.excluded else {})
            for one in spec.clauses
        ]
        found = {"clauses": clauses, **encoded_range(spec.range), "moving": spec.is_moving}
        if spec.region is not RegionMode.ANCHORED:
            found["region"] = int(spec.region)
        if spec.dwell_ms:
            found["dwell_ms"] = spec.dwell_ms
        return _encode(found | encoded_window(spec.window))

    def needs_exact_position(self, handle: int) -> bool:
        """Return whether the region ends at the place where the result changes."""
        region = int(self._matcher.subscriptions.rows["region"][self._slot(handle)])
        return RegionMode(region).needs_exact_position

    def subscribe(self, handle: int, spec: Boolean) -> None:
        """Add a subscription, parked."""
        self._subscribe(np.array([handle], dtype=np.int64), [spec])

    def restore(self, handles: Ints, specs: Sequence[Any]) -> None:
        """Add many subscriptions, parked; the specs are the parsed JSON that `encoded` wrote."""
        self._subscribe(handles, [_decoded(one) for one in specs])

    def _subscribe(self, handles: Ints, specs: Sequence[Boolean]) -> None:
        self._matcher.subscribe(handles, self._columns(specs))
        slots = self._matcher.subscriptions.slots(handles)
        self._ranges.put(slots, [spec.range for spec in specs])
        dwelling = zip(slots.tolist(), (spec.dwell_ms for spec in specs), strict=True)
        self._dwell_ms.update((slot, dwell_ms) for slot, dwell_ms in dwelling if dwell_ms)

    def _columns(self, specs: Sequence[Boolean]) -> BooleanSpecs:
        """Return specs as columns for the matcher. Their keywords are in use until released."""
        clauses = [clause for spec in specs for clause in spec.clauses]
        return BooleanSpecs(
            np.cumsum([0, *(len(spec.clauses) for spec in specs)], dtype=np.int64),
            self._dictionary.take_all([clause.required for clause in clauses]),
            self._dictionary.take_all([clause.excluded for clause in clauses]),
            plane_ranges([spec.range for spec in specs], self._frame),
            np.array([spec.region for spec in specs], dtype=np.int8),
            lasts_of([spec.window for spec in specs]),
        )

    def unsubscribe(self, handle: int) -> None:
        """Remove a subscription."""
        slot, keywords = self._slot(handle), list(_keywords(self._clauses(handle)))
        self._matcher.unsubscribe(np.array([handle], dtype=np.int64))
        self._ranges.remove(slot)
        self._dwell_ms.pop(slot, None)
        self._dictionary.give_back(keywords)

    def spec(self, handle: int) -> Boolean:
        """Return the spec of a subscription."""
        slot = self._slot(handle)
        where, dwell_ms = self._ranges.get(slot), self._dwell_ms.get(slot, 0)
        clauses = tuple(sorted(self._clauses(handle)))
        row = self._matcher.subscriptions.rows[slot]
        is_moving, region = bool(row["is_moving"]), RegionMode(int(row["region"]))
        window = window_of(self._matcher.windows, int(row["window"]))
        return Boolean(clauses, where, is_moving, region, dwell_ms, window)

    def _clauses(self, handle: int) -> list[Clause]:
        rows = self._matcher.tables.expression(self._slot(handle))
        return [Clause(*map(self._dictionary.row, row)) for row in rows]

    def clause_keyword_count(self, handles: Sequence[int]) -> int:
        """Return how many keywords all clauses of subscriptions require and exclude. O(clauses)."""
        slots = self._matcher.subscriptions.slots(np.array(handles, dtype=np.int64))
        return self._matcher.tables.clause_keyword_count(slots)

    def _slot(self, handle: int) -> int:
        return int(self._matcher.subscriptions.slots(np.array([handle], dtype=np.int64))[0])

    def bound(self, handle: int, bound_m: float, bound_id: int) -> Slack:  # noqa: ARG002
        """Return a slack."""
        return Slack(bound_m, bool(bound_id))

    def search(self, specs: Sequence[Boolean], x_m: Floats, y_m: Floats) -> Ranking:
        """Return the current matches at each place."""
        ranking = self._matcher.search(self._columns(specs), x_m, y_m)
        for spec in specs:
            self._dictionary.give_back(_keywords(spec.clauses))
        return ranking


def _checked_clause(clause: Clause, field: str, limits: Limits) -> Clause:
    """Return a normalised clause."""
    bounds = limits.clause_keywords_max, limits.keyword_length_max
    required = checked_keywords(clause.required, f"{field}.required", *bounds)
    excluded: tuple[str, ...] = ()
    if clause.excluded:
        excluded = checked_keywords(clause.excluded, f"{field}.excluded", *bounds)
    both = sorted(set(required) & set(excluded))
    limit = "no keyword that is also required"
    require(not both, f"{field}.excluded", repr(both[0]) if both else "", limit)
    return Clause(required, excluded)


def _keywords(clauses: Iterable[Clause]) -> Iterable[str]:
    """Return the keywords of all clauses, each once per list that contains it."""
    return chain.from_iterable(words for clause in clauses for words in clause)


def _decoded(found: Any) -> Boolean:  # noqa: ANN401 - JSON
    clauses = tuple(
        Clause(tuple(one["required"]), tuple(one.get("excluded", ()))) for one in found["clauses"]
    )
    where: Range = decoded_range(found)
    region, dwell_ms = RegionMode(found.get("region", 1)), int(found.get("dwell_ms", 0))
    return Boolean(clauses, where, bool(found["moving"]), region, dwell_ms, decoded_window(found))
