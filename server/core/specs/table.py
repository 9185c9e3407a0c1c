"""The table of the kinds of subscriptions."""

from __future__ import annotations

from typing import Any

from safe_region.regions.region import RegionMode
from server.core.specs.boolean import BooleanKind
from server.core.specs.top_k import StationaryKind, TopKKind
from server.model import Boolean, Spec

KINDS: tuple[type[Any], ...] = (TopKKind, BooleanKind, StationaryKind)


def kind_of_spec(spec: Spec) -> type[Any]:
    """Return the kind of a spec."""
    if isinstance(spec, Boolean):
        return BooleanKind
    return StationaryKind if spec.region is RegionMode.STATIONARY else TopKKind
