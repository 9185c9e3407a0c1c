"""The mode NEAREST: a safe region that ends where the result would change, as the AP+-Tree-Safe has it.

The device holds its result, and is silent in a circle about where it was evaluated. Its radius is the
distance to the nearest match outside of the range, less the range's radius (ap-tree.txt, footnote 17).
That alone misses what leaves: so it is no more, either, than what the farthest match inside has to the
range's edge. A new object that matches within the range grown by that radius, which the paper calls the
impact region, may matter: the server asks where the device is, and evaluates anew.

So this is a slack (`safe_region.ranges`) within which nothing lies.

Operations: a look-up or several, each twice as far as the one before, until there is a match outside.
"""

from __future__ import annotations

import numpy as np

from engine.boolean.layout import sizes
from engine.boolean.tables import BooleanTables
from index.batches import Floats
from index.tables.slots import Slots

FIRST = 1.0
"""How far beyond its range is looked for a subscription first, in radii."""
FIRST_IN_CROWDS = 0.0625
"""The same where much may be."""
_LAST = 32.0
"""How far at most: with nothing there, that is the slack."""


def choose_nearest(tables: BooleanTables, slots: Slots, share: float = FIRST) -> None:
    """Write the slack of subscriptions that have been placed.

    `share` is how far is looked first: a power of 2.
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
    """Return the largest slacks with which objects this far, beyond the radius, are not held."""
    slack_m: Floats = np.maximum(0.0, np.nextafter(nearest_m, 0.0) - radius_m)
    while (is_much := radius_m + slack_m >= nearest_m).any():
        slack_m = np.where(is_much, np.nextafter(slack_m, 0.0), slack_m)
    return slack_m
