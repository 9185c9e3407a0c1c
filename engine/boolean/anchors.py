"""Choose the anchors and slacks of moving ranges.

Operations: O(1) a subscription.
"""

from __future__ import annotations

import numpy as np

from engine.boolean.layout import sizes
from engine.boolean.slack import Choice, choose
from engine.contracts import Bools, Positions
from engine.objects import Objects
from engine.options import EngineOptions
from index.batches import Floats
from index.tables import SlotTable
from index.tables.slots import Slots

_MARGINS = 3.0
"""A slack exceeds the chosen one by this many margins of the position: the device's test takes two."""
_CERTAIN_SHARE = 0.99
"""A fraction of the slack: a device this far from its anchor is certainly silent, however distances are
rounded."""
_MS_PER_S = 1000.0


class Anchors:
    """The choice of anchors and slacks.

    Parameters
    ----------
    objects
        The live objects.
    subscriptions
        The table whose rows are changed.
    options
        A fixed slack, or the costs by which it is chosen.
    """

    def __init__(self, objects: Objects, subscriptions: SlotTable, options: EngineOptions) -> None:
        self._objects = objects
        self._subscriptions = subscriptions
        self._options = options

    def place(self, slots: Slots, positions: Positions) -> None:
        """Anchor moving ranges at the least expected cost, with the slack of least cost."""
        if not len(slots):
            return
        rows = self._subscriptions.rows
        unknown = np.full(len(slots), np.nan)
        heading = unknown if positions.heading_rad is None else positions.heading_rad
        margin_m = _margins(positions)
        self._learn_speed(slots, positions)
        chosen = self._choice(slots, ~np.isnan(heading) & (margin_m == 0.0))
        heading = np.where(np.isnan(heading), 0.0, heading)
        rows["x_m"][slots] = positions.x_m + chosen.ahead_m * np.sin(heading)
        rows["y_m"][slots] = positions.y_m + chosen.ahead_m * np.cos(heading)
        rows["margin_m"][slots] = margin_m
        rows["slack_m"][slots] = chosen.slack_m + _MARGINS * margin_m
        rows["anchored_ms"][slots] = self._objects.now_ms

    def are_astray(self, slots: Slots, positions: Positions) -> Bools:
        """Return whether each device is too far from its anchor.

        This happens when the anchor lies ahead and the slack was cut.
        """
        rows = self._subscriptions.rows[slots]
        ahead_m = np.hypot(positions.x_m - rows["x_m"], positions.y_m - rows["y_m"])
        found: Bools = (ahead_m > 0.0) & (ahead_m >= _CERTAIN_SHARE * rows["slack_m"])
        return found

    def place_here(self, slots: Slots, positions: Positions) -> None:
        """Anchor ranges at their devices, and reset whether there are too many matches."""
        rows = self._subscriptions.rows
        rows["x_m"][slots] = positions.x_m
        rows["y_m"][slots] = positions.y_m
        rows["slack_m"][slots] = sizes(rows[slots])
        rows["too_many"][slots] = 0

    def _learn_speed(self, slots: Slots, positions: Positions) -> None:
        """Update the speed of devices: the reported one, else that since the last anchor."""
        rows = self._subscriptions.rows
        passed_s = (self._objects.now_ms - rows["anchored_ms"][slots]) / _MS_PER_S
        is_known = (rows["is_awake"][slots] == 1) & (passed_s > 0.0)
        moved_m = np.hypot(positions.x_m - rows["x_m"][slots], positions.y_m - rows["y_m"][slots])
        speed_mps: Floats = np.where(is_known, moved_m / np.where(is_known, passed_s, 1.0), np.nan)
        if positions.speed_mps is not None:
            speed_mps = np.where(np.isnan(positions.speed_mps), speed_mps, positions.speed_mps)
        before_mps = rows["speed_mps"][slots]
        mean_mps = np.where(np.isnan(before_mps), speed_mps, (before_mps + speed_mps) / 2.0)
        rows["speed_mps"][slots] = np.where(np.isnan(speed_mps), before_mps, mean_mps)

    def _choice(self, slots: Slots, may_aim: Bools) -> Choice:
        rows = self._subscriptions.rows[slots]
        share = self._options.range_slack
        if share is not None:
            return Choice(sizes(rows) * share, np.zeros(len(slots)))
        costs = self._options.costs
        speed_mps = np.where(np.isnan(rows["speed_mps"]), costs.speed_mps, rows["speed_mps"])
        may_aim = may_aim & (rows["too_many"] == 0)
        arrivals = self._objects.windows.rates()[0][rows["window"]]
        return choose(rows, speed_mps, may_aim, arrivals, costs, self._options.matches_max)


def _margins(positions: Positions) -> Floats:
    return np.zeros(len(positions.handles)) if positions.margin_m is None else positions.margin_m
