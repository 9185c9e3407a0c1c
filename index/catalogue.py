"""Which indexes there are, by the names that the server, the benchmarks and the tests know them by."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from index.baselines.ap_plus_tree import ApPlusTree
from index.baselines.ap_tree import ApTree
from index.baselines.ciq import Ciq
from index.baselines.grid_files import KkClauses, KkObjects, SsClauses, SsObjects
from index.baselines.igpt import Igpt, Ipt
from index.baselines.inverted_quad import InvertedQuad
from index.baselines.iq_tree import IqTreeObjectIndex
from index.baselines.iqf import IqfObjectIndex
from index.baselines.ir_tree import IrTreeObjectIndex
from index.baselines.quad_files import IqObjects, RqObjects
from index.baselines.quad_inverted import QuadInverted
from index.baselines.rt_tree import KINDS as RT_TREES
from index.baselines.rt_tree import RtTree
from index.baselines.sq_tree import SqTree
from index.contracts import ClauseIndex, MovingIndex, ObjectIndex, SubscriptionIndex
from index.inverted_grid import InvertedGrid
from index.iqf_plus import IqfPlusObjectIndex
from index.naive import NaiveClauseIndex, NaiveMovingIndex, NaiveObjectIndex, NaiveSubscriptionIndex
from index.paired import PairedIndex
from index.sq_plus_tree import SqPlusTree
from index.square import Square

SUBSCRIPTION_INDEXES: dict[str, Callable[[Square | None], SubscriptionIndex]] = {
    "naive": lambda _square: NaiveSubscriptionIndex(),
    "sq-tree": SqTree,
    "sq-plus-tree": SqPlusTree,
    "ciq": Ciq,
    "ipt": Ipt,
    "igpt": Igpt,
}

OBJECT_INDEXES: dict[str, Callable[[], ObjectIndex]] = {
    "naive": NaiveObjectIndex,
    "iqf": IqfObjectIndex,
    "iqf-plus": IqfPlusObjectIndex,
    "iq-tree": IqTreeObjectIndex,
    "ir-tree": IrTreeObjectIndex,
}

CLAUSE_INDEXES: dict[str, Callable[[Square | None], ClauseIndex]] = {
    "naive": lambda _square: NaiveClauseIndex(),
    "ap-tree": ApTree,
    "iq-tree-subscriptions": QuadInverted,
    "rq-tree": InvertedQuad,
    "ss-index": SsClauses,
    "kk-index": KkClauses,
    **{name: partial(RtTree, name) for name in RT_TREES},
    "inverted-grid": InvertedGrid,
}

MOVING_INDEXES: dict[str, Callable[[Square | None], MovingIndex]] = {
    "naive": lambda _square: NaiveMovingIndex(),
    "ap-plus-tree": ApPlusTree,
    "ap-plus-k": lambda square: PairedIndex(ApTree(square, follows_motion=True), IqfObjectIndex()),
    "ap-plus-s": lambda square: PairedIndex(ApTree(square, follows_motion=True), IqTreeObjectIndex()),
    "iq-plus-tree": lambda square: PairedIndex(QuadInverted(square), IqObjects(square)),
    "rq-plus-tree": lambda square: PairedIndex(InvertedQuad(square), RqObjects(square)),
    "ss-index": lambda square: PairedIndex(SsClauses(square), SsObjects(square)),
    "kk-index": lambda square: PairedIndex(KkClauses(square), KkObjects(square)),
    "pairs": lambda square: PairedIndex(InvertedGrid(square), IqfPlusObjectIndex()),
}

NO_INDEX = "none"
"""In place of a moving index: a clause index and an object index are made use of together."""

WEIGHTED_SUBSCRIPTION_INDEXES = frozenset({"naive", "sq-plus-tree", "ciq", "ipt", "igpt"})
"""Those that take interests of `Similarity.TFIDF`."""

DEFAULT_SUBSCRIPTION_INDEX = "sq-plus-tree"
DEFAULT_OBJECT_INDEX = "iqf-plus"
DEFAULT_CLAUSE_INDEX = "inverted-grid"
DEFAULT_MOVING_INDEX = NO_INDEX


def weighted_index(name: str) -> Callable[[Square | None], SubscriptionIndex]:
    """Return what makes an index for interests of TFIDF: that of the name, or the default."""
    taken = name if name in WEIGHTED_SUBSCRIPTION_INDEXES else DEFAULT_SUBSCRIPTION_INDEX
    return SUBSCRIPTION_INDEXES[taken]
