"""Define the options of the engine: indexes, buffers and their costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from index.contracts import ClauseIndex, MovingIndex, ObjectIndex, SubscriptionIndex
from index.naive import NaiveClauseIndex, NaiveObjectIndex, NaiveSubscriptionIndex


class StationaryPolicy(Enum):
    """The buffer beyond the k best of stationary subscriptions (`engine.stationary.policies`)."""

    COST = "cost"
    CSKYBAND = "cskyband"
    SKYBAND = "skyband"
    KMAX = "kmax"


@dataclass(frozen=True, slots=True)
class CostModel:
    """The costs for the choice of buffers and anchors; see `engine.top_k.choice_kernels`.

    Parameters
    ----------
    report
        Price of a report and its response.
    object
        Price of an object sent.
    held
        Price of a second of holding an object: memory on both sides, longer snapshots.
    extra_max
        The largest b.
    ahead
        The fraction used of the distance by which an anchor may lie ahead of the device; 0 for none.
    speed_mps
        Assumed speed of devices of which nothing is known yet.
    """

    report: float = 2.0
    object: float = 1.0
    held: float = 0.0002
    extra_max: int = 32
    ahead: float = 0.9
    speed_mps: float = 10.0


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """The options of the engine.

    Parameters
    ----------
    buffer_extra
        b: the number of objects beyond k that a device gets. A larger b means fewer reports and more
        objects sent. None to choose it by cost, for each subscription, at each anchor.
    object_index, subscription_index, clause_index, weighted_index
        The factories of the indexes; the last is for subscriptions whose text similarity is TFIDF.
    costs
        The costs by which buffers and anchors are chosen.
    margin_extra_max
        The most objects beyond k that a device may get to cover the margin of its position.
    matches_max
        The most objects that a device may get for a boolean subscription.
    range_slack
        The distance beyond a moving range within which its device holds matches, in radii of the range. A
        larger slack means fewer reports and more objects sent. None to choose it by cost, at each anchor.
    prunes
        Whether objects that k longer-lived others dominate everywhere are neither held nor sent.
    stationary
        The policy for the buffers of stationary subscriptions, beyond their results.
    stationary_share
        The policy skyband holds objects by this fraction of the k-th best score.
    stationary_factor
        The policy kmax holds this many times k objects.
    maxdist_m
        The diagonal of the area, by which scores measure distance if a subscription has no scale of its
        own: for the policy skyband.
    moving_index
        The factory of an index that keeps clauses and objects together, to find the objects that start
        and cease to match moving ranges. None to find them with the clause index and the object index.
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
