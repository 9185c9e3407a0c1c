"""All indexes, by the names that the server, the benchmarks and the tests use.

This is the only way from the product to `index.published`: a module is imported when its index is made.
Installed packages add indexes as entry points (`index.plugins`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from index.entry import NO_INDEX, Entry, Kind, add_plugins

if TYPE_CHECKING:
    from index.contracts import ClauseIndex, MovingIndex, ObjectIndex, PlaceIndex, SubscriptionIndex

OBJECT_INDEXES: dict[str, Entry[ObjectIndex]] = {
    "naive": Entry(
        "index.naive:NaiveObjectIndex", "a table, scanned for each search", takes_square=False
    ),
    "iqf": Entry(
        "index.published.iqf:IqfObjectIndex",
        "an inverted file, and a quadtree for each frequent keyword",
        "Lamps, section 5",
        takes_square=False,
    ),
    "iqf-plus": Entry(
        "index.iqf_plus:IqfPlusObjectIndex",
        "an inverted file that keeps long lists as quadtrees, with lists for pairs of frequent keywords",
        takes_square=False,
    ),
    "iq-tree": Entry(
        "index.published.iq_tree:IqTreeObjectIndex",
        "a quadtree with the set of keywords below each node",
        "Lamps, section 7.1",
        takes_square=False,
    ),
    "ir-tree": Entry(
        "index.published.ir_tree:IrTreeObjectIndex",
        "an R-tree with an inverted file of the objects below each node",
        "Skype, section 8.1.1",
        takes_square=False,
    ),
}

SUBSCRIPTION_INDEXES: dict[str, Entry[SubscriptionIndex]] = {
    "naive": Entry(
        "index.naive:NaiveSubscriptionIndex", "a table, scanned for each object", takes_square=False
    ),
    "sq-tree": Entry(
        "index.published.sq_tree:SqTree",
        "a quadtree with inverted files and thresholds at its nodes; does not support tf-idf",
        "Lamps, section 4",
    ),
    "sq-plus-tree": Entry(
        "index.sq_plus_tree:SqPlusTree",
        "a trie of keyword combinations with exact discs, in a quadtree if there are many of a "
        "combination",
    ),
    "ciq": Entry(
        "index.published.ciq:Ciq",
        "covering cells of a quadtree, with a textual bound in each",
        "Skype, section 2.2",
    ),
    "ipt": Entry(
        "index.published.igpt:Ipt",
        "igpt without groups, cells and early termination: each entry of a list is pruned separately",
        "Skype, section 5",
    ),
    "igpt": Entry(
        "index.published.igpt:Igpt",
        "a quadtree with inverted files; lists are grouped by similar alpha",
        "Skype, section 5",
    ),
}


def _rt_tree(name: str, what: str, source: str) -> Entry[ClauseIndex]:
    return Entry("index.published.rt_tree:RtTree", what, source, options=(("name", name),))


CLAUSE_INDEXES: dict[str, Entry[ClauseIndex]] = {
    "naive": Entry(
        "index.naive:NaiveClauseIndex", "a table, scanned for each object", takes_square=False
    ),
    "ap-tree": Entry(
        "index.published.ap_tree:ApTree",
        "a tree that partitions each node by keywords or by space, whichever costs less",
        "AP-Tree, section 3",
    ),
    "iq-tree-subscriptions": Entry(
        "index.published.quad_inverted:QuadInverted",
        "a quadtree with inverted lists by the rarest keyword in each cell",
        "AP-Tree, section 5.1.1",
    ),
    "rq-tree": Entry(
        "index.published.inverted_quad:InvertedQuad",
        "inverted lists by the rarest keyword, kept as quadtrees",
        "AP-Tree, section 5.1.1",
    ),
    "ss-index": Entry(
        "index.published.grid_files:SsClauses",
        "a grid with inverted lists in each cell",
        "AP-Tree, section 5.2.1",
    ),
    "kk-index": Entry(
        "index.published.grid_files:KkClauses",
        "inverted lists kept as grids",
        "AP-Tree, section 5.2.1",
    ),
    "spatial-first": _rt_tree("spatial-first", "an R-tree without keywords", "R^t-tree, section 2.2"),
    "rt-tree": _rt_tree("rt-tree", "an R-tree with all keywords below each node", "R^t-tree, section 3"),
    "rt-plus-tree": _rt_tree(
        "rt-plus-tree", "an R-tree with one keyword of each clause below each node", "R^t-tree, section 4"
    ),
    "rt-plus-plus-tree": _rt_tree(
        "rt-plus-plus-tree",
        "an R-tree with one keyword of each clause below each node, a different one at each level",
        "R^t-tree, section 5",
    ),
    "ir-tree-subscriptions": _rt_tree(
        "ir-tree-subscriptions",
        "an R-tree with an inverted file of the children of each node",
        "R^t-tree, section 2.2",
    ),
    "keyword-first": _rt_tree(
        "keyword-first", "one inverted file without a spatial index", "R^t-tree, section 2.2"
    ),
    "inverted-grid": Entry(
        "index.inverted_grid:InvertedGrid",
        "lists by the rarest keyword; long lists are partitioned by space or by the next keyword",
    ),
}


def _pair(
    clauses: Entry[ClauseIndex], objects: Entry[PlaceIndex], what: str, source: str = ""
) -> Entry[MovingIndex]:
    return Entry("index.paired:PairedIndex", what, source, takes_square=False, parts=(clauses, objects))


_MOVING_AP_TREE: Entry[ClauseIndex] = Entry(
    "index.published.ap_tree:ApTree", options=(("follows_motion", True),)
)

MOVING_INDEXES: dict[str, Entry[MovingIndex]] = {
    "naive": Entry(
        "index.naive:NaiveMovingIndex", "two tables, scanned for each change", takes_square=False
    ),
    "ap-plus-tree": Entry(
        "index.published.ap_plus_tree:ApPlusTree",
        "an AP-Tree that also holds objects, in the nodes that clauses search",
        "AP-Tree, section 4",
    ),
    "ap-plus-k": _pair(
        _MOVING_AP_TREE, OBJECT_INDEXES["iqf"], "an AP-Tree beside iqf", "AP-Tree, section 5.2"
    ),
    "ap-plus-s": _pair(
        _MOVING_AP_TREE, OBJECT_INDEXES["iq-tree"], "an AP-Tree beside iq-tree", "AP-Tree, section 5.2"
    ),
    "iq-plus-tree": _pair(
        CLAUSE_INDEXES["iq-tree-subscriptions"],
        Entry("index.published.quad_files:IqObjects"),
        "iq-tree-subscriptions beside a quadtree of objects with inverted lists in each cell",
        "AP-Tree, section 5.2.1",
    ),
    "rq-plus-tree": _pair(
        CLAUSE_INDEXES["rq-tree"],
        Entry("index.published.quad_files:RqObjects"),
        "rq-tree beside inverted lists of objects kept as quadtrees",
        "AP-Tree, section 5.2.1",
    ),
    "ss-index": _pair(
        CLAUSE_INDEXES["ss-index"],
        Entry("index.published.grid_files:SsObjects"),
        "ss-index beside a grid of objects with inverted lists in each cell",
        "AP-Tree, section 5.2.1",
    ),
    "kk-index": _pair(
        CLAUSE_INDEXES["kk-index"],
        Entry("index.published.grid_files:KkObjects"),
        "kk-index beside inverted lists of objects kept as grids",
        "AP-Tree, section 5.2.1",
    ),
    "pairs": _pair(
        CLAUSE_INDEXES["inverted-grid"], OBJECT_INDEXES["iqf-plus"], "inverted-grid beside iqf-plus"
    ),
}

add_plugins("object_index", OBJECT_INDEXES)
add_plugins("subscription_index", SUBSCRIPTION_INDEXES)
add_plugins("clause_index", CLAUSE_INDEXES)
add_plugins("moving_index", MOVING_INDEXES)

WEIGHTED_SUBSCRIPTION_INDEXES = frozenset({"naive", "sq-plus-tree", "ciq", "ipt", "igpt"})
"""The indexes that accept interests of `Similarity.TFIDF`."""

DEFAULT_SUBSCRIPTION_INDEX = "sq-plus-tree"
DEFAULT_OBJECT_INDEX = "iqf-plus"
DEFAULT_CLAUSE_INDEX = "inverted-grid"
DEFAULT_MOVING_INDEX = NO_INDEX

KINDS = {
    kind.setting: kind
    for kind in (
        Kind(
            "objects",
            "object_index",
            "finds the best objects at a position, and the objects in boxes",
            DEFAULT_OBJECT_INDEX,
            OBJECT_INDEXES,
        ),
        Kind(
            "top-k subscriptions",
            "subscription_index",
            "finds the subscriptions that a new object affects",
            DEFAULT_SUBSCRIPTION_INDEX,
            SUBSCRIPTION_INDEXES,
        ),
        Kind(
            "boolean subscriptions",
            "clause_index",
            "finds the clauses that a new object matches",
            DEFAULT_CLAUSE_INDEX,
            CLAUSE_INDEXES,
        ),
        Kind(
            "moving boolean subscriptions",
            "moving_index",
            "finds objects that start or cease to match when ranges move",
            DEFAULT_MOVING_INDEX,
            MOVING_INDEXES,
            without="the indexes of objects and of boolean subscriptions are combined",
        ),
    )
}
"""The kinds by the names of their settings."""


def weighted_name(name: str) -> str:
    """Return the name of the index for interests of TFIDF: the given one, or the default."""
    return name if name in WEIGHTED_SUBSCRIPTION_INDEXES else DEFAULT_SUBSCRIPTION_INDEX


def weighted_index(name: str) -> Entry[SubscriptionIndex]:
    """Return the entry of the index that `weighted_name` names."""
    return SUBSCRIPTION_INDEXES[weighted_name(name)]
