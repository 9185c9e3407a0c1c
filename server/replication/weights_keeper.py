"""Lets the next table of weights come, when all nodes are done with the last one.

A table comes into force at each node in its own time. The next one is refused until the leases of all
nodes show that they are done, and the first node by address has said so by an entry.

Cost: one comparison every half second.
"""

from __future__ import annotations

import asyncio
import logging

from cluster.entries import WEIGHTS_RULES, Entry, WeightsDone
from cluster.log import Log, LogError
from server.replication.applier import Applier
from server.replication.coordinator import ReplicatedCoordinator
from server.replication.slot_keeper import SlotKeeper

_log = logging.getLogger(__name__)

_LOOK_S = 0.5


class WeightsKeeper:
    """Compares the weights that nodes have in force with the last table.

    Parameters
    ----------
    log
        The log.
    applier
        Knows the time and the rules in force.
    coordinator
        Knows the last table.
    slots
        Knows the nodes.
    """

    def __init__(
        self, log: Log, applier: Applier, coordinator: ReplicatedCoordinator, slots: SlotKeeper
    ) -> None:
        self._log = log
        self._applier = applier
        self._coordinator = coordinator
        self._slots = slots

    async def run(self) -> None:
        """Append an entry when all nodes are done with a table, until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_S)
            generation = self._coordinator.matching.generation
            is_known = self._applier.rules >= WEIGHTS_RULES
            if (
                is_known
                and self._coordinator.weights_pending
                and self._slots.known_weights() >= generation
            ):
                await self._append(generation)

    async def _append(self, generation: int) -> None:
        try:
            await self._log.append([Entry(self._applier.time_ms, WeightsDone(generation))])
        except LogError as error:
            _log.warning("%s", error)
