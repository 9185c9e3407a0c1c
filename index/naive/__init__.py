"""The naive indexes, which scan every row for every query. The reference for all others."""

from index.naive.clauses import NaiveClauseIndex
from index.naive.moving import NaiveMovingIndex
from index.naive.objects import NaiveObjectIndex
from index.naive.subscriptions import NaiveSubscriptionIndex

__all__ = ["NaiveClauseIndex", "NaiveMovingIndex", "NaiveObjectIndex", "NaiveSubscriptionIndex"]
