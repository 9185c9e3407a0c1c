"""Explain to operators why a device holds an object or does not, by subscription or by object.

Plain Python, from data that the indexes have anyway: nothing is kept for it, and nothing is changed. A
query costs the same as a search for that number of objects.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from engine.boolean.matcher import BooleanMatcher
from engine.contracts import kind_of
from engine.engine import Engine
from engine.stationary.matcher import StationaryMatcher
from engine.top_k.matcher import TopKMatcher
from index.batches import Floats, Ints, KeywordIds
from index.tables.slots import Slots
from safe_region.scoring.formulas import Similarity, text_distance

_TFIDF = int(Similarity.TFIDF)


def qualifying(engine: Engine, handle: int, count: int) -> Ints:
    """Return the ids of objects that qualify for a subscription that is awake, best first.

    For a top-k subscription at most `count`, by (length at the anchor, id). For a boolean one all that
    match its range enlarged by the slack, by (distance from the middle of the range, id).
    """
    matcher = engine.matchers[kind_of(handle)]
    tables = _tables(matcher)
    slots = tables.subscriptions.slots(_only(handle))
    if isinstance(matcher, BooleanMatcher):
        found = matcher.tables.find(matcher.tables.places(slots))
        ids: Ints = engine.objects.table.rows["id"][found.objects]
        return ids[np.lexsort((ids, found.distance_m))]
    rows = tables.subscriptions.rows[slots]
    return engine.objects.index.best(
        tables.interests(slots),
        rows["x_m"],
        rows["y_m"],
        np.array([count], dtype=np.int64),
        np.array([math.inf]),
        engine.objects.windows.first_ids[rows["window"]],
    ).ids


def share_m(engine: Engine, handle: int, object_id: int) -> float | None:
    """Return the constant part of a live object's length for a subscription, metres.

    None if the object's keywords do not qualify; 0 for boolean subscriptions.
    """
    matcher = engine.matchers[kind_of(handle)]
    table = engine.objects.table
    object_slot = int(table.slots(_only(object_id))[0])
    words = set(table.keywords(object_slot).tolist())
    if isinstance(matcher, BooleanMatcher):
        slot = int(matcher.tables.subscriptions.slots(_only(handle))[0])
        clauses = (
            (set(required.tolist()), set(excluded.tolist()))
            for required, excluded in matcher.tables.expression(slot)
        )
        matches = any(required <= words and not excluded & words for required, excluded in clauses)
        return 0.0 if matches else None
    tables = _tables(matcher)
    slot = int(tables.subscriptions.slots(_only(handle))[0])
    row = tables.subscriptions.rows[slot]
    wanted = tables.subscriptions.keywords(slot)
    if words.isdisjoint(wanted.tolist()):
        return None
    if int(row["similarity"]) == _TFIDF:
        squares = engine.objects.weights.squares[:, int(row["index"]) - 1]
        sizes = _sums(squares, wanted, table.keywords(object_slot))
    else:
        sizes = (float(len(words & set(wanted.tolist()))), float(len(wanted)), float(len(words)))
    return float(row["weight_m"]) * text_distance(int(row["similarity"]), *sizes)


def _sums(squares: Floats, left: KeywordIds, right: KeywordIds) -> tuple[float, float, float]:
    """Return the sums of the squared weights of common keywords, and of each set; they are exact."""
    common = np.intersect1d(left, right)
    return float(squares[common].sum()), float(squares[left].sum()), float(squares[right].sum())


def counts_in_window(engine: Engine, handle: int, object_id: int) -> bool:
    """Return whether a live object is in the window of a subscription."""
    tables = _tables(engine.matchers[kind_of(handle)])
    window = tables.subscriptions.rows["window"][tables.subscriptions.slots(_only(handle))]
    return bool(engine.objects.windows.do_count(_only(object_id), window)[0])


def holders(engine: Engine, object_id: int) -> list[int]:
    """Return the subscriptions whose devices are to hold a live object, by handle."""
    slots = engine.objects.table.slots(_only(object_id))
    row = engine.objects.table.rows[int(slots[0])]
    found: list[int] = []
    for matcher in engine.matchers.values():
        if isinstance(matcher, TopKMatcher):
            holdings, place = matcher.buffers.holdings, int(row["first_holding"])
            while place >= 0:
                found.append(int(matcher.subscriptions.rows["id"][holdings[place]["owner"]]))
                place = int(holdings[place]["next"])
        elif isinstance(matcher, StationaryMatcher):
            entries, place = matcher.tables.entries, int(matcher.tables.heads()[slots[0]])
            while place >= 0:
                if entries[place]["is_result"]:
                    found.append(int(matcher.subscriptions.rows["id"][entries[place]["owner"]]))
                place = int(entries[place]["next"])
        elif isinstance(matcher, BooleanMatcher):
            found += _boolean_holders(matcher, slots)
    return sorted(found)


def _boolean_holders(matcher: BooleanMatcher, slots: Slots) -> list[int]:
    tables = matcher.tables
    pairs = tables.known(slots)
    pairs = pairs.part(~tables.pending.are_in(pairs))
    is_held = (tables.subscriptions.rows["too_many"][pairs.rows] == 0) | tables.capped.are_held(pairs)
    found: list[int] = tables.subscriptions.rows["id"][pairs.rows[is_held]].tolist()
    return found


def _tables(matcher: object) -> Any:  # noqa: ANN401 - rows of each kind are its own
    if isinstance(matcher, TopKMatcher | BooleanMatcher | StationaryMatcher):
        return matcher.tables
    raise TypeError(f"{type(matcher).__name__} cannot be inspected")


def _only(number: int) -> Ints:
    return np.array([number], dtype=np.int64)
