"""Choose slacks of the mode NEAREST: regions that end where the result changes, as in AP+-Tree-Safe.

The device holds its result, and is silent in a circle about the place where it was evaluated. The radius
is the distance to the nearest match outside of the range, less the range's radius (ap-tree.txt, footnote
17). This alone misses objects that leave. So the radius is also at most the distance of the farthest
match inside from the range's edge. A new match within the range enlarged by that radius, which the paper
calls the impact region, may matter: the server requests the device's position, and evaluates again.

So this is a slack (`safe_region.regions.ranges`) within which no object lies.

Operations: one or more look-ups, each twice as far as the one before, until there is a match outside.
"""

from __future__ import annotations

import numpy as np

from engine.boolean.layout import sizes
from engine.boolean.tables import BooleanTables
from index.batches import Floats
from index.tables.slots import Slots

FIRST = 1.0
"""The distance beyond a range of the first look-up, in radii."""
FIRST_IN_CROWDS = 0.0625
"""The same where there may be many objects."""
_LAST = 32.0
"""The largest distance: if nothing is found there, it is the slack."""


def choose_nearest(tables: BooleanTables, slots: Slots, share: float = FIRST) -> None:
    """Write the slack of subscriptions that have been placed.

    `share` is the distance of the first look-up in radii: a power of 2.
    """
    rows = tables.subscriptions.rows
    while len(slots):
        places = tables.places(slots)
        radius_m = rows["radius_m"][slots]
        beyond_m = share * sizes(rows[slots])
        found = tables.find(places._replace(reach_m=radius_m + beyond_m))
        is_outside = found.nearest_m > radius_m[found.rows]
        outside_m, inside_m = np.full(len(slots), np.inf), np.full(len(slots), -np.inf)
        np.minimum.at(outside_m, found.rows[is_outside], found.nearest_m[is_outside])
        np.maximum.at(inside_m, found.rows[~is_outside], found.nearest_m[~is_outside])
        is_found = np.isfinite(outside_m)
        slack_m = np.where(is_found, slack_below(radius_m, outside_m), beyond_m)
        rows["slack_m"][slots] = np.minimum(slack_m, radius_m - inside_m)
        if share >= _LAST:
            return
        slots = slots[~is_found]
        share *= 2.0


def slack_below(radius_m: Floats, nearest_m: Floats) -> Floats:
    """Return the largest slacks with which objects at these distances are not held.

    Distances count from the middle of the range, slacks from the radius.
    """
    slack_m: Floats = np.maximum(0.0, np.nextafter(nearest_m, 0.0) - radius_m)
    while (is_much := radius_m + slack_m >= nearest_m).any():
        slack_m = np.where(is_much, np.nextafter(slack_m, 0.0), slack_m)
    return slack_m
