"""Appends what all nodes agree on, as their leases show. The first node by address does it.

* During an upgrade, nodes of two versions run side by side by the rules of applying of the older one.
  When its last node has had no lease for `SETTLE_S`, an entry brings the later rules into force. A node
  of the older version that reads this entry ends.
* A table of keyword weights comes into force at each node in its own time. The next table is refused
  until an entry says that all nodes are done with the last one.

Cost: two comparisons every half second.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator

from cluster.entries import SECOND_RULES, Change, Entry, SetRules, WeightsDone
from cluster.log import Log, LogError
from server.replication.applier import Applier
from server.replication.cluster_placement import ClusterPlacement
from server.replication.coordinator import ReplicatedCoordinator
from server.replication.slot_keeper import GIVE_UP_S

_log = logging.getLogger(__name__)

_LOOK_S = 0.5
SETTLE_S = GIVE_UP_S
"""How long all leases must show later rules: a node that has lost its lease keeps its devices so long."""


class Agreement:
    """Compares what the leases of all nodes show with what is in force.

    Parameters
    ----------
    log
        The log.
    applier
        Knows the time and the rules in force.
    coordinator
        Knows the last table of weights.
    placement
        Knows the leases.
    """

    def __init__(
        self, log: Log, applier: Applier, coordinator: ReplicatedCoordinator, placement: ClusterPlacement
    ) -> None:
        self._log = log
        self._applier = applier
        self._coordinator = coordinator
        self._placement = placement
        self._shown_rules, self._shown_since_s = 0, 0.0
        """The rules that all leases show, and since when, by the monotonic clock."""

    async def run(self) -> None:
        """Append an entry when all nodes know later rules, or are done with a table, until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_S)
            for change in self._due():
                await self._append(change)

    def _due(self) -> Iterator[Change]:
        """Yield what all nodes agree on and no entry has said."""
        rules, rules_now = self._placement.known_rules(), self._applier.rules
        if self._is_shown_long(rules) and rules > rules_now:
            yield SetRules(rules)
        generation = self._coordinator.matching.generation
        is_pending = rules_now >= SECOND_RULES and self._coordinator.weights_pending
        if is_pending and self._placement.known_weights() >= generation:
            yield WeightsDone(generation)

    def _is_shown_long(self, rules: int) -> bool:
        """Return whether all leases have long shown these rules."""
        now_s = time.monotonic()
        if self._shown_rules != rules:
            self._shown_rules, self._shown_since_s = rules, now_s
        return now_s - self._shown_since_s >= SETTLE_S

    async def _append(self, change: Change) -> None:
        try:
            await self._log.append([Entry(self._applier.time_ms, change)])
            _log.info("appended what all nodes agree on: %s", change)
        except LogError as error:
            _log.warning("%s", error)
