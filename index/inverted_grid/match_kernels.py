"""Matching: from each keyword of an object down the tree, through entries, to clauses for verification.

Most of the time is spent waiting for memory. So objects are matched several at a time, step by step, and
each step prefetches the data of the next: nodes, more nodes, entries, clauses, keywords.

An object with an area visits every cell that it intersects, and may find a clause in many. The match
counts in the cell that contains the lower left corner of the intersection of the two boxes.

Operations: match O(keywords + nodes on the path + entries of leaves) an object.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from index.batches import Floats, Ints, KeywordIds
from index.inverted_grid import layout as L
from index.inverted_grid.cell_kernels import bucket_of, column_of, row_of, side_of
from index.inverted_grid.layout import Numbers, Rows
from index.inverted_grid.step_kernels import (
    GUARDS,
    column_step,
    first_of,
    inner_window,
    row_step,
    window_of,
)
from index.tables.prefetch_kernels import prefetch
from index.tables.signature_kernels import bit_of
from safe_region.jit import kernel, leaf

FOUND_SHORT = -1
WORK_SHORT = -2

_ITEM_BITS = 32
_PLACE_MASK = (1 << 31) - 1
_CERTAIN = 1 << 31
"""In the list of passed entries: the boxes intersect with certainty."""
_LINE = 2
"""Entries of a cache line."""
_AHEAD = 16
"""Entries of a leaf that are prefetched explicitly; the processor prefetches the others itself."""


_LISTS_MAX = 3 << 18
"""The length limit of lists for a block; only for a single object do they get longer."""


class Searched(NamedTuple):
    """The arrays that a match needs."""

    roots: Numbers
    nodes: Rows
    parents: Numbers
    entries: Rows
    clauses: Rows
    pool: KeywordIds
    frame: Floats
    meta: Ints
    items: Rows
    lists: Ints
    """Nodes to visit, leaves to scan, and passed entries, a third of the array for each: the number of an
    item and, in the upper half, that of the object in the block."""


class Batch(NamedTuple):
    """Objects: a row for each."""

    x1_m: Floats
    y1_m: Floats
    x2_m: Floats
    y2_m: Floats
    keyword_offsets: Ints
    keyword_ids: KeywordIds


@leaf
def _short_of(grid: Searched, needed: int) -> int:
    """Store the length that each list needs; return WORK_SHORT."""
    grid.meta[L.NEEDED] = 3 * needed
    return WORK_SHORT


@leaf
def _fill_item(grid: Searched, batch: Batch, i: int, item: Any) -> None:  # noqa: ANN401 - a row
    """Write the fields of an object that matching uses."""
    begin, end = int(batch.keyword_offsets[i]), int(batch.keyword_offsets[i + 1])
    x1, y1 = column_step(grid.frame, batch.x1_m[i]), row_step(grid.frame, batch.y1_m[i])
    x2, y2 = column_step(grid.frame, batch.x2_m[i]), row_step(grid.frame, batch.y2_m[i])
    signature = 0
    for at in range(begin, end):
        signature |= 1 << bit_of(batch.keyword_ids[at])
    item["begin"] = begin
    item["end"] = end
    item["x1"] = x1
    item["y1"] = y1
    item["x2"] = x2
    item["y2"] = y2
    item["x_window"] = window_of(x1, x2)
    item["y_window"] = window_of(y1, y2)
    item["x_inner"] = inner_window(window_of(x1, x2))
    item["y_inner"] = inner_window(window_of(y1, y2))
    item["missing"] = ~signature
    item["found"] = 0
    item["is_area"] = batch.x1_m[i] < batch.x2_m[i] or batch.y1_m[i] < batch.y2_m[i]


@leaf
def _begin(grid: Searched, batch: Batch, row: int, count: int) -> int:
    """List the roots of all keywords of some objects; return the end of the list, or WORK_SHORT."""
    lists = grid.lists
    room = lists.shape[0] // 3
    known = grid.roots.shape[0]
    needed = int(batch.keyword_offsets[row + count] - batch.keyword_offsets[row])
    if needed > room:
        return _short_of(grid, needed)
    end = 0
    for number in range(count):
        item = grid.items[number]
        _fill_item(grid, batch, row + number, item)
        for at in range(item["begin"], item["end"]):
            word = batch.keyword_ids[at]
            if word < known and grid.roots[word] != 0:
                root = int(grid.roots[word]) - 1
                prefetch(grid.nodes, root)
                lists[end] = number << _ITEM_BITS | root
                end += 1
    return end


@leaf
def _list_cells(grid: Searched, number: int, item: Any, upper: int, end: int) -> int:  # noqa: ANN401
    """List the cells of a node that an object intersects; return the new end, or WORK_SHORT."""
    node = grid.nodes[number]
    first = int(node["first"])
    side = side_of(node)
    column_1, row_1 = column_of(node, item["x1"], side), row_of(node, item["y1"], side)
    column_2, row_2 = column_1, row_1
    if item["is_area"]:
        column_2, row_2 = column_of(node, item["x2"], side), row_of(node, item["y2"], side)
    needed = end + (column_2 - column_1 + 1) * (row_2 - row_1 + 1)
    if needed > grid.lists.shape[0] // 3:
        return _short_of(grid, needed)
    for row in range(row_1, row_2 + 1):
        for column in range(column_1, column_2 + 1):
            child = first + row * side + column
            prefetch(grid.nodes, child)
            grid.lists[end] = upper | child
            end += 1
    return end


@leaf
def _list_buckets(
    grid: Searched,
    number: int,
    batch: Batch,
    item: Any,  # noqa: ANN401
    upper: int,
    end: int,
) -> int:
    """List the children for an object's keywords, each once; return the end, or WORK_SHORT."""
    first = int(grid.nodes[number]["first"])
    size_class = int(grid.nodes[number]["size_class"])
    needed = end + int(item["end"]) - int(item["begin"])
    if needed > grid.lists.shape[0] // 3:
        return _short_of(grid, needed)
    begin = end
    for at in range(item["begin"], item["end"]):
        child = first + bucket_of(batch.keyword_ids[at], size_class)
        is_new = True
        for i in range(begin, end):
            is_new &= grid.lists[i] != upper | child
        if is_new:
            prefetch(grid.nodes, child)
            grid.lists[end] = upper | child
            end += 1
    return end


