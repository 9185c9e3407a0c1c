"""Commands that wait for their turn, in two lanes, each oldest first.

Most of what devices say needs no disk and concerns nobody else: reports, hellos, acks, pings, searches.
It waits in the *volatile* lane and may go ahead of commands of others in the *durable* lane, whose commit
takes as long as the disk takes. It does not go ahead of anything of its own device, and nothing goes
ahead of it.

A report that waits gives way to the next one of its device, which is where the device is now: the answer
to the later is the answer to both. So a device that speaks faster than it can be answered holds up
nobody, and the queue of a flood is as long as there are devices.

Operations: O(1) a command put or taken.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter, deque
from collections.abc import Iterable
from typing import Any

from server.commands import command as c
from server.counters import Counters

Answer = asyncio.Future[Any]

_ANYBODYS = (c.Search, c.Inspect)
"""Commands that are no device's."""


class Entry:
    """A command, who waits for its answer, if anybody does, and when it came."""

    __slots__ = ("answer", "command", "number")

    def __init__(self, command: c.Command, answer: Answer | None, number: int) -> None:
        self.command = command
        self.answer = answer
        self.number = number


class CommandQueue:
    """The queue.

    Parameters
    ----------
    counters
        Where reports that gave way are counted.
    """

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._durable: deque[Entry] = deque()
        self._volatile: deque[Entry] = deque()
        self._number = 0
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
        entry = Entry(command, answer, self._number)
        if isinstance(command, c.Report):
            self._reports[command.device_id] = entry
        elif isinstance(command, c.DeviceCommand | c.ForgetDevice):
            self._reports.pop(command.device_id, None)
        if isinstance(command, c.VolatileCommand) and not self._is_busy(command):
            self._volatile.append(entry)
            return True
        self._durable.append(entry)
        for device_id in _devices_of(command):
            self._busy[device_id] += 1
        return True

    def _is_busy(self, command: c.VolatileCommand) -> bool:
        return not isinstance(command, _ANYBODYS) and command.device_id in self._busy

    @property
    def volatile_count(self) -> int:
        """How many commands wait in the volatile lane."""
        return len(self._volatile)

    def volatile(self, count: int) -> list[c.Command]:
        """Return the oldest commands of the volatile lane, which stay."""
        return [entry.command for entry in itertools.islice(self._volatile, count)]

    def durable(self, count: int) -> list[c.Command]:
        """Return the oldest of the durable lane, which stay: those older than all that is volatile."""
        end = self._volatile[0].number if self._volatile else self._number + 1
        oldest = itertools.islice(self._durable, count)
        return [entry.command for entry in itertools.takewhile(lambda one: one.number < end, oldest)]

    def take_volatile(self, count: int) -> list[Entry]:
        """Take the oldest commands of the volatile lane."""
        return self._taken(self._volatile, count)

    def take_durable(self, count: int) -> list[Entry]:
        """Take the oldest commands of the durable lane; `done` is to be called."""
        return self._taken(self._durable, count)

    def done(self, entries: Iterable[Entry]) -> None:
        """Note that commands of the durable lane have been carried out, or refused."""
        for entry in entries:
            for device_id in _devices_of(entry.command):
                self._busy[device_id] -= 1
                if not self._busy[device_id]:
                    del self._busy[device_id]

    def _taken(self, lane: deque[Entry], count: int) -> list[Entry]:
        taken = [lane.popleft() for _ in range(count)]
        for entry in taken:
            command = entry.command
            if isinstance(command, c.Report) and self._reports.get(command.device_id) is entry:
                del self._reports[command.device_id]
        return taken


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
