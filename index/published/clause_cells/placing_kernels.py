"""The cost model: choosing the cells of its tree in which a clause is inserted.

A clause in a cell is verified for every object there that has its key. So a cell costs

    lifetime * frequency(key) * share(cell) * VERIFY + ENTER,

where `lifetime` is the number of objects between two updates of a clause, and `frequency` and `share` are
observed in the workload (`workload_kernels`). Each cell on the path down costs PASS: updates and objects
alike visit it. The clause is inserted in the cells that cover its box for the least sum. A cell is
compared with its children, from the smallest up. Cells are drafted, and created only if an entry is made
there or below. No cell is drafted below one whose cost the children cannot undercut: each child that the
box intersects costs ENTER + PASS, and a cell within the box is as good as its parts.

Operations: O(cells drafted), at most DRAFTS_MAX.
"""

from __future__ import annotations

from index.published.clause_cells.cell_kernels import DEPTH_MAX
from index.published.clause_cells.layout import Cells
from index.published.clause_cells.workload_kernels import frequency_of, share_at
from index.tables.quad_kernels import NO_NODE, set_children, set_root
from safe_region.jit import leaf

LIFETIME = 0
"""In prices: objects between two updates of a clause."""
VERIFY = 1
"""In prices: testing one clause."""
ENTER = 2
"""In prices: inserting a clause in one cell, and removing it again."""
PASS = 3
"""In prices: one more cell on the path."""
PRICES = 4

DRAFTS_MAX = 1 + 4 * 512
"""Cells evaluated for one clause: beyond that, larger ones are used."""

UPPER_LEFT = 2
"""Of four children: the first in the upper half."""


@leaf
def _weigh(cells: Cells, slot: int, draft: int, rate: float) -> None:
    """Compute the cost of a clause in a cell, and whether its box intersects the cell at all."""
    row = cells.drafts[draft]
    clause = cells.clauses[slot]
    row["is_met"] = (
        clause["x1_m"] < row["x_max"]
        and clause["x2_m"] >= row["x_min"]
        and clause["y1_m"] < row["y_max"]
        and clause["y2_m"] >= row["y_min"]
    )
    share = share_at(cells, int(row["depth"]), int(row["column"]), int(row["row"]))
    row["here"] = rate * share + cells.prices[ENTER]
    row["below"] = 0.0


@leaf
def _is_worth(cells: Cells, slot: int, draft: int) -> bool:
    """Return whether the children of a cell might cost less."""
    row = cells.drafts[draft]
    clause = cells.clauses[slot]
    if row["depth"] >= DEPTH_MAX:
        return False
    half_m = row["half_m"]
    if (
        clause["x1_m"] <= row["split_x"] - half_m
        and clause["x2_m"] >= row["split_x"] + half_m
        and clause["y1_m"] <= row["split_y"] - half_m
        and clause["y2_m"] >= row["split_y"] + half_m
    ):
        return False
    across = int(clause["x1_m"] < row["split_x"]) + int(clause["x2_m"] >= row["split_x"])
    along = int(clause["y1_m"] < row["split_y"]) + int(clause["y2_m"] >= row["split_y"])
    return bool(row["here"] > across * along * (cells.prices[ENTER] + cells.prices[PASS]))


@leaf
def _set_places(cells: Cells, draft: int) -> None:
    """Set the positions of the children of a drafted cell."""
    row = cells.drafts[draft]
    for i in range(4):
        child = cells.drafts[row["first_child"] + i]
        child["column"] = 2 * row["column"] + i % 2
        child["row"] = 2 * row["row"] + (i >= UPPER_LEFT)


@leaf
def _draft(cells: Cells, slot: int, rate: float) -> int:
    """Draft all cells that may pay, parents before children; return their number."""
    drafts = cells.drafts
    set_root(drafts, 0, cells.square[0], cells.square[1], cells.square[2])
    drafts[0]["column"] = 0
    drafts[0]["row"] = 0
    _weigh(cells, slot, 0, rate)
    end = 1
    draft = 0
    while draft < end:
        if drafts[draft]["is_met"] and end + 4 <= drafts.shape[0] and _is_worth(cells, slot, draft):
            set_children(drafts, draft, end)
            _set_places(cells, draft)
            for child in range(end, end + 4):
                _weigh(cells, slot, child, rate)
            end += 4
        draft += 1
    return end


@leaf
def _use(cells: Cells, end: int) -> int:
    """Keep `is_met` only for drafts in use; return the number of cells with an entry."""
    drafts = cells.drafts
    count = 0
    for draft in range(end):
        row = drafts[draft]
        if row["parent"] != NO_NODE:
            above = drafts[row["parent"]]
            row["is_met"] = row["is_met"] and above["is_met"] and above["first_child"] != NO_NODE
        count += int(row["is_met"] and row["first_child"] == NO_NODE)
    return count


@leaf
def choose(cells: Cells, slot: int, keyword: int) -> tuple[int, int]:
    """Draft the cells of a clause; return the number of drafts, and of cells with an entry.

    The clause is inserted in the intersecting cells that have no children.
    """
    rate = cells.prices[LIFETIME] * cells.prices[VERIFY] * frequency_of(cells, keyword)
    drafts = cells.drafts
    end = _draft(cells, slot, rate)
    for draft in range(end - 1, -1, -1):
        row = drafts[draft]
        if row["first_child"] != NO_NODE and row["below"] >= row["here"]:
            row["first_child"] = NO_NODE
        if row["is_met"] and row["parent"] != NO_NODE:
            least = row["here"] if row["first_child"] == NO_NODE else row["below"]
            drafts[row["parent"]]["below"] += least + cells.prices[PASS]
    return end, _use(cells, end)
