"""Which indexes there are, by the names that the server, the benchmarks and the tests know them by."""

from __future__ import annotations

from collections.abc import Callable

from index.ap_tree import ApTree
from index.baselines.inverted_quad import InvertedQuad
from index.baselines.iq_tree import IqTreeObjectIndex
from index.baselines.iqf import IqfObjectIndex
from index.baselines.quad_inverted import QuadInverted
from index.baselines.sq_tree import SqTree
from index.contracts import ClauseIndex, ObjectIndex, SubscriptionIndex
from index.inverted_grid import InvertedGrid
from index.iqf_plus import IqfPlusObjectIndex
from index.naive import NaiveClauseIndex, NaiveObjectIndex, NaiveSubscriptionIndex
from index.sq_plus_tree import SqPlusTree
from index.square import Square

SUBSCRIPTION_INDEXES: dict[str, Callable[[Square | None], SubscriptionIndex]] = {
    "naive": lambda _square: NaiveSubscriptionIndex(),
    "sq-tree": SqTree,
    "sq-plus-tree": SqPlusTree,
}

OBJECT_INDEXES: dict[str, Callable[[], ObjectIndex]] = {
    "naive": NaiveObjectIndex,
    "iqf": IqfObjectIndex,
    "iqf-plus": IqfPlusObjectIndex,
    "iq-tree": IqTreeObjectIndex,
}

CLAUSE_INDEXES: dict[str, Callable[[Square | None], ClauseIndex]] = {
    "naive": lambda _square: NaiveClauseIndex(),
    "ap-tree": ApTree,
    "iq-tree-subscriptions": QuadInverted,
    "rq-tree": InvertedQuad,
    "inverted-grid": InvertedGrid,
}

DEFAULT_SUBSCRIPTION_INDEX = "sq-plus-tree"
DEFAULT_OBJECT_INDEX = "iqf-plus"
DEFAULT_CLAUSE_INDEX = "inverted-grid"
