"""What one batch does to buffers: collected as it happens, told as one delta a subscription."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from server.engine.standing import Standing
from server.model import Cause, Delta, DropReason, Entry


class Changes:
    """Collects additions and removals.

    Parameters
    ----------
    cause
        Why the batch happens; a delta that removes a replaced object says REPLACED instead.
    """

    def __init__(self, cause: Cause) -> None:
        self._cause = cause
        self._add: dict[int, dict[int, Entry]] = {}
        self._drop: dict[int, dict[int, DropReason]] = {}

    def gained(self) -> list[int]:
        """Return the subscriptions that were given an object."""
        return list(self._add)

    def add(self, handle: int, entry: Entry) -> None:
        """Note that an object has entered a buffer."""
        self._add.setdefault(handle, {})[entry.item.object_id] = entry

    def drop(self, handle: int, object_id: int, reason: DropReason) -> None:
        """Note that an object has left a buffer; if it only just entered, nothing has happened."""
        if self._add.get(handle, {}).pop(object_id, None) is None:
            self._drop.setdefault(handle, {})[object_id] = reason

    def dropper(self, reason: DropReason) -> Callable[[int, int], None]:
        """Return `drop` for one reason."""
        return lambda handle, object_id: self.drop(handle, object_id, reason)

    def deltas(self, standings: Mapping[int, Standing], now_ms: int) -> list[Delta]:
        """Return one delta for each subscription concerned, with its anchor and reach as they are now."""
        found = []
        for handle in self._add | self._drop:
            standing = standings[handle]
            add = list(self._add.get(handle, {}).values())
            drop = self._drop.get(handle, {})
            replaced = DropReason.REPLACED in drop.values()
            cause = Cause.REPLACED if replaced else self._cause
            found.append(Delta(handle, cause, standing.anchor, standing.reach, now_ms, add, drop))
        return found
