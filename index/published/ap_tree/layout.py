"""Rows of the AP-Tree, and the numbers that stand for nothing."""

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
"""Ends chains; no node, no code."""

LEAF = 0
KEYWORDS = 1
"""A k-node: its parts are cuts, intervals of keyword codes."""
SPACE = 2
"""An s-node: its parts are cells, `x_count` columns of them."""
PENDING = 3
"""What is to be built: its clauses are a chain of chunks."""
FREE = 4

DUMMY = 0
"""The part of a node that is its dummy cut or cell."""

DEPTH_MAX = 24
"""Levels of s-nodes: where a region was divided so often, nothing is gained any more."""

SPREAD_MAX = 6.0
"""Space is not divided where a clause would come to lie in more leaves than that, on the average."""

CLAUSE_DTYPE = np.dtype(
    [
        *CLAUSE_FIELDS,
        ("generation", np.int32),  # goes up when the clause, or the slot's next one, leaves its place
        ("mark", np.int32),  # number of the rebuild that has it already
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
        ("slot", np.int32),  # of the clause; the next free run, in the first entry of one
        ("generation", np.int32),
    ],
    align=True,
)
"""A clause in a leaf: what rules most clauses out without a look at them."""

NODE_DTYPE = np.dtype(
    [
        ("x1_m", np.float64),  # its region, half-open; that of the root stands for the whole plane
        ("y1_m", np.float64),
        ("x2_m", np.float64),
        ("y2_m", np.float64),
        ("parent", np.int32),  # the next free node in the free chain
        ("start", np.int32),  # first entry, first part, or first chunk
        ("count", np.int32),  # entries of a leaf, parts of a node, clauses in chunks
        ("weight", np.int32),  # entries in it and below
        ("updates", np.int32),  # entries that came and went since drift was looked at
        ("changes", np.int32),  # and since it was built
        ("patience", np.int32),  # a leaf is not split before it has more entries than that
        ("x_count", np.int16),
        ("offset", np.int16),  # place of the keyword that parts clauses here (N_l), or may do so next
        ("spread", np.float32),  # how often clauses lie here and beside, by all divisions of space above
        ("kind", np.int8),
        ("room", np.int8),  # size class of the stretch at `start`
        ("has_keywords", np.int8),  # may be parted by keywords
        ("has_space", np.int8),  # and by place
        ("depth", np.int8),  # s-nodes above
        ("is_based", np.int8),  # whether parts say what they weighed when it was built
    ],
    align=True,
)

PART_DTYPE = np.dtype(
    [
        ("low", np.float64),  # first code of a cut; part 1 + i of an s-node: left edge of column i
        ("high", np.float64),  # last code of a cut; part 1 + i of an s-node: lower edge of row i
        ("child", np.int32),  # the next free stretch in a free chain
        ("built", np.int32),  # what it weighed when the node was built
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
JOB_OLD = 9  # root of what is being rebuilt beside
JOB_NEW = 10  # root of what it is rebuilt into
JOB_NUMBER = 11
MEETS_JOB = 12  # whether the clause at hand belongs to what is being rebuilt
SEEN_NUMBER = 13  # objects that were matched
POSITION_COUNT = 14  # objects that were sampled
CANDIDATES = 15
# What a kernel that stopped for want of room needs at the end of arrays.
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
"""Each so many-th object that is matched is sampled."""


class Tree(NamedTuple):
    """All arrays of an AP-Tree but those of what is being built."""

    clauses: Rows
    pool: KeywordIds
    nodes: Rows
    parts: Rows
    part_heads: Ints
    """First free stretch of parts, by size class."""
    runs: Runs
    order: Numbers
    """The frozen order: `order[1 + keyword]` is its code plus one, 0 for none; [0] how many there are."""
    job_order: Numbers
    """The order of what is being rebuilt: another if that is the whole tree."""
    codes: Numbers
    """Codes of the clause at hand, increasing."""
    stack: Numbers
    due: Numbers
    """Nodes to be built anew when the clause at hand is done."""
    seen: Ints
    """Sampled objects with each keyword, at 1 + keyword; [0] how many objects."""
    positions: Floats
    """x and y of sampled objects, by turns."""
    meta: Ints
    limits: Ints
    shares: Floats


class Chunks(NamedTuple):
    """Stretches of clauses, chained."""

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
    """What a partition divides: keywords in their order, or places between edges, as prefix sums.

    A part from boundary j to boundary k has the weight `low[k] - high[j]`, and is hit with the
    probability `hit[k] - hit[j]`.
    """

    low: Floats
    high: Floats
    hit: Floats


class Build(NamedTuple):
    """What is being built: its tasks, and room to work."""

    state: Ints
    order: Numbers
    """The order of keywords in what is being built."""
    chunks: Chunks
    tasks: Numbers
    """Pending nodes."""
    walk_nodes: Numbers
    walk_places: Numbers
    tally: Numbers
    """Clauses by the code of the keyword at the offset."""
    words: KeywordIds
    """Keyword of each code that was tallied."""
    touched: Numbers
    """Codes that were tallied."""
    units: Units
    unit_ends: Numbers
    """Where the keywords of each unit end, in `touched`."""
    bounds: Numbers
    """Where parts begin, in units, and where the last ends."""
    cut_ends: Numbers
    """Where the keywords of each cut that was chosen end, in `touched`."""
    edges: Floats
    """Candidate edges of one axis."""
    columns: Floats
    """Left edges of the columns chosen."""
    lines: Floats
    """Lower edges of the rows chosen."""
    boxes: Floats
    """x1, y1, x2, y2 of sampled clauses, a row each; two rows more are room to sort."""
    positions: Floats
    """x and y of objects in the region, a row each; a row more is room to sort."""
    cells: Floats
    costs: Floats
    """Least cost of the first units by cuts; two rows."""
    choices: Numbers
    """Where the last cut begins, by cuts and units."""
    displacements: Floats
    """How far each clause went when it moved last, by slot: x and y."""
    pace: Floats
    """How often a clause is moved for each object that comes."""


# Named positions of `shares`.
DRIFT_MAX = 0  # theta_KL
CHANGE_SHARE = 1  # of a node that must have changed before it is built anew

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

# What kernels return.
FINISHED = 0
MORE = 1
OUT_OF_ROOM = 2
HAS_DUE = 3

SAMPLE_MAX = 1024
"""Clauses that stand for all when space is divided."""
OPTIMAL_UNITS_MAX = 1000
"""Keywords that the dynamic program tells apart: rarer ones beside each other are one unit."""
