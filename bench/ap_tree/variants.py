"""Variants of the suites ap-tree and rt-tree."""

from __future__ import annotations

from collections.abc import Callable

from bench.ap_tree.experiments import ApTreeParameters
from bench.peers.clauses import PEERS
from bench.peers.postgres import PostgresIndex, missing
from index.batches import Boxes, Ints, ObjectBatch
from index.catalogue import CLAUSE_INDEXES
from index.contracts import ClauseIndex
from index.published.ap_tree import ApTree
from index.published.clause_cells import CellTrees
from index.published.rt_tree import RtTree
from index.published.rt_tree.orders import ORDERS
from index.square import Square

_POSTGRES = "postgresql"

Make = Callable[[Square, ObjectBatch, ApTreeParameters], ClauseIndex]
"""Function that creates an index for a space, with earlier objects."""


def _ap_tree(variant: str = "HR", *, is_rarest_first: bool = False) -> Make:
    def make(square: Square, history: ObjectBatch, parameters: ApTreeParameters) -> ClauseIndex:
        return ApTree(
            square,
            variant=variant,
            fanout=parameters.fanout,
            leaf_max=parameters.leaf_max,
            drift_max=parameters.theta_kl,
            is_rarest_first=is_rarest_first,
            workload=history,
        )

    return make


def _known(name: str) -> Make:
    return lambda square, _history, _parameters: CLAUSE_INDEXES[name](square)


def _peer(name: str) -> Make:
    return lambda _square, _history, _parameters: PEERS[name]()


def _ordered(name: str, order: str) -> Make:
    return lambda square, _history, _parameters: RtTree(name, square, order)


VARIANTS: dict[str, Make] = {
    "ap-tree": _ap_tree(),
    "ap-tree-dp": _ap_tree("DP"),
    "ap-tree-kpriority": _ap_tree("KPriority"),
    "ap-tree-spriority": _ap_tree("SPriority"),
    "ap-tree-trie-qd": _ap_tree("Trie-Qd"),
    "ap-tree-nr": _ap_tree("NR"),
    "ap-tree-rarest-first": _ap_tree(is_rarest_first=True),
    **{name: _known(name) for name in CLAUSE_INDEXES if name != "ap-tree"},
    **{name: _peer(name) for name in PEERS},
    _POSTGRES: lambda _square, _history, _parameters: PostgresIndex(),
    **{
        f"{name}-{order}": _ordered(name, order)
        for name in ("rt-plus-tree", "rt-plus-plus-tree")
        for order in ORDERS
    },
}
"""Variants by name. `ap-tree` is HR; R^t+- and R^t++-trees exist with each order of tokens, too."""


def learn(index: ClauseIndex, history: ObjectBatch, ids: Ints, boxes: Boxes) -> None:
    """Match earlier objects in an index that learns the distribution of objects from matching.

    The index counts only keywords that clauses require. So it receives the objects when it has the
    clauses; then the clauses are placed again, by the distribution that it knows.
    """
    if isinstance(index, CellTrees):
        index.match(history)
        index.move(ids, boxes)


def why_not(name: str) -> str | None:
    """Return the reason that a variant cannot be measured here; None if it can."""
    return missing() if name == _POSTGRES else None
