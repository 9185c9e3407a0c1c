"""The free list: stretches of rows that were given back, chained, to be taken again.

Rows lie in an array that grows at its end. A stretch is as many of them as one thing needs: one, the
four children of a node, a run. Stretches of different lengths have a chain each. The link lies in the
first row of a free stretch, in a column of the caller's. It is NOTHING at the end of a chain, and so is
the head of an empty one.

Operations: take and give back O(1).
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
    """Return the first row of a stretch. The caller has made sure that there is one, or room for one.

    Parameters
    ----------
    links
        Where links of free stretches are.
    heads, chain
        `heads[chain]` is the first free stretch.
    ends, end
        `ends[end]` is where unused rows begin.
    count
        Rows of a stretch of this chain.
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
    """Chain a stretch as free."""
    links[first] = heads[chain]
    heads[chain] = first
