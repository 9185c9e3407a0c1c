"""Forbidden turns: converts restrictions on ways and nodes of a file to edges of the roads table.

A restriction at a node forbids one pair of edges, or with `only_` all pairs except one. A restriction
over a way can be expressed by a pair of edges only if the way cannot be entered from elsewhere: then its
last edge must not be followed by the edge that leads away. Other restrictions over ways are left out, and
so are those with ways that do not end at the node that they name, or are not in the network; they are
counted.

Cars, bicycles and pedestrians all observe the restrictions of cars.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from simulator import schemas
from simulator.maps.network import Network
from simulator.maps.relations import Restriction

Longs = npt.NDArray[np.int64]
Step = tuple[int, int]
"""An edge by the ids of its nodes."""


class Turns(NamedTuple):
    """The outcome of the restrictions.

    Parameters
    ----------
    table
        The table of restrictions.
    taken, left_out
        The number of restrictions in it, and the number left out.
    """

    table: pa.Table
    taken: int
    left_out: int


def turns_of(restrictions: list[Restriction], road_refs: Mapping[int, Longs], network: Network) -> Turns:
    """Return the restrictions of a network.

    Parameters
    ----------
    restrictions
        Forbidden turns, by ways and nodes.
    road_refs
        The nodes of each way that is a road, by the way's id.
    network
        The edges, in the order of the roads table.
    """
    streets = _Streets(network, road_refs)
    pairs: set[tuple[int, int]] = set()
    taken = 0
    for restriction in restrictions:
        found = streets.pairs(restriction)
        pairs.update(found)
        taken += bool(found)
    rows = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    table = pa.table(
        {"edge_id_from": rows[:, 0], "edge_id_to": rows[:, 1]},
        schema=schemas.arrow_schema(schemas.RESTRICTIONS),
    )
    return Turns(table, taken, len(restrictions) - taken)


class _Streets:
    """Edges by their ends."""

    def __init__(self, network: Network, road_refs: Mapping[int, Longs]) -> None:
        self._node_ids = network.node_ids
        self._sources, self._targets = network.sources, network.targets
        self._starts = np.searchsorted(network.sources, np.arange(len(network.node_ids) + 1))
        self._by_target = np.argsort(network.targets, kind="stable")
        self._ends = np.searchsorted(
            network.targets[self._by_target], np.arange(len(network.node_ids) + 1)
        )
        self._road_refs = road_refs

    def pairs(self, restriction: Restriction) -> set[tuple[int, int]]:
        """Return the pairs of edges that must not follow one another; empty if there is no such form."""
        found: set[tuple[int, int]] = set()
        for from_way in restriction.from_ways:
            for to_way in restriction.to_ways:
                if restriction.via_node is not None:
                    found |= self._at_node(from_way, restriction.via_node, to_way, restriction.is_only)
                elif len(restriction.via_ways) == 1 and not restriction.is_only:
                    found |= self._over_way(from_way, restriction.via_ways[0], to_way)
        return found

    def _at_node(self, from_way: int, node: int, to_way: int, is_only: bool) -> set[tuple[int, int]]:  # noqa: FBT001
        before, after = self._beside(from_way, node), self._beside(to_way, node)
        if before is None or after is None:
            return set()
        comes, goes = self._edge((before, node)), self._edge((node, after))
        if comes is None or goes is None:
            return set()
        if not is_only:
            return {(comes, goes)}
        return {(comes, other) for other in self._leaving(node) if other != goes}

    def _over_way(self, from_way: int, via_way: int, to_way: int) -> set[tuple[int, int]]:
        """Return the pair at the end of a way that cannot be entered from elsewhere."""
        for nodes in self._both_ways(via_way):
            before, after = self._beside(from_way, nodes[0]), self._beside(to_way, nodes[-1])
            if before is None or after is None:
                continue
            comes, goes = self._edge((before, nodes[0])), self._edge((nodes[-1], after))
            over = self._edge((nodes[-2], nodes[-1]))
            if comes is None or goes is None or over is None:
                continue
            # A device that turns back on the way itself has entered it before.
            own = {(nodes[0], before)} | {(one, two) for one in nodes for two in nodes}
            entries = {(node, other) for node in nodes[:-1] for other in self._coming(node)}
            if all(entry in own for entry in entries):
                return {(over, goes)}
        return set()

    def _both_ways(self, way: int) -> Iterator[list[int]]:
        refs = self._road_refs.get(way)
        if refs is not None and len(refs) > 1 and refs[0] != refs[-1]:
            yield refs.tolist()
            yield refs[::-1].tolist()

    def _beside(self, way: int, node: int) -> int | None:
        """Return the node of a way that is next to its end; None if the way does not end at `node`."""
        refs = self._road_refs.get(way)
        if refs is None or len(refs) < 2 or refs[0] == refs[-1]:  # noqa: PLR2004 two ends
            return None
        if refs[0] == node:
            return int(refs[1])
        return int(refs[-2]) if refs[-1] == node else None

    def _position(self, node: int) -> int | None:
        place = int(np.searchsorted(self._node_ids, node))
        return place if place < len(self._node_ids) and self._node_ids[place] == node else None

    def _edge(self, step: Step) -> int | None:
        source, target = map(self._position, step)
        if source is None or target is None:
            return None
        first, last = self._starts[source], self._starts[source + 1]
        found = int(first + np.searchsorted(self._targets[first:last], target))
        return found if found < last and self._targets[found] == target else None

    def _leaving(self, node: int) -> Iterator[int]:
        place = self._position(node)
        if place is not None:
            yield from range(int(self._starts[place]), int(self._starts[place + 1]))

    def _coming(self, node: int) -> Iterator[int]:
        """Yield the ids of the nodes from which edges lead to a node."""
        place = self._position(node)
        if place is not None:
            edges = self._by_target[self._ends[place] : self._ends[place + 1]]
            yield from self._node_ids[self._sources[edges]].tolist()
