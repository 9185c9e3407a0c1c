"""Commands that wait for their turn, in two lanes.

Most of what devices say needs no disk and concerns nobody else: reports, hellos, acks, pings, searches.
It waits in the *volatile* lane and may go ahead of commands of others in the *durable* lane, whose commit
takes as long as the disk takes. In each lane callers take turns (`server/runtime/turns.py`); what one
caller asks stays in order, and nothing of the durable lane goes ahead of what its caller has asked
before. A barrier waits for all that was there before it, whoever's it is.

A report that waits gives way to the next one of its device, which is where the device is now: the answer
to the later is the answer to both. So a device that speaks faster than it can be answered holds up
nobody, and the queue of a flood is as long as there are devices.

Operations: O(1) a command put or taken.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from server import command as c
from server.counters import Counters
from server.principal import ANYBODY, Principal
from server.quotas import Account
from server.runtime.turns import Turns

Answer = asyncio.Future[Any]

_ANYBODYS = (c.Search, c.Inspect)
"""Commands that are no device's."""

_BARRIERS = (c.Sync, c.AdvanceClock, c.SetIdf)
"""Commands that come behind all that came before."""

CALLER_MAX = 10_000
"""Commands of one caller that wait; beyond, its streams are not read until some have been carried out."""

_RESERVE = 64
"""Commands that any caller may have waiting, however much others have."""


class Entry:
    """A command, who waits for its answer, if anybody does, when it came and what it may cost."""

    __slots__ = ("account", "answer", "command", "cost_us", "is_taken", "number", "tenant")

    def __init__(
        self, command: c.Command, answer: Answer | None, number: int, principal: Principal, cost_us: float
    ) -> None:
        self.command = command
        self.answer = answer
        self.number = number
        self.account = principal.account
        self.tenant = principal.tenant
        self.cost_us = cost_us
        self.is_taken = False


def principal_of(command: c.Command) -> Principal:
    """Return whose command it is; what the server asks itself is anybody's."""
    if isinstance(command, c.DeviceCommand):
        return command.outbox.principal
    found: Principal = getattr(command, "principal", ANYBODY)
    return found


