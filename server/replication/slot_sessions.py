"""The sessions of a node, by slot."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from cluster.slots import slot_of
from index.batches import Ints
from server.session import Session
from server.session.session_table import Sessions
from server.store.mutations import SubscriptionColumns


class SlotSessions(Sessions):
    """Sessions by device, and the devices of each slot. Some 100 bytes a device more than `Sessions`.

    Parameters
    ----------
    revive
        See `Sessions`.
    """

    def __init__(self, revive: Callable[[str, dict[int, int]], Session]) -> None:
        super().__init__(revive)
        self._of: defaultdict[int, set[str]] = defaultdict(set)

    def of_slot(self, slot: int) -> list[str]:
        """Return the devices of a slot."""
        return list(self._of.get(slot, ()))

    def park(self, columns: SubscriptionColumns, handles: Ints) -> None:
        """Add subscriptions; see `Sessions.park`."""
        super().park(columns, handles)
        for device_id in set(columns.device_ids):
            self._of[slot_of(device_id)].add(device_id)

    def __setitem__(self, device_id: str, session: Session) -> None:
        super().__setitem__(device_id, session)
        self._of[slot_of(device_id)].add(device_id)

    def __delitem__(self, device_id: str) -> None:
        super().__delitem__(device_id)
        slot = slot_of(device_id)
        self._of[slot].discard(device_id)
        if not self._of[slot]:
            del self._of[slot]
