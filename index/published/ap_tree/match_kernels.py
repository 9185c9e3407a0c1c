"""Finding the clauses that an object matches: Algorithm 1.

An object with an area visits every cell that it intersects. A match counts in the cell that contains the
lower left corner of the intersection of both.
"""

from __future__ import annotations

from index.batches import Floats, Ints, KeywordIds
from index.published.ap_tree import layout as L
from index.published.ap_tree.layout import Numbers, Row, Tree
from index.published.ap_tree.node_kernels import column_at, find_cut, is_in_region, line_at
from index.published.ap_tree.order_kernels import write_codes
from index.tables.signature_kernels import signature_of
from safe_region.jit import kernel, leaf
from safe_region.scoring.kernels import common_count

LACKS_STACK = -1


@leaf
def sample_object(tree: Tree, x_m: float, y_m: float, words: KeywordIds) -> None:
    """Record the position and the keywords of an object."""
    place = 2 * (tree.meta[L.POSITION_COUNT] % L.POSITIONS_MAX)
    tree.meta[L.POSITION_COUNT] += 1
    tree.positions[place] = x_m
    tree.positions[place + 1] = y_m
    tree.seen[0] += 1
    for i in range(words.shape[0]):
        if words[i] + 1 < tree.seen.shape[0]:
            tree.seen[words[i] + 1] += 1


@leaf
def scan_leaf(
    tree: Tree,
    row: Row,
    signature: int,
    words: KeywordIds,
    box: tuple[float, float, float, float],
    found: Ints,
    total: int,
) -> int:
    """Verify the clauses of a leaf."""
    x1_m, y1_m, x2_m, y2_m = box
    is_area = x1_m < x2_m or y1_m < y2_m
    start, count = int(row["start"]), int(row["count"])
    root = tree.nodes[tree.meta[L.ROOT]]
    tree.meta[L.CANDIDATES] += count
    for place in range(start, start + count):
        entry = tree.runs.records[place]
        if (
            entry["signature"] & ~signature != 0
            or entry["x1_m"] > x2_m
            or entry["x2_m"] < x1_m
            or entry["y1_m"] > y2_m
            or entry["y2_m"] < y1_m
        ):
            continue
        clause = tree.clauses[entry["slot"]]
        first = int(clause["keyword_start"])
        required = int(clause["keyword_count"])
        if (
            clause["x1_m"] > x2_m
            or clause["x2_m"] < x1_m
            or clause["y1_m"] > y2_m
            or clause["y2_m"] < y1_m
            or common_count(tree.pool[first : first + required], words) < required
        ):
            continue
        if is_area and not is_in_region(root, row, max(clause["x1_m"], x1_m), max(clause["y1_m"], y1_m)):
            continue
        if total < found.shape[0]:
            found[total] = clause["id"]
        total += 1
    return total


@leaf
def _push(stack: Numbers, used: int, node: int, begin: int) -> int:
    if node == L.NOTHING:
        return used
    stack[2 * used] = node
    stack[2 * used + 1] = begin
    return used + 1


@leaf
def push_cuts(
    tree: Tree, row: Row, begin: int, codes: Numbers, code_count: int, stack: Numbers, used: int
) -> int:
    """Push the dummy cut and the cuts that keywords hit, each with the keywords after its first."""
    start, last = int(row["start"]), L.DUMMY
    used = _push(stack, used, int(tree.parts[start + L.DUMMY]["child"]), begin)
    for i in range(begin, code_count):
        number = find_cut(tree, row, int(codes[i]), max(last, 1))
        if number not in (L.DUMMY, last):
            used = _push(stack, used, int(tree.parts[start + number]["child"]), i + 1)
            last = number
    return used


@leaf
def push_cells(
    tree: Tree,
    row: Row,
    begin: int,
    box: tuple[float, float, float, float],
    stack: Numbers,
    used: int,
) -> int:
    """Push the dummy cell and the cells that a box intersects; return NOTHING if space is lacking."""
    x1_m, y1_m, x2_m, y2_m = box
    start = int(row["start"])
    first, low = column_at(tree, row, x1_m), line_at(tree, row, y1_m)
    last = first if x1_m == x2_m else column_at(tree, row, x2_m)
    high = low if y1_m == y2_m else line_at(tree, row, y2_m)
    if 2 * (used + 1 + (last - first + 1) * (high - low + 1)) > stack.shape[0]:
        return L.NOTHING
    used = _push(stack, used, int(tree.parts[start + L.DUMMY]["child"]), begin)
    for line in range(low, high + 1):
        for column in range(first, last + 1):
            part = start + 1 + line * int(row["x_count"]) + column
            used = _push(stack, used, int(tree.parts[part]["child"]), begin)
    return used


@leaf
def _match_one(
    tree: Tree,
    words: KeywordIds,
    codes: Numbers,
    box: tuple[float, float, float, float],
    stack: Numbers,
    found: Ints,
    total: int,
) -> int:
    """Write the matches of an object from `found[total]` on; return the new total, or LACKS_STACK."""
    code_count = write_codes(tree.order, words, codes)
    signature = signature_of(words)
    used = _push(stack, 0, int(tree.meta[L.ROOT]), 0)
    while used > 0:
        used -= 1
        row = tree.nodes[stack[2 * used]]
        begin = int(stack[2 * used + 1])
        if row["kind"] == L.LEAF:
            total = scan_leaf(tree, row, signature, words, box, found, total)
            continue
        if 2 * (used + 1 + code_count) > stack.shape[0]:
            return LACKS_STACK
        if row["kind"] == L.KEYWORDS:
            used = push_cuts(tree, row, begin, codes, code_count, stack, used)
        else:
            used = push_cells(tree, row, begin, box, stack, used)
            if used == L.NOTHING:
                return LACKS_STACK
    return total


@kernel
def match(
    tree: Tree,
    x_m: Floats,
    y_m: Floats,
    boxes: Floats,
    keyword_offsets: Ints,
    keyword_ids: KeywordIds,
    codes: Numbers,
    stack: Numbers,
    offsets: Ints,
    found: Ints,
) -> int:
    """Write the clauses that match each object as CSR; return their number.

    Fills `offsets` (objects + 1) always and `found` up to its length; the caller retries with a larger
    `found` when the return value exceeds its length, and with a longer stack when it is LACKS_STACK.
    `boxes` has the rows x1, y1, x2, y2, or no column if all objects are points.
    """
    total = 0
    for i in range(x_m.shape[0]):
        offsets[i] = total
        words = keyword_ids[keyword_offsets[i] : keyword_offsets[i + 1]]
        box = (x_m[i], y_m[i], x_m[i], y_m[i])
        if boxes.shape[1] > 0:
            box = (boxes[0, i], boxes[1, i], boxes[2, i], boxes[3, i])
        total = _match_one(tree, words, codes, box, stack, found, total)
        if total == LACKS_STACK:
            return LACKS_STACK
    offsets[x_m.shape[0]] = total
    return total


@kernel
def sample_all(
    tree: Tree,
    x_m: Floats,
    y_m: Floats,
    keyword_offsets: Ints,
    keyword_ids: KeywordIds,
    stride: int,
) -> None:
    """Sample every `stride`-th object."""
    for i in range(x_m.shape[0]):
        if tree.meta[L.SEEN_NUMBER] % stride == 0:
            words = keyword_ids[keyword_offsets[i] : keyword_offsets[i + 1]]
            sample_object(tree, x_m[i], y_m[i], words)
        tree.meta[L.SEEN_NUMBER] += 1
