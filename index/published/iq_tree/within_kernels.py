"""Objects in boxes: the IQ-tree visits cells that intersect the box and have all required keywords."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from index.batches import Ints
from index.published.iq_tree.kernels import key_of
from index.published.iq_tree.layout import Occurrences
from index.tables.buckets.kernels import DEPTH_MAX
from index.tables.buckets.layout import Objects, Trees
from index.tables.buckets.within_kernels import meets, scan_leaf
from index.tables.id_map_kernels import NO_VALUE, find
from index.tables.quad_kernels import NO_NODE
from index.tables.signature_kernels import signature_of
from index.tables.within_kernels import BoxQueries, Wanted, wanted_of
from safe_region.jit import kernel, leaf


@leaf
def _occur_below(occurrences: Occurrences, node: int, wanted: Wanted) -> bool:
    """Return whether each required keyword occurs below a node."""
    for word in wanted.words:
        if find(occurrences.keys, occurrences.values, key_of(node, word)) == NO_VALUE:
            return False
    return True


@leaf
def _walk(
    trees: Trees,
    occurrences: Occurrences,
    objects: Objects,
    root: int,
    wanted: Wanted,
    stack: npt.NDArray[np.int32],
    found: Ints,
    total: int,
) -> int:
    """Keep the matching objects; return their new number."""
    signature = signature_of(wanted.words)
    stack[0] = root
    depth = 1
    while depth > 0:
        depth -= 1
        node = int(stack[depth])
        first = int(trees.nodes[node]["first_child"])
        if first == NO_NODE:
            total = scan_leaf(trees, node, objects, wanted, signature, found, total)
            continue
        for child in range(first, first + 4):
            if meets(trees, child, wanted) and _occur_below(occurrences, child, wanted):
                stack[depth] = child
                depth += 1
    return total


@kernel
def within(
    trees: Trees,
    occurrences: Occurrences,
    objects: Objects,
    root: int,
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
        if wanted.words.shape[0] > 0:
            total = _walk(trees, occurrences, objects, root, wanted, stack, found, total)
        offsets[i + 1] = total
        if total > found.shape[0]:
            return i
    return int(queries.x1_m.shape[0])
