"""How the engine of a partition works, in a form that processes can send each other."""

from __future__ import annotations

from dataclasses import dataclass

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
from index.contracts import ClauseIndex, ObjectIndex, SubscriptionIndex
from index.square import Square


@dataclass(frozen=True, slots=True)
class MakeSubscriptionIndex:
    """Makes a subscription index, by name."""

    name: str
    square: Square
    is_weighted: bool

    def __call__(self) -> SubscriptionIndex:
        """Make one."""
        make = weighted_index(self.name) if self.is_weighted else SUBSCRIPTION_INDEXES[self.name]
        return make(self.square)


@dataclass(frozen=True, slots=True)
class MakeObjectIndex:
    """Makes an object index, by name."""

    name: str

    def __call__(self) -> ObjectIndex:
        """Make one."""
        return OBJECT_INDEXES[self.name]()


@dataclass(frozen=True, slots=True)
class MakeClauseIndex:
    """Makes a clause index, by name."""

    name: str
    square: Square

    def __call__(self) -> ClauseIndex:
        """Make one."""
        return CLAUSE_INDEXES[self.name](self.square)


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
        object_index=MakeObjectIndex(object_index),
        subscription_index=MakeSubscriptionIndex(subscription_index, square, is_weighted=False),
        weighted_index=MakeSubscriptionIndex(subscription_index, square, is_weighted=True),
        clause_index=MakeClauseIndex(clause_index, square),
        moving_index=None,
        matches_max=_EVERYTHING,
        standing=policy,
        maxdist_m=maxdist_m,
    )
