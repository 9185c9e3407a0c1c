"""Variants of the suite ranges: another one is a line here."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from bench.datasets import Dataset
from bench.engines import TimedEngine
from bench.ranges.devices import AnchoredDevices, PeriodicDevices, RangeDevices, SetDevices
from bench.ranges.workload import RangesWorkload
from engine import CostModel, Engine, EngineOptions
from engine.boolean.matcher import BooleanMatcher
from engine.contracts import BOOLEAN
from index.catalogue import (
    CLAUSE_INDEXES,
    DEFAULT_CLAUSE_INDEX,
    DEFAULT_MOVING_INDEX,
    DEFAULT_OBJECT_INDEX,
    MOVING_INDEXES,
    OBJECT_INDEXES,
)
from safe_region.regions.region import RegionMode

_SLACKS = (0.0625, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Slacks in radii."""


class Variant(NamedTuple):
    """A way of keeping devices exact.

    Parameters
    ----------
    slack
        Slack in radii; None for a choice by cost.
    region
        Mode of the safe regions.
    moving_index
        Name of the moving index; that of the server by default.
    costs
        Weights of the choice by cost, and whether anchors lie ahead.
    devices
        Function that creates the devices.
    """

    slack: float | None = None
    region: RegionMode = RegionMode.ANCHORED
    moving_index: str = DEFAULT_MOVING_INDEX
    costs: CostModel = CostModel()
    devices: Callable[[Engine, RangesWorkload], RangeDevices] = AnchoredDevices

    def make(self, data: Dataset) -> TimedEngine:
        """Return an empty engine."""
        square = data.square()
        moving_index = MOVING_INDEXES.get(self.moving_index)
        options = EngineOptions(
            object_index=OBJECT_INDEXES[DEFAULT_OBJECT_INDEX],
            clause_index=lambda: CLAUSE_INDEXES[DEFAULT_CLAUSE_INDEX](square),
            costs=self.costs,
            range_slack=self.slack,
            moving_index=None if moving_index is None else lambda: moving_index(square),
        )
        return TimedEngine(options, {BOOLEAN: BooleanMatcher})


VARIANTS: dict[str, Variant] = {
    "set-constant": Variant(devices=SetDevices),
    **{
        f"periodic-{period_s}": Variant(devices=partial(SetDevices, period_s=period_s))
        for period_s in (5, 30)
    },
    **{f"anchored-{slack:g}": Variant(slack) for slack in _SLACKS},
    "ap-plus-periodic-30": Variant(
        0.0, moving_index="ap-plus-tree", devices=partial(PeriodicDevices, period_s=30)
    ),
    "ap-plus-safe": Variant(region=RegionMode.NEAREST, moving_index="ap-plus-tree"),
    "anchored-cost": Variant(costs=CostModel(ahead=0.0)),
    "anchored-cost-ahead": Variant(),
}
"""Variants by name; the number is the slack in radii, or the seconds between two reports. An omniscient
observer updates `set-constant` and `periodic` devices; an engine updates all others."""
