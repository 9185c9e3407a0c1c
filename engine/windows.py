"""Decide which live objects count for a subscription: windows.

A window has the objects of the last n milliseconds, or the last n objects published. Ids of objects
increase without gaps in the order in which they were published, so a window is all ids from a first one
on. An object that is gone keeps its number, and nothing ever returns into a window. Subscriptions refer
to their window by a number; 0 stands for no window, in which every live object counts.

For each window the rates of arrivals and departures are kept, as for all live objects: a window of time
must cost the same as lifetimes that end at the same moments.

Operations: O(1) an object and window, amortised; a new window is O(live objects).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine import window_kernels as kernels
from engine.layout import NO_WINDOW
from engine.turnover import Turnover
from index.batches import Floats, Ints
from index.contracts import InconsistentIndexError
from index.tables import SlotTable
from index.tables.slots import Slots

Numbers = npt.NDArray[np.int16]

_ROOM_MIN = 8
_EVERYTHING = np.iinfo(np.int64).min


@dataclass(frozen=True, slots=True)
class Lasts:
    """Windows that subscriptions request, a row each; 0 where the window is not of that kind."""

    duration_ms: Ints
    count: Ints

    @classmethod
    def none(cls, rows: int) -> Lasts:
        """Return rows without windows."""
        return cls(np.zeros(rows, dtype=np.int64), np.zeros(rows, dtype=np.int64))


class Leaving(NamedTuple):
    """Live objects that leave a window, and the first id that counts in it afterwards."""

    window: int
    first_id: int
    slots: Slots


class Windows:
    """The windows of all subscriptions.

    Parameters
    ----------
    table
        The live objects, with `created_ms`.
    """

    def __init__(self, table: SlotTable) -> None:
        self.next_id = 0
        """Above every published id."""
        self.first_ids: Ints = np.full(_ROOM_MIN, _EVERYTHING, dtype=np.int64)
        """By number of the window: objects with smaller ids do not count."""
        self._table = table
        self._duration_ms: Ints = np.zeros(_ROOM_MIN, dtype=np.int64)
        self._count: Ints = np.zeros(_ROOM_MIN, dtype=np.int64)
        self._users: Ints = np.zeros(_ROOM_MIN, dtype=np.int64)
        self._alive: Ints = np.zeros(_ROOM_MIN, dtype=np.int64)
        self._arrivals = [Turnover()]
        self._departures = [Turnover()]
        self._number_of: dict[tuple[int, int], int] = {(0, 0): NO_WINDOW}

    @property
    def durations(self) -> Ints:
        """Return the milliseconds of windows, by number; 0 for windows of a count."""
        return self._duration_ms

    def __len__(self) -> int:
        """Return the number of different windows that subscriptions have."""
        return len(self._number_of) - 1

    def is_known(self, duration_ms: int, count: int) -> bool:
        """Return whether some subscription has this window."""
        return (duration_ms, count) in self._number_of

    @property
    def has_count(self) -> bool:
        """Return whether some subscription has a window of a count."""
        return any(count for _, count in self._number_of)

    def last(self, number: int) -> tuple[int, int]:
        """Return the milliseconds and the number of objects of a window; 0 for the other kind."""
        return int(self._duration_ms[number]), int(self._count[number])

    # -- subscriptions ---------------------------------------------------------------------------

    def take(self, lasts: Lasts, now_ms: int) -> Numbers:
        """Return the numbers of windows, each for one more subscription."""
        numbers = np.zeros(len(lasts.count), dtype=np.int16)
        windowed = np.flatnonzero((lasts.duration_ms != 0) | (lasts.count != 0))
        for row in windowed.tolist():
            key = int(lasts.duration_ms[row]), int(lasts.count[row])
            number = self._number_of.get(key)
            numbers[row] = self._begin(key, now_ms) if number is None else number
            self._users[numbers[row]] += 1
        return numbers

    def give_back(self, numbers: Numbers) -> None:
        """Release windows of subscriptions that have ended."""
        for number in numbers[numbers != NO_WINDOW].tolist():
            self._users[number] -= 1
            if self._users[number] == 0:
                del self._number_of[int(self._duration_ms[number]), int(self._count[number])]

    def _begin(self, key: tuple[int, int], now_ms: int) -> int:
        """Return the number of a window that no subscription had."""
        taken = set(self._number_of.values())
        number = next(one for one in range(1, len(taken) + 1) if one not in taken)
        if number >= len(self.first_ids):
            for name in ("first_ids", "_duration_ms", "_count", "_users", "_alive"):
                column = getattr(self, name)
                setattr(self, name, np.concatenate([column, np.zeros_like(column)]))
        if number == len(self._arrivals):
            self._arrivals.append(Turnover())
            self._departures.append(Turnover())
        self._arrivals[number], self._departures[number] = Turnover(), Turnover()
        self._duration_ms[number], self._count[number] = key
        self._number_of[key] = number
        self.first_ids[number] = self.first_id(*key, now_ms)
        ids = self._table.rows["id"][self._table.used()]
        self._alive[number] = np.count_nonzero(ids >= self.first_ids[number])
        self._arrivals[number].note(now_ms, 0, int(self._alive[number]))
        return number

    def first_id(self, duration_ms: int, count: int, now_ms: int) -> int:
        """Return the first id that counts in a window. O(live objects) for a window of time."""
        if count:
            return self.next_id - count
        if not duration_ms:
            return int(_EVERYTHING)
        rows = self._table.rows[self._table.used()]
        young = rows["id"][rows["created_ms"] > now_ms - duration_ms]
        return int(young.min(initial=self.next_id))

    # -- objects ---------------------------------------------------------------------------------

    def leaving(self, ids: Ints) -> list[Leaving]:
        """Return objects that leave windows when others are published, which are not in the table yet."""
        next_id = max(self.next_id, int(ids.max(initial=0)) + 1)
        counts = ((number, int(self._count[number])) for number in self._numbers())
        return [self._leaving(number, next_id - count) for number, count in counts if count]

    def due(self, now_ms: int) -> list[Leaving]:
        """Return objects that leave windows of time by `now_ms`."""
        found = []
        for number in self._numbers():
            duration_ms = int(self._duration_ms[number])
            if duration_ms:
                found.append(self._leaving(number, self._first_younger(number, now_ms - duration_ms)))
        return found

    def next_due_ms(self) -> int | None:
        """Return the time when the next object leaves a window of time; None if none does.

        Windows pass over objects that are gone: O(1) an object, amortised.
        """
        found = []
        for number in self._numbers():
            duration_ms = int(self._duration_ms[number])
            if not duration_ms:
                continue
            first_id = self.first_ids[number] = self._first_younger(number, _EVERYTHING)
            if first_id < self.next_id:
                (slot,) = self._table.slots(np.array([first_id]))
                found.append(int(self._table.rows["created_ms"][slot]) + duration_ms)
        return min(found, default=None)

    def _first_younger(self, number: int, created_ms: int) -> int:
        """Return the first id in a window of a live object that was created after a time."""
        table, first_id = self._table, int(self.first_ids[number])
        ids = table.ids
        return int(
            kernels.first_younger(table.rows, ids.keys, ids.values, first_id, self.next_id, created_ms)
        )

    def _leaving(self, number: int, first_id: int) -> Leaving:
        before = int(self.first_ids[number])
        ids = np.arange(before, max(before, min(first_id, self.next_id)))
        ids = ids[self._table.ids.present(ids)] if len(ids) else ids
        return Leaving(number, max(before, first_id), self._table.slots(ids))

    def let_go(self, leaving: Leaving, now_ms: int) -> None:
        """Remove objects from a window. Its subscriptions hold them no more."""
        self.first_ids[leaving.window] = leaving.first_id
        self._count_out(leaving.window, len(leaving.slots), now_ms)

    def arrived(self, ids: Ints, now_ms: int) -> None:
        """Record new objects, which are in the table."""
        self.next_id = max(self.next_id, int(ids.max(initial=0)) + 1)
        self._arrivals[NO_WINDOW].note(now_ms, len(ids), len(self._table))
        for number in self._numbers():
            count = int(np.count_nonzero(ids >= self.first_ids[number]))
            self._alive[number] += count
            self._arrivals[number].note(now_ms, count, int(self._alive[number]))

    def departed(self, ids: Ints, now_ms: int) -> None:
        """Record objects that are gone from the table."""
        self._departures[NO_WINDOW].note(now_ms, len(ids), len(self._table))
        for number in self._numbers():
            self._count_out(number, int(np.count_nonzero(ids >= self.first_ids[number])), now_ms)

    def _count_out(self, number: int, count: int, now_ms: int) -> None:
        if count:
            self._alive[number] -= count
            self._departures[number].note(now_ms, count, int(self._alive[number]))

    def _numbers(self) -> list[int]:
        return [number for number in self._number_of.values() if number != NO_WINDOW]

    # -- queries ---------------------------------------------------------------------------------

    def first_ids_of(self, lasts: Lasts, now_ms: int) -> Ints:
        """Return the first id that counts in each window, whether or not a subscription has it."""
        keys = list(zip(lasts.duration_ms.tolist(), lasts.count.tolist(), strict=True))
        found = {}
        for key in dict.fromkeys(keys):
            number = self._number_of.get(key)
            known = None if number is None else int(self.first_ids[number])
            found[key] = self.first_id(*key, now_ms) if known is None else known
        return np.array([found[key] for key in keys], dtype=np.int64)

    def counts_of(self, numbers: Numbers) -> Ints:
        """Return how many live objects count in each window."""
        found: Ints = np.where(numbers == NO_WINDOW, len(self._table), self._alive[numbers])
        return found

    def do_count(self, ids: Ints, numbers: Numbers) -> npt.NDArray[np.bool_]:
        """Return whether each object counts in the window of the same row."""
        found: npt.NDArray[np.bool_] = ids >= self.first_ids[numbers]
        return found

    def rates(self) -> tuple[Floats, Floats]:
        """Return arrivals and departures per counting object and second, by number."""
        found = np.zeros((2, len(self.first_ids)))
        for number in self._number_of.values():
            found[0, number] = self._arrivals[number].per_object_s
            found[1, number] = self._departures[number].per_object_s
        return found[0], found[1]

    def check(self, now_ms: int) -> None:
        """Verify every window from its definition. O(windows * objects).

        Raises
        ------
        InconsistentIndexError
            Names the invariant that does not hold.
        """
        rows = self._table.rows[self._table.used()]
        for (duration_ms, count), number in self._number_of.items():
            counts = np.ones(len(rows), dtype=np.bool_)
            if count:
                counts &= rows["id"] >= self.next_id - count
            if duration_ms:
                counts &= rows["created_ms"] > now_ms - duration_ms
            if not np.array_equal(counts, rows["id"] >= self.first_ids[number]):
                raise InconsistentIndexError(f"window {number} starts at a wrong position")
            if number != NO_WINDOW and self._alive[number] != counts.sum():
                raise InconsistentIndexError(f"window {number} has a wrong count of objects")
        if (rows["id"] >= self.next_id).any():
            raise InconsistentIndexError("an object has an unpublished id")
