"""What the log says, read beside the nodes and applied by the definition, in plain loops.

It is what every list is compared with, and what must have each acknowledged object. The whole history is
kept, so a list can be compared with the state after any entry.
"""

from __future__ import annotations

import asyncio
import sys
import time
from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass

from cluster.entries import Entry, Publish, Retract
from cluster.jetstream import JetStreamLog
from nearcast.canonical import NewObject
from safe_region import oracle
from safe_region.earth.frame import Frame

_OUTCOMES_MS = 120_000
_POLL_S = 0.02


@dataclass(slots=True)
class Accepted:
    """An object that the log has accepted, and the numbers of the entries that created and ended it."""

    object_id: int
    new: NewObject
    owner: str
    created_ms: int
    born: int
    ended: int = sys.maxsize

    @property
    def expiry_ms(self) -> int:
        return self.created_ms + self.new.ttl_ms


class Ledger:
    """Every object that was ever accepted.

    Parameters
    ----------
    log
        A connection of its own, directly to the servers of the log.
    frame
        The service area of the nodes.
    """

    def __init__(self, log: JetStreamLog, frame: Frame) -> None:
        self._log = log
        self._frame = frame
        self.log_ms = 0
        self.offset = 0
        self.entry_count = 0
        self.objects: list[Accepted] = []
        """By id, from 1."""
        self._alive: dict[int, Accepted] = {}
        self._keys: dict[tuple[str, str], Accepted] = {}
        self._seen: dict[bytes, int] = {}
        self._read_s: list[float] = []
        self._read_entries: list[int] = []
        """When messages were read, and the number of entries then."""

    # -- reading -----------------------------------------------------------------------------------

    async def follow(self) -> None:
        """Read the log, until cancelled."""
        async for message in self._log.read(0):
            for entry in message.entries:
                self.apply(entry)
            self.offset = message.offset
            self._read_s.append(time.monotonic())
            self._read_entries.append(self.entry_count)

    def entries_before(self, age_s: float) -> int:
        """Return how many entries had been read some time ago."""
        place = bisect(self._read_s, time.monotonic() - age_s)
        return self._read_entries[place - 1] if place else 0

    async def caught_up(self) -> None:
        """Wait until everything has been read that is in the log now."""
        end = await self._log.end()
        while self.offset < end:  # noqa: ASYNC110 - the reader has no event to offer
            await asyncio.sleep(_POLL_S)

    def apply(self, entry: Entry) -> None:
        self.log_ms = max(self.log_ms, entry.time_ms)
        self.entry_count += 1
        if not entry.request_id or self._is_repeated(entry):
            return
        self._seen[entry.request_id] = self.log_ms
        match entry.change:
            case Publish() as change:
                for new in change.objects:
                    self._publish(new, change.caller.id)
            case Retract() as change:
                self._retract(change)

    def _is_repeated(self, entry: Entry) -> bool:
        seen_ms = self._seen.get(entry.request_id)
        return seen_ms is not None and seen_ms > self.log_ms - _OUTCOMES_MS

    def _publish(self, new: NewObject, owner: str) -> None:
        old = self._of_key(owner, new.key)
        if old is not None and old.new == new:
            return
        if old is not None:
            self._end(old)
        found = Accepted(len(self.objects) + 1, new, owner, self.log_ms, self.entry_count)
        self.objects.append(found)
        self._alive[found.object_id] = found
        self._keys[owner, new.key] = found

    def _retract(self, change: Retract) -> None:
        found = [self._alive.get(object_id) for object_id in change.ids]
        found += [self._of_key(change.caller.id, key) for key in change.keys]
        if all(one is not None and self._is_alive(one) for one in found):
            for one in found:
                self._end(one)

    def _of_key(self, owner: str, key: str) -> Accepted | None:
        found = self._keys.get((owner, key))
        return found if found is not None and self._is_alive(found) else None

    def _is_alive(self, one: Accepted) -> bool:
        return one.ended > self.entry_count and one.expiry_ms > self.log_ms

    def _end(self, one: Accepted) -> None:
        one.ended = self.entry_count
        self._alive.pop(one.object_id, None)

    # -- states ------------------------------------------------------------------------------------

    def alive(self, now_ms: int) -> list[Accepted]:
        """Return what is alive now at a time, which later calls must not precede."""
        for one in [one for one in self._alive.values() if one.expiry_ms <= min(now_ms, self.log_ms)]:
            del self._alive[one.object_id]
        return [one for one in self._alive.values() if one.expiry_ms > now_ms]

    def plain(self, objects: list[Accepted]) -> list[oracle.OracleObject]:
        """Return objects as the oracle sees them."""
        return [
            oracle.OracleObject(
                one.object_id,
                *self._frame.project(one.new.lon, one.new.lat),
                frozenset(one.new.keywords),
                one.created_ms,
                one.expiry_ms,
            )
            for one in objects
        ]

    def states(
        self, shown: list[int], first: int, near: int, now_ms: int
    ) -> Iterator[tuple[list[Accepted], int]]:
        """Yield the states that have all shown objects, each with its latest id.

        Parameters
        ----------
        shown
            Ids of the objects.
        first
            The number of the first entry that counts.
        near
            The number of the entry whose state comes first.
        now_ms
            The time.
        """
        items = [self.objects[object_id - 1] for object_id in shown]
        first = max([first, *(one.born for one in items)])
        last = min([one.ended - 1 for one in items] + [self.entry_count])
        alive = [one for one in self.objects if one.expiry_ms > now_ms]
        changes = {number for one in alive for number in (one.born, one.ended)}
        changes |= {one.born for one in self.objects}  # the latest id: that of an object that has expired
        numbers = {first, last} | {number for number in changes if first <= number <= last}
        for number in sorted(numbers, key=lambda number: abs(number - near)):
            latest_id = bisect(self.objects, number, key=lambda one: one.born)
            yield [one for one in alive if one.born <= number < one.ended], latest_id
