"""How the engine works: indexes, buffers, what they cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from index.contracts import ClauseIndex, MovingIndex, ObjectIndex, SubscriptionIndex
from index.naive import NaiveClauseIndex, NaiveObjectIndex, NaiveSubscriptionIndex


class StationaryPolicy(Enum):
    """How much is held beyond the k best of stationary subscriptions (`engine.stationary.policies`)."""

    COST = "cost"
    CSKYBAND = "cskyband"
    SKYBAND = "skyband"
    KMAX = "kmax"


@dataclass(frozen=True, slots=True)
class CostModel:
    """What the choice of buffers and anchors weighs; see `engine.top_k.choice_kernels`.

    Parameters
    ----------
    report
        Price of a report and its answer.
    object
        Price of an object sent.
    held
        Price of a second of holding an object: memory on both sides, longer snapshots.
    extra_max
        The largest b.
    ahead
        How much of the way that an anchor may lie ahead of the device is made use of; 0 for none.
    speed_mps
        Assumed of devices of which nothing is known yet.
    """

    report: float = 2.0
    object: float = 1.0
    held: float = 0.0002
    extra_max: int = 32
    ahead: float = 0.9
    speed_mps: float = 10.0


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """How the engine works.

    Parameters
    ----------
    buffer_extra
        b: how many objects beyond k a device is given. More of them, fewer reports and more objects
        sent. None to choose it by cost, for each subscription, at each anchor.
    object_index, subscription_index, clause_index, weighted_index
        What makes the indexes; the last is of subscriptions whose text similarity is TFIDF.
    costs
        What the choice weighs.
    margin_extra_max
        How many objects beyond k a device may be given so that the margin of its position is covered.
    matches_max
        How many objects a device may be given of a boolean subscription.
    range_slack
        How far beyond a range that moves its device holds what matches, in radii of the range. More of
        it, fewer reports and more objects sent. None to choose it by cost, at each anchor.
    prunes
        Whether what k others beat everywhere and outlive is neither held nor sent.
    stationary
        How much is held of stationary subscriptions, beyond their results.
    stationary_share
        The policy skyband holds what has such a share of the k-th best score.
    stationary_factor
        The policy kmax holds so many times k objects.
    maxdist_m
        The diagonal of the area, by which scores measure distance if a subscription has no scale of its
        own: for the policy skyband.
    moving_index
        What makes an index that keeps clauses and objects together, to find what begins and ceases to
        match ranges that move. None to find it with the clause index and the object index.
    """

    buffer_extra: int | None = 8
    object_index: Callable[[], ObjectIndex] = NaiveObjectIndex
    subscription_index: Callable[[], SubscriptionIndex] = NaiveSubscriptionIndex
    costs: CostModel = CostModel()
    margin_extra_max: int = 200
    matches_max: int = 1000
    range_slack: float | None = None
    clause_index: Callable[[], ClauseIndex] = NaiveClauseIndex
    weighted_index: Callable[[], SubscriptionIndex] = NaiveSubscriptionIndex
    moving_index: Callable[[], MovingIndex] | None = None
    prunes: bool = True
    stationary: StationaryPolicy = StationaryPolicy.COST
    stationary_share: float = 0.95
    stationary_factor: int = 3
    maxdist_m: float = 1.0
