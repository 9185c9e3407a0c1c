"""Engines of benchmarks: they have top-k subscriptions, and no others."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from bench.datasets import Subscriptions
from engine import Engine, EngineOptions
from engine.contracts import TOP_K
from engine.objects import Objects
from engine.top_k.matcher import TopKMatcher, TopKSpecs
from safe_region.region import RegionMode

MakeMatcher = Callable[[Objects, EngineOptions], TopKMatcher]


def top_k_engine(options: EngineOptions, matcher: MakeMatcher = TopKMatcher) -> Engine:
    """Return an empty engine."""
    return Engine(options, {TOP_K: matcher})


def top_k_of(engine: Engine) -> TopKMatcher:
    """Return an engine's matcher of top-k subscriptions, whose arrays are read."""
    return cast("TopKMatcher", engine.matchers[TOP_K])


def subscribe(engine: Engine, drawn: Subscriptions, region: RegionMode) -> None:
    """Make drawn subscriptions known, all in one mode."""
    modes = np.full(len(drawn.handles), region, dtype=np.int64)
    top_k_of(engine).subscribe(drawn.handles, TopKSpecs(drawn.interests, drawn.k, modes))
