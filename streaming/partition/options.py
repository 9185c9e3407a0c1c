"""How the engine of a partition works, in a form that processes can send each other."""

from __future__ import annotations

from functools import partial

from engine import EngineOptions
from engine.options import StandingPolicy
from index.catalogue import (
    CLAUSE_INDEXES,
    DEFAULT_CLAUSE_INDEX,
    DEFAULT_OBJECT_INDEX,
    DEFAULT_SUBSCRIPTION_INDEX,
    OBJECT_INDEXES,
    SUBSCRIPTION_INDEXES,
    weighted_index,
)
from index.square import Square

_EVERYTHING = 1 << 30
"""Results of boolean subscriptions are whole, however large."""


def engine_options(
    square: Square,
    maxdist_m: float,
    subscription_index: str = DEFAULT_SUBSCRIPTION_INDEX,
    clause_index: str = DEFAULT_CLAUSE_INDEX,
    object_index: str = DEFAULT_OBJECT_INDEX,
    policy: StandingPolicy = StandingPolicy.COST,
) -> EngineOptions:
    """Return options for a partition."""
    return EngineOptions(
        object_index=OBJECT_INDEXES[object_index],
        subscription_index=partial(SUBSCRIPTION_INDEXES[subscription_index], square),
        weighted_index=partial(weighted_index(subscription_index), square),
        clause_index=partial(CLAUSE_INDEXES[clause_index], square),
        moving_index=None,
        matches_max=_EVERYTHING,
        standing=policy,
        maxdist_m=maxdist_m,
    )