@leaf
def _ask_for_leaf(grid: Searched, start: int, count: int) -> None:
    """Prefetch the entries of a leaf."""
    for place in range(start, start + min(count, _AHEAD), _LINE):
        prefetch(grid.entries, place)


@leaf
def _descend(grid: Searched, batch: Batch, end: int) -> int:
    """List the leaves below all listed nodes; return the end of that list, or WORK_SHORT."""
    nodes, lists = grid.nodes, grid.lists
    room = int(lists.shape[0]) // 3
    leaf_end = room
    head = 0
    while head < end:
        one = lists[head]
        upper = one >> _ITEM_BITS << _ITEM_BITS
        number = int(one - upper)
        node = nodes[number]
        head += 1
        if node["kind"] == L.LEAF:
            count = int(node["count"])
            if count > 0:
                if leaf_end == 2 * room:
                    return _short_of(grid, room + 1)
                _ask_for_leaf(grid, int(node["first"]), count)
                lists[leaf_end] = one
                leaf_end += 1
            continue
        item = grid.items[one >> _ITEM_BITS]
        if node["kind"] == L.PLACE:
            end = _list_cells(grid, number, item, upper, end)
        else:
            end = _list_buckets(grid, number, batch, item, upper, end)
        if end < 0:
            return end
        if node["kept"] != L.NO_NODE:
            if end == room:
                return _short_of(grid, room + 1)
            prefetch(nodes, int(node["kept"]))
            lists[end] = upper | node["kept"]
            end += 1
    return leaf_end


