"""How the engine of a partition works, in a form that processes can send each other."""

from __future__ import annotations

from dataclasses import dataclass

from engine import EngineOptions
from engine.options import StandingPolicy
from index.catalogue import (
    DEFAULT_OBJECT_INDEX,
    DEFAULT_SUBSCRIPTION_INDEX,
    OBJECT_INDEXES,
    SUBSCRIPTION_INDEXES,
    weighted_index,
)
from index.contracts import ObjectIndex, SubscriptionIndex
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


def engine_options(
    square: Square,
    maxdist_m: float,
    subscription_index: str = DEFAULT_SUBSCRIPTION_INDEX,
    object_index: str = DEFAULT_OBJECT_INDEX,
    policy: StandingPolicy = StandingPolicy.COST,
) -> EngineOptions:
    """Return options for a partition."""
    return EngineOptions(
        object_index=MakeObjectIndex(object_index),
        subscription_index=MakeSubscriptionIndex(subscription_index, square, is_weighted=False),
        weighted_index=MakeSubscriptionIndex(subscription_index, square, is_weighted=True),
        standing=policy,
        maxdist_m=maxdist_m,
    )
