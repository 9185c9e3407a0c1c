"""Link holdings in chains: the result index.

A buffer is a span of holdings, `buffer_count` of them in use, in no particular order. The holdings of one
object are chained, from `objects[...]["first_holding"]`. Operations O(1).
"""

from __future__ import annotations

from engine.top_k.layout import NO_HOLDING, Rows
from safe_region.jit import leaf


@leaf
def hold(
    objects: Rows, subscriptions: Rows, holdings: Rows, owner: int, object_slot: int, r_m: float
) -> None:
    """Insert an object into a buffer with free capacity."""
    place = subscriptions[owner]["buffer_start"] + subscriptions[owner]["buffer_count"]
    subscriptions[owner]["buffer_count"] += 1
    first = objects[object_slot]["first_holding"]
    holdings[place]["r_m"] = r_m
    holdings[place]["object"] = object_slot
    holdings[place]["owner"] = owner
    holdings[place]["next"] = first
    holdings[place]["previous"] = NO_HOLDING
    if first != NO_HOLDING:
        holdings[first]["previous"] = place
    objects[object_slot]["first_holding"] = place


@leaf
def _point_at(objects: Rows, holdings: Rows, place: int, to: int, following: int) -> None:
    """Set the links of a holding's neighbours in its chain to `to` and back to `following`."""
    previous, after = holdings[place]["previous"], holdings[place]["next"]
    if previous != NO_HOLDING:
        holdings[previous]["next"] = to
    else:
        objects[holdings[place]["object"]]["first_holding"] = to
    if after != NO_HOLDING:
        holdings[after]["previous"] = following


@leaf
def release(objects: Rows, subscriptions: Rows, holdings: Rows, place: int) -> None:
    """Remove one holding from its buffer; the buffer's last holding moves to its place."""
    owner = holdings[place]["owner"]
    _point_at(objects, holdings, place, holdings[place]["next"], holdings[place]["previous"])
    subscriptions[owner]["buffer_count"] -= 1
    last = subscriptions[owner]["buffer_start"] + subscriptions[owner]["buffer_count"]
    if last != place:
        _point_at(objects, holdings, last, place, place)
        _copy(holdings, last, place)


@leaf
def move_holding(objects: Rows, holdings: Rows, place: int, to: int) -> None:
    """Move a holding to another place; the links of its neighbours are updated."""
    _point_at(objects, holdings, place, to, to)
    _copy(holdings, place, to)
    holdings[to]["owner"] = holdings[place]["owner"]


@leaf
def _copy(holdings: Rows, place: int, to: int) -> None:
    """Copy all but the owner."""
    holdings[to]["r_m"] = holdings[place]["r_m"]
    holdings[to]["object"] = holdings[place]["object"]
    holdings[to]["next"] = holdings[place]["next"]
    holdings[to]["previous"] = holdings[place]["previous"]
