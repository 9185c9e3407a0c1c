"""Objects in boxes: IQF scans the shortest list of the required keywords, or walks its tree."""

from __future__ import annotations

import numpy as np

from index.batches import Ints
from index.published.iqf.layout import Files
from index.published.iqf.list_kernels import NO_LIST, list_count
from index.tables.buckets.kernels import DEPTH_MAX
from index.tables.buckets.layout import Objects, Trees
from index.tables.buckets.within_kernels import scan_box, walk_box
from index.tables.id_map_kernels import NO_VALUE, find
from index.tables.quad_kernels import NO_NODE
from index.tables.signature_kernels import signature_of
from index.tables.within_kernels import BoxQueries, Wanted, wanted_of
from safe_region.jit import kernel, leaf


@leaf
def _shortest(files: Files, trees: Trees, wanted: Wanted) -> int:
    """Return the shortest list of the required keywords; NO_LIST if one has none."""
    best = NO_LIST
    least = 0
    for word in wanted.words:
        number = find(files.keys, files.values, int(word))
        if number == NO_VALUE:
            return NO_LIST
        count = list_count(files, trees, number)
        if best == NO_LIST or count < least:
            best = number
            least = count
    return best


@kernel
def within(
    files: Files,
    trees: Trees,
    objects: Objects,
    queries: BoxQueries,
    first_row: int,
    offsets: Ints,
    found: Ints,
) -> int:
    """Process rows, starting from one; return the first without space (see `index.tables.matches`)."""
    stack = np.empty(3 * DEPTH_MAX + 4, dtype=np.int32)
    for i in range(first_row, queries.x1_m.shape[0]):
        total = int(offsets[i])
        wanted = wanted_of(queries, i)
        number = _shortest(files, trees, wanted)
        if number != NO_LIST:
            signature = signature_of(wanted.words)
            row = files.lists[number]
            root = int(row["root"])
            if root == NO_NODE:
                start, count = int(row["start"]), int(row["count"])
                records = files.runs.records
                total = scan_box(records, start, count, objects, wanted, signature, found, total)
            else:
                total = walk_box(trees, root, objects, wanted, signature, stack, found, total)
        offsets[i + 1] = total
        if total > found.shape[0]:
            return i
    return int(queries.x1_m.shape[0])
