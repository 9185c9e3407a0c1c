"""Turn restrictions, represented by more nodes: the node at the end of an edge depends on the edge.

If turns after an edge are restricted, the edge leads to a copy of its end node, which has only the edges
that may follow. A path search therefore does not need to know restrictions.
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
        Ends of edges; nodes from the former `node_count` on are copies.
    rows
        The former edge of each edge.
    originals
        The former node of each node.
    is_restricted
        For each node, whether it is a copy or has copies: devices do not stop at such a node.
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
        The number of nodes.
    comes, goes
        Rows of edges: the second must not follow the first.
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
