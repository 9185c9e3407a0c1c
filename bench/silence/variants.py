"""Variants of the suite silence: another one is a line or two here."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import NamedTuple

from bench.datasets import Dataset
from bench.engines import MakeMatcher, top_k_engine
from bench.local_matcher import LocalMatcher
from bench.silence.devices import Devices, RegionDevices, SetDevices
from bench.silence.fixes import Fixes
from bench.silence.workload import SilenceWorkload
from engine import CostModel, Engine, EngineOptions
from engine.top_k.matcher import TopKMatcher
from index.catalogue import (
    DEFAULT_OBJECT_INDEX,
    DEFAULT_SUBSCRIPTION_INDEX,
    OBJECT_INDEXES,
    SUBSCRIPTION_INDEXES,
)
from safe_region.regions.region import RegionMode

_KNOWN_AROUND = 64
"""b of the engine that finds the true results; with it few evaluations are needed."""


class Window(Enum):
    """The rule that ends objects."""

    LIFETIMES = "lifetimes"
    """Each object has its expiry."""
    SECONDS = "seconds"
    """Objects do not expire, and subscriptions have windows of a number of seconds."""
    COUNT = "count"
    """Objects do not expire, and subscriptions have windows of a number of objects."""


class Variant(NamedTuple):
    """A way of keeping devices exact.

    Parameters
    ----------
    name
        Name in the rows.
    region
        Mode of all subscriptions.
    buffer_extra
        b; None for b by cost.
    costs
        Weights of the choice of b by cost, and whether anchors lie ahead.
    matcher
        Function that creates the matcher from options whose indexes are set.
    devices
        Function that creates the devices, whose subscriptions are anchored at their first positions.
    prunes
        Whether objects are pruned that others dominate everywhere and outlive.
    window
        The rule that ends objects, if each counts for the same time.
    is_slow
        Whether a trial run has to find the possible number of devices.
    """

    name: str
    region: RegionMode = RegionMode.ANCHORED
    buffer_extra: int | None = 0
    matcher: MakeMatcher = TopKMatcher
    devices: Callable[[Engine, SilenceWorkload, Fixes], Devices] = RegionDevices
    is_slow: bool = False
    costs: CostModel = CostModel()
    prunes: bool = True
    window: Window = Window.LIFETIMES

    def make(self, data: Dataset) -> Engine:
        """Return an empty engine."""
        square = data.square()
        return top_k_engine(
            EngineOptions(
                self.buffer_extra,
                OBJECT_INDEXES[DEFAULT_OBJECT_INDEX],
                lambda: SUBSCRIPTION_INDEXES[DEFAULT_SUBSCRIPTION_INDEX](square),
                self.costs,
                prunes=self.prunes,
            ),
            self.matcher,
        )


def _periodic(period_s: int) -> Variant:
    devices = partial(SetDevices, period_s=period_s)
    return Variant(f"periodic-{period_s}", buffer_extra=_KNOWN_AROUND, devices=devices)


VARIANTS: dict[str, Variant] = {
    variant.name: variant
    for variant in (
        Variant("asr", RegionMode.ELLIPSE),
        Variant("lsr", RegionMode.ELLIPSE, matcher=LocalMatcher, is_slow=True),
        Variant("set-constant", buffer_extra=_KNOWN_AROUND, devices=SetDevices),
        *(Variant(f"anchored-{extra}", buffer_extra=extra) for extra in (0, 2, 5, 10, 20)),
        Variant("anchored-cost", buffer_extra=None, costs=CostModel(ahead=0.0)),
        Variant("anchored-cost-ahead", buffer_extra=None),
        Variant("anchored-10-unpruned", buffer_extra=10, prunes=False),
        Variant("anchored-cost-ahead-unpruned", buffer_extra=None, prunes=False),
        Variant("anchored-cost-ahead-seconds", buffer_extra=None, window=Window.SECONDS),
        Variant("anchored-cost-ahead-count", buffer_extra=None, window=Window.COUNT),
        *map(_periodic, (1, 5, 30)),
    )
}
