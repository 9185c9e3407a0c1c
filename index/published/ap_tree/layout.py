"""Row layouts and sentinels of the AP-Tree."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from index.batches import Floats, Ints, KeywordIds
from index.tables.clauses import CLAUSE_FIELDS
from index.tables.run_kernels import Runs

Rows = npt.NDArray[Any]
Row = Any
"""One row of a table, by reference."""
Numbers = npt.NDArray[np.int32]

NOTHING = -1
"""The end of a chain; no node, no code."""

LEAF = 0
KEYWORDS = 1
"""A k-node: its parts are cuts, intervals of keyword codes."""
SPACE = 2
"""An s-node: its parts are cells, `x_count` columns of them."""
PENDING = 3
"""A node to be built: its clauses are a chain of chunks."""
FREE = 4

DUMMY = 0
"""The part of a node that is its dummy cut or cell."""

DEPTH_MAX = 24
"""Levels of s-nodes: after this many divisions of a region there is no further gain."""

SPREAD_MAX = 6.0
"""Space is not divided if a clause would lie in more leaves than this on average."""

CLAUSE_DTYPE = np.dtype(
    [
        *CLAUSE_FIELDS,
        ("generation", np.int32),  # incremented when the clause, or the slot's next one, leaves its place
        ("mark", np.int32),  # number of the last rebuild that includes it
    ],
    align=True,
)

ENTRY_DTYPE = np.dtype(
    [
        ("signature", np.int64),  # of the required keywords
        ("x1_m", np.float32),  # the box, rounded outwards
        ("y1_m", np.float32),
        ("x2_m", np.float32),
        ("y2_m", np.float32),
        ("slot", np.int32),  # of the clause; in the first entry of a free run: the next free run
        ("generation", np.int32),
    ],
    align=True,
)
"""A clause in a leaf: the data that excludes most clauses without access to them."""

NODE_DTYPE = np.dtype(
    [
        ("x1_m", np.float64),  # its region, half-open; that of the root represents the whole plane
        ("y1_m", np.float64),
        ("x2_m", np.float64),
        ("y2_m", np.float64),
        ("parent", np.int32),  # the next free node in the free chain
        ("start", np.int32),  # first entry, first part, or first chunk
        ("count", np.int32),  # entries of a leaf, parts of a node, clauses in chunks
        ("weight", np.int32),  # entries in it and below
        ("updates", np.int32),  # entries inserted and removed since the last test for drift
        ("changes", np.int32),  # the same since it was built
        ("patience", np.int32),  # a leaf is not split before it has more entries
        ("x_count", np.int16),
        ("offset", np.int16),  # index of the keyword that divides clauses here (N_l), or may do so next
        ("spread", np.float32),  # mean number of leaves of a clause, by all divisions of space above
        ("kind", np.int8),
        ("room", np.int8),  # size class of the span at `start`
        ("has_keywords", np.int8),  # may be divided by keywords
        ("has_space", np.int8),  # and by place
        ("depth", np.int8),  # s-nodes above
        ("is_based", np.int8),  # whether parts have the weights of its construction
    ],
    align=True,
)

PART_DTYPE = np.dtype(
    [
        ("low", np.float64),  # first code of a cut; part 1 + i of an s-node: left edge of column i
        ("high", np.float64),  # last code of a cut; part 1 + i of an s-node: lower edge of row i
        ("child", np.int32),  # the next free span in a free chain
        ("built", np.int32),  # its weight when the node was built
    ],
    align=True,
)
"""A cut or a cell. Part 0 is the dummy; cells follow row by row."""

# Named positions of `meta`.
ROOT = 0
NODE_END = 1  # every row from here on is unused
FREE_NODE = 2
FREE_COUNT = 3
PART_END = 4
DONE = 5  # rows of a batch
STAGE = 6
STACK_COUNT = 7
DUE_COUNT = 8
JOB_OLD = 9  # root of the subtree to be replaced
JOB_NEW = 10  # root of the new subtree
JOB_NUMBER = 11
MEETS_JOB = 12  # whether the current clause belongs to the subtree to be replaced
SEEN_NUMBER = 13  # objects matched
POSITION_COUNT = 14  # objects sampled
CANDIDATES = 15
# The additional capacity that a kernel needs after it stopped for lack of space.
NODES_NEEDED = 17
PARTS_NEEDED = 18
ENTRIES_NEEDED = 19
CHUNKS_NEEDED = 20
STACK_NEEDED = 21
META_SIZE = 22

PART_CLASSES = 31
DUE_MAX = 64

# Named positions of `limits`.
FANOUT = 0
LEAF_MAX = 1
PER_PART = 2  # a node has a part for each so many clauses, and not more than FANOUT
VARIANT = 3
POPULATION = 4  # clauses in the tree
LIMITS_SIZE = 5

# Variants.
HEURISTIC = 0
OPTIMAL = 1
KEYWORDS_FIRST = 2
SPACE_FIRST = 3
TRIE_QUADTREE = 4

POSITIONS_MAX = 2048
"""Sampled objects whose positions are kept."""
SEEN_STRIDE = 16
"""One in this many matched objects is sampled."""


class Tree(NamedTuple):
    """All arrays of an AP-Tree except those of a build in progress."""

    clauses: Rows
    pool: KeywordIds
    nodes: Rows
    parts: Rows
    part_heads: Ints
    """First free span of parts, by size class."""
    runs: Runs
    order: Numbers
    """The frozen order: `order[1 + keyword]` is its code plus one, 0 for none; [0] is the number of
    codes."""
    job_order: Numbers
    """The order in the new subtree: another one if that is the whole tree."""
    codes: Numbers
    """Codes of the current clause, increasing."""
    stack: Numbers
    due: Numbers
    """Nodes to be rebuilt after the current clause."""
    seen: Ints
    """Sampled objects with each keyword, at 1 + keyword; [0] is the number of objects."""
    positions: Floats
    """x and y of sampled objects, alternating."""
    meta: Ints
    limits: Ints
    shares: Floats


class Chunks(NamedTuple):
    """Spans of clauses, chained."""

    slots: Numbers
    generations: Numbers
    links: Numbers
    sizes: Numbers
    ends: Ints


# Named positions of `Chunks.ends`.
CHUNK_END = 0
FREE_CHUNK = 1
FREE_CHUNK_COUNT = 2
CHUNK_LENGTH = 64


class Units(NamedTuple):
    """The input of a partition: keywords in order, or places between edges, as prefix sums.

    A part from boundary j to boundary k has the weight `low[k] - high[j]`, and is hit with the
    probability `hit[k] - hit[j]`.
    """

    low: Floats
    high: Floats
    hit: Floats


class Build(NamedTuple):
    """A build in progress: its tasks, and scratch."""

    state: Ints
    order: Numbers
    """The order of keywords in the build."""
    chunks: Chunks
    tasks: Numbers
    """Pending nodes."""
    walk_nodes: Numbers
    walk_places: Numbers
    tally: Numbers
    """Clauses by the code of the keyword at the offset."""
    words: KeywordIds
    """Keyword of each tallied code."""
    touched: Numbers
    """The tallied codes."""
    units: Units
    unit_ends: Numbers
    """The ends of the keywords of each unit, in `touched`."""
    bounds: Numbers
    """The starts of parts, in units, and the end of the last."""
    cut_ends: Numbers
    """The ends of the keywords of each chosen cut, in `touched`."""
    edges: Floats
    """Candidate edges of one axis."""
    columns: Floats
    """Left edges of the chosen columns."""
    lines: Floats
    """Lower edges of the chosen rows."""
    boxes: Floats
    """x1, y1, x2, y2 of sampled clauses, a row each; two more rows are scratch for sorting."""
    positions: Floats
    """x and y of objects in the region, a row each; one more row is scratch for sorting."""
    cells: Floats
    costs: Floats
    """Least cost of the first units by cuts; two rows."""
    choices: Numbers
    """The start of the last cut, by cuts and units."""
    displacements: Floats
    """The displacement of each clause in its last move, by slot: x and y."""
    pace: Floats
    """The number of moves of a clause per arriving object."""


# Named positions of `shares`.
DRIFT_MAX = 0  # theta_KL
CHANGE_SHARE = 1  # of a node that must have changed before it is rebuilt

# Named positions of `Build.state`.
PHASE = 0
NODE = 1
CHUNK = 2
PLACE = 3
TASK_COUNT = 4
WALK_COUNT = 5
ALIVE = 6
BARE = 7  # clauses without a keyword at the offset
TOUCHED_COUNT = 8
UNIT_COUNT = 9
CUT_COUNT = 10
LAYER = 11
OFFSET = 12
FILLED = 13
STATE_SIZE = 14

# Phases.
IDLE = 0
TALLY = 1
LAYERS = 2
DECIDE = 3
DISTRIBUTE = 4
FILL = 5
COLLECT = 6
RELEASE = 7

# Return values of kernels.
FINISHED = 0
MORE = 1
OUT_OF_ROOM = 2
HAS_DUE = 3

SAMPLE_MAX = 1024
"""Clauses that represent all when space is divided."""
OPTIMAL_UNITS_MAX = 1000
"""The maximum number of units of the dynamic program: adjacent rarer keywords are one unit."""