@leaf
def _is_home(grid: Searched, number: int, x: int, y: int) -> bool:
    """Return whether, of all leaves with an entry of a box, this one contains a point of it."""
    child = number
    parent = int(grid.parents[child])
    while parent != L.NO_NODE:
        node = grid.nodes[parent]
        if node["kind"] == L.PLACE and node["kept"] != child:
            side = side_of(node)
            if child != int(node["first"]) + row_of(node, y, side) * side + column_of(node, x, side):
                return False
        child = parent
        parent = int(grid.parents[child])
    return True


@leaf
def _keep_homes(grid: Searched, number: int, item: Any, begin: int, end: int) -> int:  # noqa: ANN401
    """Keep the listed entries that count in this leaf; return the new end."""
    kept = begin
    for i in range(begin, end):
        entry = grid.entries[grid.lists[i] & _PLACE_MASK]
        x, y = max(item["x1"], first_of(entry["x"])), max(item["y1"], first_of(entry["y"]))
        if _is_home(grid, number, x, y):
            grid.lists[kept] = grid.lists[i]
            kept += 1
    return kept


@leaf
def _scan(grid: Searched, leaf_end: int) -> int:
    """List the entries that pass of all listed leaves; return the end of that list, or WORK_SHORT."""
    entries, lists = grid.entries, grid.lists
    room = int(lists.shape[0]) // 3
    end = 2 * room
    scanned = 0
    for at in range(room, leaf_end):
        upper = lists[at] >> _ITEM_BITS << _ITEM_BITS
        number = int(lists[at] - upper)
        item = grid.items[lists[at] >> _ITEM_BITS]
        x_window, y_window, missing = item["x_window"], item["y_window"], item["missing"]
        start, count = int(grid.nodes[number]["first"]), int(grid.nodes[number]["count"])
        if end + count > 3 * room:
            return _short_of(grid, end + count - 2 * room)
        scanned += count
        begin = end
        for place in range(start, start + count):
            entry = entries[place]
            meets = (x_window - entry["x"]) & (y_window - entry["y"]) & GUARDS
            lists[end] = upper | place  # kept only if the entry passes
            end += int((meets ^ GUARDS) | (entry["signature"] & missing) == 0)
        if item["is_area"]:
            end = _keep_homes(grid, number, item, begin, end)
    grid.meta[L.SCANNED] += scanned
    return end


@leaf
def _ask_for_clauses(grid: Searched, begin: int, end: int) -> None:
    """Replace listed entries by their clauses, and prefetch these."""
    lists = grid.lists
    for at in range(begin, end):
        item = grid.items[lists[at] >> _ITEM_BITS]
        entry = grid.entries[lists[at] & _PLACE_MASK]
        meets = (item["x_inner"] - entry["x"]) & (item["y_inner"] - entry["y"]) & GUARDS
        slot = int(entry["slot"])
        prefetch(grid.clauses, slot)
        one = lists[at] >> _ITEM_BITS << _ITEM_BITS | slot
        lists[at] = one | _CERTAIN if meets == GUARDS else one


@leaf
def _has_all(grid: Searched, clause: Any, batch: Batch, item: Any) -> bool:  # noqa: ANN401
    """Return whether an object, which has one keyword of a clause, has all; both lists increase."""
    at = int(item["begin"])
    start, count = int(clause["keyword_start"]), int(clause["keyword_count"])
    for i in range(start, start + count if count > 1 else start):
        keyword = grid.pool[i]
        while at < item["end"] and batch.keyword_ids[at] < keyword:
            at += 1
        if at == item["end"] or batch.keyword_ids[at] != keyword:
            return False
    return True


@leaf
def _meets(clause: Any, batch: Batch, i: int) -> bool:  # noqa: ANN401
    """Return whether the box of a clause intersects an object's."""
    return bool(
        (batch.x1_m[i] <= clause["x2_m"])
        & (batch.x2_m[i] >= clause["x1_m"])
        & (batch.y1_m[i] <= clause["y2_m"])
        & (batch.y2_m[i] >= clause["y1_m"])
    )


