"""The naive indexes: every row is looked at, every time. The measure of all others."""

from index.naive.clauses import NaiveClauseIndex
from index.naive.moving import NaiveMovingIndex
from index.naive.objects import NaiveObjectIndex
from index.naive.subscriptions import NaiveSubscriptionIndex

__all__ = ["NaiveClauseIndex", "NaiveMovingIndex", "NaiveObjectIndex", "NaiveSubscriptionIndex"]
