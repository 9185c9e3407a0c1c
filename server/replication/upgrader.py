"""Brings the rules of applying into force that all nodes know.

During an upgrade, nodes of two versions run side by side by the rules of the older one. When its last
node has ended, a node appends an entry, after which all go by the later rules. A node of the older
version that reads this entry ends.

Cost: one comparison a second.
"""

from __future__ import annotations

import asyncio
import logging

from cluster.entries import Entry, SetRules
from cluster.log import Log, LogError
from server.replication.applier import Applier
from server.replication.slot_keeper import SlotKeeper

_log = logging.getLogger(__name__)

_LOOK_S = 1.0


class Upgrader:
    """Compares the rules that nodes know with those in force.

    Parameters
    ----------
    log
        The log.
    applier
        Knows the rules in force, and the time.
    slots
        Knows the nodes.
    """

    def __init__(self, log: Log, applier: Applier, slots: SlotKeeper) -> None:
        self._log = log
        self._applier = applier
        self._slots = slots

    async def run(self) -> None:
        """Append an entry when all nodes know later rules, until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_S)
            rules = self._slots.known_rules()
            if rules > self._applier.rules:
                await self._append(rules)

    async def _append(self, rules: int) -> None:
        try:
            await self._log.append([Entry(self._applier.time_ms, SetRules(rules))])
            _log.info("all nodes know the rules %d, which come into force", rules)
        except LogError as error:
            _log.warning("%s", error)
