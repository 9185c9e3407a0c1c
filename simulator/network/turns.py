"""Turns that are not allowed, as more nodes: whoever came by an edge stands on a node of its own.

Where going on is restricted for who comes along an edge, the edge leads to a copy of its end, which has
the edges that may follow. So whatever looks for paths knows nothing of restrictions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


class Split(NamedTuple):
    """A network in which restrictions hold.

    Parameters
    ----------
    sources, targets
        Ends of edges; nodes from `node_count` of before are copies.
    rows
        The edge of before that each of them is.
    originals
        The node of before that each node is.
    is_restricted
        Of each node, whether it is a copy, or there are copies of it: nobody stops there.
    """

    sources: Ints
    targets: Ints
    rows: Longs
    originals: Ints
    is_restricted: npt.NDArray[np.bool_]


def split(sources: Ints, targets: Ints, node_count: int, comes: Longs, goes: Longs) -> Split:
    """Split nodes where turns are not allowed. O(edges + restrictions).

    Parameters
    ----------
    sources, targets
        Ends of edges.
    node_count
        How many nodes there are.
    comes, goes
        Rows of edges: who comes along the first must not go on along the second.
    """
    meets = targets[comes] == sources[goes]
    comes, goes = comes[meets], goes[meets]
    rows = np.arange(len(sources), dtype=np.int64)
    originals = np.arange(node_count, dtype=np.int32)
    is_restricted = np.zeros(node_count, np.bool_)
    restricted = np.unique(comes)
    if not len(restricted):
        return Split(sources, targets, rows, originals, is_restricted)
    order = np.argsort(sources, kind="stable")
    starts = np.searchsorted(sources[order], np.arange(node_count + 1))
    nodes = targets[restricted]
    is_restricted[nodes] = True
    new_targets = targets.copy()
    new_targets[restricted] = node_count + np.arange(len(restricted))
    counts = starts[nodes + 1] - starts[nodes]
    owners = np.repeat(np.arange(len(restricted)), counts)
    firsts = np.repeat(np.cumsum(counts) - counts, counts)
    copied = order[np.repeat(starts[nodes], counts) + np.arange(len(owners)) - firsts]
    banned = np.searchsorted(restricted, comes) * np.int64(len(sources)) + goes
    kept = ~np.isin(owners * np.int64(len(sources)) + copied, banned)
    return Split(
        np.concatenate([sources, (node_count + owners[kept]).astype(np.int32)]),
        np.concatenate([new_targets, new_targets[copied[kept]]]),
        np.concatenate([rows, copied[kept]]),
        np.concatenate([originals, nodes.astype(np.int32)]),
        np.concatenate([is_restricted, np.ones(len(restricted), np.bool_)]),
    )