@leaf
def _verify(grid: Searched, batch: Batch, row: int, begin: int, end: int) -> int:
    """Keep the listed clauses that match, and count them; return the end of the list."""
    lists = grid.lists
    for at in range(begin, end):
        clause = grid.clauses[lists[at] & _PLACE_MASK]
        if clause["keyword_count"] > 1:
            prefetch(grid.pool, clause["keyword_start"])
    kept = begin
    for at in range(begin, end):
        number = lists[at] >> _ITEM_BITS
        clause = grid.clauses[lists[at] & _PLACE_MASK]
        is_met = lists[at] & _CERTAIN != 0 or _meets(clause, batch, row + number)
        if is_met and _has_all(grid, clause, batch, grid.items[number]):
            lists[kept] = lists[at]
            grid.items[number]["found"] += 1
            kept += 1
    return kept


@leaf
def _list_passed(grid: Searched, batch: Batch, row: int, count: int) -> int:
    """List the clauses to verify for some objects; return the end of the list, or WORK_SHORT."""
    end = _begin(grid, batch, row, count)
    if end >= 0:
        end = _descend(grid, batch, end)
    if end >= 0:
        end = _scan(grid, end)
    return end


@leaf
def _match_block(grid: Searched, batch: Batch, row: int, count: int, offsets: Ints, found: Ints) -> int:
    """Match some objects; return 0, or a negative status."""
    lists = grid.lists
    end = _list_passed(grid, batch, row, count)
    if end < 0:
        return end
    begin = 2 * (lists.shape[0] // 3)
    total = int(offsets[row])
    if total + end - begin > found.shape[0]:
        grid.meta[L.NEEDED] = total + end - begin
        return FOUND_SHORT
    _ask_for_clauses(grid, begin, end)
    grid.meta[L.CANDIDATES] += end - begin
    end = _verify(grid, batch, row, begin, end)
    for number in range(count):
        item = grid.items[number]
        item["at"] = total
        total += int(item["found"])
        offsets[row + number + 1] = total
    for at in range(begin, end):
        item = grid.items[lists[at] >> _ITEM_BITS]
        found[item["at"]] = grid.clauses[lists[at] & _PLACE_MASK]["id"]
        item["at"] += 1
    return 0


@kernel
def match(
    roots: Numbers,
    nodes: Rows,
    parents: Numbers,
    entries: Rows,
    clauses: Rows,
    pool: KeywordIds,
    frame: Floats,
    meta: Ints,
    items: Rows,
    lists: Ints,
    x1_m: Floats,
    y1_m: Floats,
    x2_m: Floats,
    y2_m: Floats,
    keyword_offsets: Ints,
    keyword_ids: KeywordIds,
    row: int,
    offsets: Ints,
    found: Ints,
) -> int:
    """Write the clauses that match each object as CSR, starting from a row.

    The arrays of a `Searched` and a `Batch` are separate arguments: passing arrays in a tuple to a kernel
    takes twice as long, and for one object that is longer than matching it.

    Returns
    -------
    int
        Twice the first row that is not done, plus 1 if `lists`, not `found`, is too short for it: then
        `meta[NEEDED]` is the length that it needs.
    """
    grid = Searched(roots, nodes, parents, entries, clauses, pool, frame, meta, items, lists)
    batch = Batch(x1_m, y1_m, x2_m, y2_m, keyword_offsets, keyword_ids)
    status = 0
    while row < batch.x1_m.shape[0]:
        count = min(L.BLOCK if status == 0 else 1, batch.x1_m.shape[0] - row)
        candidates, scanned = int(meta[L.CANDIDATES]), int(meta[L.SCANNED])
        status = _match_block(grid, batch, row, count, offsets, found)
        if status == 0:
            row += count
            continue
        meta[L.CANDIDATES] = candidates
        meta[L.SCANNED] = scanned
        if status == FOUND_SHORT or count == 1 or meta[L.NEEDED] <= _LISTS_MAX:
            return row * 2 + int(status == WORK_SHORT)
    return int(batch.x1_m.shape[0]) * 2