class CommandQueue:
    """The queue.

    Parameters
    ----------
    counters
        Where reports that gave way are counted.
    count_max
        Commands that wait, of all callers.
    estimate
        Says what a command may cost, in microseconds.
    on_put
        Is called with each entry that waits now.
    """

    def __init__(
        self,
        counters: Counters,
        count_max: int = 100_000,
        estimate: Callable[[c.Command], float] = lambda _: 1.0,
        on_put: Callable[[Entry], None] = lambda _: None,
    ) -> None:
        self._on_put = on_put
        self._counters = counters
        self._count_max = count_max
        self._estimate = estimate
        self._durable: Turns[Entry] = Turns()
        self._volatile: Turns[Entry] = Turns()
        self._number = 0
        self._order: deque[Entry] = deque()
        """All, oldest first, and some that were taken."""
        self._returned: dict[int, Entry] = {}
        """Those that were put back, by number."""
        self._busy: Counter[str] = Counter()
        """Of each device, commands of the durable lane that are not done."""
        self._reports: dict[str, Entry] = {}
        """By device: its last command, if that is a report."""

    def __len__(self) -> int:
        return len(self._durable) + len(self._volatile)

    def put(self, command: c.Command, answer: Answer | None = None) -> bool:
        """Append a command, or put a report in the place of one that waits. Whether it is one more."""
        if isinstance(command, c.Report):
            before = self._reports.get(command.device_id)
            if before is not None and _gives_way(before.command, command):
                before.command = command
                self._counters.reports_superseded += 1
                return False
        self._number += 1
        cost_us = self._estimate(command)
        entry = Entry(command, answer, self._number, principal_of(command), cost_us)
        self._order.append(entry)
        self._on_put(entry)
        if isinstance(command, c.Report):
            self._reports[command.device_id] = entry
        elif isinstance(command, c.DeviceCommand | c.ForgetDevice):
            self._reports.pop(command.device_id, None)
        if isinstance(command, c.VolatileCommand) and not self._is_busy(command):
            self._volatile.put(entry)
            return True
        self._durable.put(entry)
        for device_id in _devices_of(command):
            self._busy[device_id] += 1
        return True

    def _is_busy(self, command: c.VolatileCommand) -> bool:
        return not isinstance(command, _ANYBODYS) and command.device_id in self._busy

    def has_room(self, account: Account) -> bool:
        """Whether a caller may put one more: others do not take all the room there is."""
        is_full = len(self) >= self._count_max
        if not account.is_limited:
            return not is_full
        count = len(self._durable.of(account)) + len(self._volatile.of(account))
        return count < (_RESERVE if is_full else CALLER_MAX)

    @property
    def volatile_count(self) -> int:
        """How many commands wait in the volatile lane."""
        return len(self._volatile)

    @property
    def durable_count(self) -> int:
        """How many commands wait in the durable lane."""
        return len(self._durable)

    def take_volatile(
        self,
        count_max: int,
        cost_max_us: float = math.inf,
        is_ready: Callable[[Entry], bool] | None = None,
    ) -> list[Entry]:
        """Take what is next in the volatile lane.

        Parameters
        ----------
        count_max, cost_max_us
            How much at most; the last may cost more.
        is_ready
            Whether a command may be taken now.
        """
        return self._taken(self._volatile.take(count_max, cost_max_us, is_ready))

    def take_durable(self, count_max: int, cost_max_us: float = math.inf) -> list[Entry]:
        """Take what is next in the durable lane; `done` or `put_back` is to be called."""
        return self._taken(self._durable.take(count_max, cost_max_us, self._is_next))

    def take_all(self) -> list[Entry]:
        """Take all that waits, in no order: nothing of it is to be carried out in turn."""
        volatile = self._taken(self._volatile.take(len(self._volatile)))
        durable = self._taken(self._durable.take(len(self._durable)))
        self.done(durable)
        return [*volatile, *durable]

    def put_back(self, entries: Sequence[Entry]) -> None:
        """Put back what was taken of the durable lane and cannot be carried out yet, oldest first."""
        for entry in entries:
            self._returned[entry.number] = entry
        self._durable.put_back(entries)

    def _is_next(self, entry: Entry) -> bool:
        """Whether nothing is ahead of a command of the durable lane."""
        before = self._volatile.of(entry.account)
        if before and before[0].number < entry.number:
            return False
        return not isinstance(entry.command, _BARRIERS) or self._oldest() == entry.number

    def _oldest(self) -> int:
        """Return the number of the oldest command that waits."""
        order = self._order
        while order and order[0].is_taken:
            order.popleft()
        first = order[0].number if order else self._number + 1
        return min((first, *(number for number, one in self._returned.items() if not one.is_taken)))

    def done(self, entries: Iterable[Entry]) -> None:
        """Note that commands of the durable lane have been carried out, or refused."""
        for entry in entries:
            for device_id in _devices_of(entry.command):
                self._busy[device_id] -= 1
                if not self._busy[device_id]:
                    del self._busy[device_id]

    def _taken(self, entries: list[Entry]) -> list[Entry]:
        for entry in entries:
            command = entry.command
            if isinstance(command, c.Report) and self._reports.get(command.device_id) is entry:
                del self._reports[command.device_id]
        if self._returned:
            for entry in entries:
                self._returned.pop(entry.number, None)
        self._oldest()
        return entries


def _devices_of(command: c.Command) -> Iterable[str]:
    """Return the devices whose later commands have to wait for this one."""
    if isinstance(command, c.Forget):
        return command.device_ids
    return (command.device_id,) if isinstance(command, c.DeviceCommand | c.ForgetDevice) else ()


def _gives_way(before: c.Command, report: c.Report) -> bool:
    """Tell whether a report says all that the one before has said, and is no more to be refused."""
    return (
        isinstance(before, c.Report)
        and before.outbox is report.outbox
        and before.sequence < report.sequence
        and before.subscription_ids == report.subscription_ids
        and before.place.margin_m == report.place.margin_m
    )
