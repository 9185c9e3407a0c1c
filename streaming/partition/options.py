"""The options of a partition's engine, in a form that processes can send to each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engine import EngineOptions
from engine.options import StationaryPolicy
from index.catalogue import (
    DEFAULT_CLAUSE_INDEX,
    DEFAULT_OBJECT_INDEX,
    DEFAULT_SUBSCRIPTION_INDEX,
    KINDS,
    weighted_name,
)
from index.square import Square


@dataclass(frozen=True, slots=True)
class MakeIndex:
    """Makes an index of the catalogue. A serialised partition contains it, so it holds only a name.

    Parameters
    ----------
    setting
        The kind of index, see `index.catalogue.KINDS`.
    name
        The index of that kind.
    square
        The square in which most objects and subscriptions are.
    """

    setting: str
    name: str
    square: Square

    def __call__(self) -> Any:  # noqa: ANN401 - as the setting says
        """Make an index."""
        return KINDS[self.setting].indexes[self.name](self.square)


_EVERYTHING = 1 << 30
"""Results of boolean subscriptions are complete, however large."""


def engine_options(
    square: Square,
    maxdist_m: float,
    subscription_index: str = DEFAULT_SUBSCRIPTION_INDEX,
    clause_index: str = DEFAULT_CLAUSE_INDEX,
    object_index: str = DEFAULT_OBJECT_INDEX,
    policy: StationaryPolicy = StationaryPolicy.COST,
) -> EngineOptions:
    """Return options for a partition."""
    return EngineOptions(
        object_index=MakeIndex("object_index", object_index, square),
        subscription_index=MakeIndex("subscription_index", subscription_index, square),
        weighted_index=MakeIndex("subscription_index", weighted_name(subscription_index), square),
        clause_index=MakeIndex("clause_index", clause_index, square),
        moving_index=None,
        matches_max=_EVERYTHING,
        stationary=policy,
        maxdist_m=maxdist_m,
    )
