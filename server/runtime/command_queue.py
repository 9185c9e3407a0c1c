"""Commands that wait for their turn, in two lanes.

Most commands of devices need no disk and concern no other device: reports, hellos, acks, pings, searches.
They wait in the *volatile* lane and may overtake commands of other callers in the *durable* lane, whose
commits take as long as the disk takes. In each lane callers take turns (`server/runtime/turns.py`). The
commands of one caller stay in order, and a durable command does not overtake earlier commands of its
caller. A barrier waits for all commands before it, of any caller.

A waiting report gives way to the next one of its device, which has the current position: the response to
the later report is the response to both. So a device that sends faster than the server responds delays no
other device, and the queue of a flood is as long as the number of devices.

Operations: O(1) per command put or taken.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from identity.principal import ANYBODY, Principal
from identity.quotas import Account
from server import command as c
from server.counters import Counters
from server.runtime.fair_shares import Lane
from server.runtime.turns import Turns

Answer = asyncio.Future[Any]

QUERIES = (c.Search, c.Inspect)
"""Commands that only read, and belong to no device."""

CALLER_MAX = 10_000
"""Maximum number of waiting commands of one caller; beyond it the server pauses reading its streams."""

_TAKEN_MAX = 1_000
"""Number of commands that were taken and are kept in order, in addition to as many as wait."""

_DONE: c.Command = c.Sync()
"""In place of a command that was executed."""

_RESERVE = 64
"""Number of commands that any caller may have waiting, however many others have."""


class Entry:
    """A command with the future of its response, if any, its number in order and its estimated cost."""

    __slots__ = ("account", "answer", "command", "cost_us", "is_taken", "number", "queued_s", "tenant")

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
        self.queued_s = time.monotonic()


def principal_of(command: c.Command) -> Principal:
    """Return the principal of a command; ANYBODY for commands of the server itself."""
    if isinstance(command, c.DeviceCommand):
        return command.outbox.principal
    found: Principal = getattr(command, "principal", ANYBODY)
    return found


class CommandQueue:
    """The queue.

    Parameters
    ----------
    counters
        Count the reports that gave way.
    count_max
        Maximum number of waiting commands of all callers.
    estimate
        Returns the estimated cost of a command in microseconds.
    on_put
        Called with each entry that is queued.
    on_taken
        Called with the lane and the entries that were taken from it.
    """

    def __init__(
        self,
        counters: Counters,
        count_max: int = 100_000,
        estimate: Callable[[c.Command], float] = lambda _: 1.0,
        on_put: Callable[[Entry], None] = lambda _: None,
        on_taken: Callable[[Lane, Sequence[Entry]], None] = lambda _, __: None,
    ) -> None:
        self._on_taken = on_taken
        self._on_put = on_put
        self._counters = counters
        self._count_max = count_max
        self._estimate = estimate
        self._durable: Turns[Entry] = Turns()
        self.volatile: Turns[Entry] = Turns()
        """The volatile lane."""
        self.put_count = 0
        """How many commands were ever put; a report that took another's place is not counted."""
        self._order: deque[Entry] = deque()
        """All entries, oldest first, including some that were taken."""
        self._returned: dict[int, Entry] = {}
        """Entries that were put back, by number."""
        self._busy: Counter[str] = Counter()
        """By device: number of durable commands that are not done."""
        self._reports: dict[str, Entry] = {}
        """By device: its last command, if that is a report."""

    def __len__(self) -> int:
        return len(self._durable) + len(self.volatile)

    def put(self, command: c.Command, answer: Answer | None = None) -> bool:
        """Append a command, or replace a waiting report; return whether the queue became longer."""
        if isinstance(command, c.Report):
            before = self._reports.get(command.device_id)
            if before is not None and _gives_way(before.command, command):
                before.command = command
                self._counters.reports_superseded += 1
                return False
        self.put_count += 1
        cost_us = self._estimate(command)
        entry = Entry(command, answer, self.put_count, principal_of(command), cost_us)
        self._order.append(entry)
        self._on_put(entry)
        if isinstance(command, c.Report):
            self._reports[command.device_id] = entry
        elif isinstance(command, c.DeviceCommand | c.ForgetDevice):
            self._reports.pop(command.device_id, None)
        if isinstance(command, c.VolatileCommand) and not self._is_busy(command):
            self.volatile.put(entry)
            return True
        self._durable.put(entry)
        for device_id in _devices_of(command):
            self._busy[device_id] += 1
        return True

    def _is_busy(self, command: c.VolatileCommand) -> bool:
        return not isinstance(command, QUERIES) and command.device_id in self._busy

    def has_room(self, account: Account) -> bool:
        """Return whether a caller may add a command; others cannot use up its reserve."""
        is_full = len(self) >= self._count_max
        if not account.is_limited:
            return not is_full
        return self._count_of(account) < (_RESERVE if is_full else CALLER_MAX)

    def is_within_bound(self, account: Account) -> bool:
        """Return whether a caller may add a command unless the queue of all callers is full."""
        if not account.is_limited:
            return True
        return self._count_of(account) < CALLER_MAX

    def _count_of(self, account: Account) -> int:
        return len(self._durable.of(account)) + len(self.volatile.of(account))

    @property
    def volatile_count(self) -> int:
        """The number of commands that wait in the volatile lane."""
        return len(self.volatile)

    @property
    def durable_count(self) -> int:
        """The number of commands that wait in the durable lane."""
        return len(self._durable)

    def take_volatile(
        self,
        count_max: int,
        cost_max_us: float = math.inf,
        is_ready: Callable[[Entry], bool] | None = None,
    ) -> list[Entry]:
        """Take the next commands of the volatile lane.

        Parameters
        ----------
        count_max, cost_max_us
            Maximum number and cost; the last command may exceed the cost.
        is_ready
            Whether a command may be taken now.
        """
        return self._taken(Lane.VOLATILE, self.volatile.take(count_max, cost_max_us, is_ready))

    def take_durable(self, count_max: int, cost_max_us: float = math.inf) -> list[Entry]:
        """Take the next commands of the durable lane; the caller then calls `done` or `put_back`."""
        return self._taken(Lane.DURABLE, self._durable.take(count_max, cost_max_us, self._is_next))

    def take_all(self) -> list[Entry]:
        """Take all waiting commands, in no order: they are not to be executed in turn."""
        volatile = self._taken(Lane.VOLATILE, self.volatile.take(len(self.volatile)))
        durable = self._taken(Lane.DURABLE, self._durable.take(len(self._durable)))
        for entry in durable:
            self._end_busy(entry.command)
        return [*volatile, *durable]

    def put_back(self, entries: Sequence[Entry]) -> None:
        """Put back commands of the durable lane that cannot be executed yet, oldest first."""
        for entry in entries:
            self._returned[entry.number] = entry
        self._durable.put_back(entries)

    def _is_next(self, entry: Entry) -> bool:
        """Return whether no other command has to precede a command of the durable lane."""
        before = self.volatile.of(entry.account)
        if before and before[0].number < entry.number:
            return False
        return not isinstance(entry.command, c.BARRIERS) or self._oldest() == entry.number

    def _oldest(self) -> int:
        """Return the number of the oldest waiting command."""
        order = self._order
        while order and order[0].is_taken:
            order.popleft()
        first = order[0].number if order else self.put_count + 1
        if not self._returned:
            return first
        return min((first, *(number for number, one in self._returned.items() if not one.is_taken)))

    def done(self, entries: Iterable[Entry]) -> None:
        """Record that commands of the durable lane were executed or refused, and let go of them.

        Their entries may be kept in order for some time behind a command that waits for long.
        """
        for entry in entries:
            self._end_busy(entry.command)
            entry.command, entry.answer = _DONE, None

    def _end_busy(self, command: c.Command) -> None:
        for device_id in _devices_of(command):
            self._busy[device_id] -= 1
            if not self._busy[device_id]:
                del self._busy[device_id]

    def _taken(self, lane: Lane, entries: list[Entry]) -> list[Entry]:
        self._on_taken(lane, entries)
        for entry in entries:
            command = entry.command
            if isinstance(command, c.Report) and self._reports.get(command.device_id) is entry:
                del self._reports[command.device_id]
        if self._returned:
            for entry in entries:
                self._returned.pop(entry.number, None)
        self._oldest()
        if len(self._order) > 2 * len(self) + _TAKEN_MAX:
            self._order = deque(entry for entry in self._order if not entry.is_taken)
        return entries


def _devices_of(command: c.Command) -> Iterable[str]:
    """Return the devices whose later commands have to wait for this one."""
    if isinstance(command, c.Forget):
        return command.device_ids
    return (command.device_id,) if isinstance(command, c.DeviceCommand | c.ForgetDevice) else ()


def _gives_way(before: c.Command, report: c.Report) -> bool:
    """Return whether a report replaces a waiting one, and is no more likely to be refused."""
    return (
        isinstance(before, c.Report)
        and before.outbox is report.outbox
        and before.sequence < report.sequence
        and before.subscription_ids == report.subscription_ids
        and before.place.margin_m == report.place.margin_m
    )
