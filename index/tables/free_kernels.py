"""The free list: chains of freed spans of rows for reuse.

Rows lie in an array that grows at its end. A span is the number of rows that one item needs: one, the
four children of a node, a run. Spans of each length have a chain of their own. The link lies in the first
row of a free span, in a column of the caller's. It is NOTHING at the end of a chain, and so is the head
of an empty one.

Operations: allocate and free O(1).
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from index.batches import Ints
from safe_region.jit import leaf

Column = npt.NDArray[Any]
"""Integers: a column of rows, or an array beside them."""

NOTHING = -1


@leaf
def take_rows(links: Column, heads: Column, chain: int, ends: Ints, end: int, count: int) -> int:
    """Allocate a span; return its first row. The caller has verified that one is free or fits at the end.

    Parameters
    ----------
    links
        The column of the links of free spans.
    heads, chain
        `heads[chain]` is the first free span.
    ends, end
        `ends[end]` is the first unused row.
    count
        Rows of a span of this chain.
    """
    first = int(heads[chain])
    if first == NOTHING:
        first = int(ends[end])
        ends[end] += count
    else:
        heads[chain] = links[first]
    return first


@leaf
def give_back_rows(links: Column, heads: Column, chain: int, first: int) -> None:
    """Add a span to its free chain."""
    links[first] = heads[chain]
    heads[chain] = first
