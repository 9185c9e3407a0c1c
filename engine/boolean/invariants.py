"""Check the invariants of boolean subscriptions, from the definitions: O(subscriptions * objects)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from engine.areas import AreaArrays
from engine.boolean.layout import CIRCLE, RECTANGLE
from engine.boolean.pairs import Pairs
from engine.boolean.tables import BooleanTables
from engine.items import Item, items_of
from engine.layout import POINT
from engine.polygons import RingPool
from index.contracts import InconsistentIndexError
from index.tables.slots import Slots
from safe_region.oracle import plane as oracle_plane

_ROUNDING_M = 1e-9
"""The distance of a polygon from a rectangle is rounded: near the edge of the held region both results
are correct."""


def check_boolean(tables: BooleanTables, matches_max: int) -> None:
    """Verify every invariant.

    Raises
    ------
    InconsistentIndexError
        Names the invariant that does not hold.
    """
    for part in (tables.subscriptions, tables.clauses, tables.excluded, tables.finder):
        part.check()
    used = tables.subscriptions.used()
    rows = tables.subscriptions.rows
    awake = used[rows["is_awake"][used] == 1]
    if len(tables.clauses) != rows["clause_count"][used].sum():
        raise InconsistentIndexError("clauses without a subscription")
    if len(tables.finder) != rows["clause_count"][awake].sum():
        raise InconsistentIndexError("the finder does not hold the awake subscriptions")
    tables.capped.check(awake)
    expected, doubtful = _expected(tables, awake)
    known = tables.known(tables.objects.table.used())
    found = tables.find(tables.places(awake)).of(awake)
    for name, pairs in (("finder returns", known), ("object index returns", found)):
        claimed = set(zip(pairs.rows.tolist(), pairs.objects.tolist(), strict=True))
        if claimed - doubtful != expected:
            raise InconsistentIndexError(f"the pairs that the {name} are not the matches")
    for slot in awake.tolist():
        _check_held(tables, matches_max, slot, found.part(found.rows == slot))


def _expected(tables: BooleanTables, awake: Slots) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """Return the slots of subscriptions and objects that match, and those that may or may not."""
    items = items_of(tables.objects.table) if len(awake) > 0 else []
    found: dict[bool | None, set[tuple[int, int]]] = {True: set(), False: set(), None: set()}
    for one in awake.tolist():
        row = tables.subscriptions.rows[one]
        first_id = tables.objects.windows.first_ids[row["window"]]
        clauses = [
            (set(required.tolist()), set(excluded.tolist()))
            for required, excluded in tables.expression(one)
        ]
        for item in items:
            if item.id >= first_id and any(
                item.keywords >= required and not item.keywords & excluded
                for required, excluded in clauses
            ):
                found[_is_in_range(tables, row, item)].add((one, item.slot))
    return found[True], found[None]


def _is_in_range(tables: BooleanTables, row: Any, item: Item) -> bool | None:  # noqa: ANN401 - numpy's
    """Return whether an object lies in the range within which a subscription's device holds matches.

    None if that depends on rounding.
    """
    wanted: oracle_plane.Range
    beyond_m = float(row["margin_m"] if row["too_many"] else row["slack_m"])
    middle = float(row["x_m"]), float(row["y_m"])
    area = _area(tables.objects.areas.arrays, item.slot)
    if row["is_moving"] and row["shape"] == RECTANGLE:
        return _is_in_extent(row, beyond_m, item, area)
    if row["shape"] == CIRCLE:
        wanted = oracle_plane.OracleCircle(float(row["radius_m"]) + beyond_m, middle)
    elif row["shape"] == RECTANGLE:
        wanted = _rectangle(row)
    else:
        wanted = _polygon(row, tables.polygons.pool)
    return oracle_plane.is_within(wanted, (item.x_m, item.y_m), area)


def _is_in_extent(
    row: Any,  # noqa: ANN401 - a row of numpy's
    beyond_m: float,
    item: Item,
    area: oracle_plane.Area | None,
) -> bool | None:
    """Return whether an object lies in a moving rectangle, enlarged on all sides."""
    (x_m, y_m), point = (float(row["x_m"]), float(row["y_m"])), (item.x_m, item.y_m)
    half_x_m, half_y_m = float(row["x2_m"]), float(row["y2_m"])
    if isinstance(area, oracle_plane.OraclePolygon) and beyond_m > 0.0:
        answers = set()
        for more_m in (beyond_m - _ROUNDING_M, beyond_m + _ROUNDING_M):
            extent = (2.0 * (half_x_m + more_m), 2.0 * (half_y_m + more_m), (x_m, y_m))
            answers.add(oracle_plane.is_within(oracle_plane.OracleExtent(*extent), point, area))
        return answers.pop() if len(answers) == 1 else None
    if isinstance(area, oracle_plane.OraclePolygon):
        extent = (2.0 * half_x_m, 2.0 * half_y_m, (x_m, y_m))
        return oracle_plane.is_within(oracle_plane.OracleExtent(*extent), point, area)
    if area is None:
        area = oracle_plane.OracleRectangle(*point, *point)
    excess_m = max(
        max(area.x1_m - x_m, x_m - area.x2_m) - half_x_m, max(area.y1_m - y_m, y_m - area.y2_m) - half_y_m
    )
    return excess_m <= beyond_m


def _area(areas: AreaArrays, object_slot: int) -> oracle_plane.Area | None:
    """Return the area of an object."""
    if areas.of_object[object_slot] == POINT:
        return None
    row = areas.rows[areas.of_object[object_slot] - 1]
    return _polygon(row, areas.rings) if row["ring_count"] else _rectangle(row)


def _rectangle(row: Any) -> oracle_plane.OracleRectangle:  # noqa: ANN401 - a row of numpy's
    """Return the rectangle of a subscription or an object."""
    return oracle_plane.OracleRectangle(*(float(row[name]) for name in ("x1_m", "y1_m", "x2_m", "y2_m")))


def _polygon(row: Any, pool: RingPool) -> oracle_plane.OraclePolygon:  # noqa: ANN401
    """Return the polygon of a subscription or an object."""
    first = int(row["ring_start"])
    ends = pool.offsets[first : first + int(row["ring_count"]) + 1].tolist()
    rings = (
        tuple(zip(pool.x_m[start:end].tolist(), pool.y_m[start:end].tolist(), strict=True))
        for start, end in pairwise(ends)
    )
    return oracle_plane.OraclePolygon(tuple(rings))


def _check_held(tables: BooleanTables, matches_max: int, slot: int, found: Pairs) -> None:
    """Require that the device of one subscription holds the correct objects."""
    row = tables.subscriptions.rows[slot]
    held = len(found.rows)
    if row["too_many"]:
        is_held = tables.capped.are_held(found)
        held = int(is_held.sum())
        is_late = ~is_held & (found.distance_m < row["held_m"])
        if is_late.any() and not row["is_dirty"]:
            raise InconsistentIndexError(f"subscription {row['id']} does not hold the nearest objects")
    if row["match_count"] != held:
        raise InconsistentIndexError(f"subscription {row['id']} has a wrong count of matches")
    held -= int(tables.pending.are_in(found).sum())
    if held > matches_max:
        raise InconsistentIndexError(f"subscription {row['id']} holds {held}, more than {matches_max}")
