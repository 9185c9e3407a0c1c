"""One reader of the changes of a result."""

from __future__ import annotations

import asyncio

from nearcast.model import Change, ChangeKind, ChangeReason, LiveObject


class Watcher:
    """Compares results. Objects are the same only if all their fields are equal: ids may be reused.

    Operations: O(objects) a comparison.
    """

    def __init__(self) -> None:
        self._seen: list[LiveObject] = []
        self._reason = ChangeReason.SUBSCRIBED
        self._removals: dict[int, ChangeReason] = {}
        self._event = asyncio.Event()

    def notice(self, reason: ChangeReason, removals: dict[int, ChangeReason]) -> None:
        """Record that the result may have changed, with the reasons why objects have left it."""
        self._reason = reason
        seen = {one.id for one in self._seen}
        self._removals.update((key, why) for key, why in removals.items() if key in seen)
        self._event.set()

    async def noticed(self) -> None:
        """Wait until the result may have changed."""
        await self._event.wait()
        self._event.clear()

    def difference(self, now: list[LiveObject]) -> list[Change]:
        """Return the changes since the last call."""
        before, self._seen = self._seen, now
        reason, removals = self._reason, self._removals
        self._removals = {}
        old = {one.id: one for one in before}
        stayed_ids = {one.id for one in now if old.get(one.id) == one}
        changes = [
            Change(ChangeKind.LEFT, one, rank, removals.get(one.id, reason))
            for rank, one in enumerate(before)
            if one.id not in stayed_ids
        ]
        changes += [
            Change(ChangeKind.ENTERED, one, rank, reason)
            for rank, one in enumerate(now)
            if one.id not in stayed_ids
        ]
        stayed_before = [one.id for one in before if one.id in stayed_ids]
        stayed = [(rank, one) for rank, one in enumerate(now) if one.id in stayed_ids]
        changes += [
            Change(ChangeKind.REORDERED, one, rank, reason)
            for (rank, one), was in zip(stayed, stayed_before, strict=True)
            if one.id != was
        ]
        return changes
