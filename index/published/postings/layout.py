"""Row layouts of posting lists by keyword and by place, and their shapes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from index.batches import Floats, Ints, KeywordIds
from index.tables.clauses import CLAUSE_FIELDS
from index.tables.id_map_kernels import Values
from index.tables.run_kernels import Runs

Rows = npt.NDArray[Any]

GRID_OF_LISTS = 0
"""A grid; a cell has a list of each keyword there: SS."""
LISTS_OF_GRIDS = 1
"""A list of each keyword; a long one is a grid of lists: KK."""
TREE_OF_LISTS = 2
"""A quadtree; a cell has a list of each keyword there: IQ+."""
LISTS_OF_TREES = 3
"""A list of each keyword; a long one is the root of a quadtree of lists: RQ+."""

NO_LIST = -1
NO_WORD = -1
NO_CELL = -1
NO_DIRECTORY = -1
NO_KEYWORD = -1

ALL_WORDS = -1
"""Instead of a word: the list has all objects of a cell."""

SHAPE = 0
"""In meta: one of the above."""
SIDE = 1
"""In meta: cells of a row of the grid; of a row of the smallest cells in a quadtree."""
LONG = 2
"""In meta: entries from which a list is divided, or objects from which a cell is."""
LIST_END = 3
"""In meta: every row of lists from here on is unused."""
LIST_FREE = 4
"""In meta: the first free row of lists, NO_LIST if there is none."""
GROUP_FREE = 5
"""In meta: the first of four free rows of lists that were the children of one."""
LIST_COUNT = 6
"""In meta: rows of lists in use, except children in quadtrees."""
WORD_END = 7
WORD_FREE = 8
WORD_COUNT = 9
DIRECTORY_END = 10
"""In meta: directories from here on are unused."""
DIRECTORY_FREE = 11
CELL_END = 12
"""In meta: cells from here on are unused."""
ENTRY_COUNT = 13
"""In meta: entries of all lists."""
SWEPT = 14
"""In meta: the list before which all have been swept."""
CANDIDATES = 15
"""In meta: clauses verified one by one that the caller has not counted yet."""
LISTS_WANTED = 16
"""In meta: the number of rows of lists that a kernel lacks; the others likewise."""
KEYS_WANTED = 17
RECORDS_WANTED = 18
WORDS_WANTED = 19
WORD_KEYS_WANTED = 20
DIRECTORIES_WANTED = 21
CELLS_WANTED = 22
META_SIZE = 23

ROW = 0
"""In a cursor: rows of the batch that are done."""
STEP = 1
"""In a cursor: steps of the next row that are done, here keywords or cells."""
LEVEL = 2
"""In a cursor: levels of the next step that are done."""
CURSOR_SIZE = 3

OBJECT_DTYPE = np.dtype(
    [
        ("id", np.int64),
        ("x_m", np.float64),
        ("y_m", np.float64),
        ("keyword_start", np.int64),  # first keyword id in the pool
        ("keyword_count", np.int32),
    ],
    align=True,
)

CLAUSE_DTYPE = np.dtype(
    [
        *CLAUSE_FIELDS,
        ("word", np.int32),  # its key: the row of the required keyword under which it is inserted
    ],
    align=True,
)

OBJECT_ENTRY_DTYPE = np.dtype(
    [
        ("x_m", np.float32),  # rounded down
        ("y_m", np.float32),
        ("signature", np.int32),  # of the object's keywords
        ("slot", np.int32),  # of the object
    ],
)

CLAUSE_ENTRY_DTYPE = np.dtype(
    [
        ("x1_m", np.float32),  # the clause's box, rounded outwards
        ("y1_m", np.float32),
        ("x2_m", np.float32),
        ("y2_m", np.float32),
        ("slot", np.int32),  # of the clause
    ],
)

LIST_DTYPE = np.dtype(
    [
        ("key", np.int64),  # the key of its look-up: see `list_kernels`
        ("start", np.int32),  # of its run; in a free row, or the first of a free group: the next free one
        ("count", np.int32),  # entries
        ("first_child", np.int32),  # of four in a quadtree of lists; NO_LIST if there are none
        ("size_class", np.int8),  # of the run; NO_RUN if there is none
    ],
    align=True,
)

WORD_DTYPE = np.dtype(
    [
        ("keyword", np.int32),  # NO_KEYWORD in a free row
        ("count", np.int32),  # rows of the table that have it, including removed ones
        ("key_count", np.int32),  # clauses whose key it is
        ("list", np.int32),  # its list, or the root of its tree; NO_LIST; in a free row: the next one
        ("directory", np.int32),  # the start of its grid in `directories`, or NO_DIRECTORY
    ],
    align=True,
)


class Files(NamedTuple):
    """A table of objects or of clauses, and the posting lists that contain them."""

    rows: Rows
    pool: KeywordIds
    lists: Rows
    list_keys: Ints  # (cell, keyword) to row of `lists`: an id map; for shapes that have cells first
    list_values: Values
    directories: Values  # grids: a list, or NO_LIST, for each cell
    cells: Values  # of the quadtree of TREE_OF_LISTS: the first child, or NO_CELL
    entries: Runs
    words: Rows
    word_keys: Ints  # keyword to row of `words`: an id map
    word_values: Values
    is_gone: npt.NDArray[np.int8]  # of a row: has entries, but is removed
    square: Floats  # of the grid or the roots: west, south, length of a side
    meta: Ints
