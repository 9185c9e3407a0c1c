"""Subscription indexes and single objects: what all of their tests do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from index.contracts import SubscriptionIndex
from tests.index.brute import Anchored, Object, interest_batch, object_batch, reach_batch


def insert(index: SubscriptionIndex, subscriptions: Sequence[Anchored]) -> None:
    index.insert(reach_batch(subscriptions), interest_batch([one.interest for one in subscriptions]))


def matched(index: SubscriptionIndex, item: Object) -> list[int]:
    """What an index says of an object, duplicates included."""
    return sorted(index.match(object_batch([item])).row(0).tolist())


def expected(subscriptions: Iterable[Anchored], item: Object) -> list[int]:
    return sorted(one.subscription_id for one in subscriptions if one.is_matched_by(item))
