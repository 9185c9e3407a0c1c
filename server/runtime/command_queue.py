"""Commands that wait for their turn, in two lanes, each oldest first.

Most of what devices say, reports, acks and pings, needs no disk and concerns nobody else: it waits
*aside* and may go ahead of commands of others, whose commit takes as long as the disk takes. It does not
go ahead of anything of its own device, and nothing goes ahead of it.

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
from server.commands.validation import checked_report
from server.counters import Counters
from server.errors import RefusalError
from server.limits import Limits

_ASIDE = (c.Report, c.Ping, c.Ack)

Answer = asyncio.Future[Any]


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
    limits
        Of what a report may say.
    counters
        Where reports that gave way are counted.
    """

    def __init__(self, limits: Limits, counters: Counters) -> None:
        self._limits = limits
        self._counters = counters
        self._main: deque[Entry] = deque()
        self._batcher: deque[Entry] = deque()
        self._number = 0
        self._busy: Counter[str] = Counter()
        """Of each device, commands of the main lane that are not done."""
        self._reports: dict[str, Entry] = {}
        """By device: its last command, if that is a report."""

    def __len__(self) -> int:
        return len(self._main) + len(self._batcher)

    def put(self, command: c.Command, answer: Answer | None = None) -> bool:
        """Append a command, or put a report in the place of one that waits. Whether it is one more."""
        if isinstance(command, c.Report):
            before = self._reports.get(command.device_id)
            if before is not None and self._gives_way(before.command, command):
                before.command = command
                self._counters.reports_superseded += 1
                return False
        self._number += 1
        entry = Entry(command, answer, self._number)
        if not isinstance(command, c.DeviceCommand):
            self._main.append(entry)
            return True
        device_id = command.device_id
        if isinstance(command, c.Report):
            self._reports[device_id] = entry
        else:
            self._reports.pop(device_id, None)
        if isinstance(command, _ASIDE) and device_id not in self._busy:
            self._batcher.append(entry)
        else:
            self._main.append(entry)
            self._busy[device_id] += 1
        return True

    @property
    def aside_count(self) -> int:
        """How many commands wait aside."""
        return len(self._batcher)

    def asides(self, count: int) -> list[c.Command]:
        """Return the oldest commands aside, which stay."""
        return [entry.command for entry in itertools.islice(self._batcher, count)]

    def main(self, count: int) -> list[c.Command]:
        """Return the oldest of the main lane, which stay: those that came before all that is aside."""
        end = self._batcher[0].number if self._batcher else self._number + 1
        oldest = itertools.islice(self._main, count)
        return [entry.command for entry in itertools.takewhile(lambda one: one.number < end, oldest)]

    def take_asides(self, count: int) -> list[Entry]:
        """Take the oldest commands aside."""
        return self._taken(self._batcher, count)

    def take_main(self, count: int) -> list[Entry]:
        """Take the oldest commands of the main lane; `done` is to be called."""
        return self._taken(self._main, count)

    def done(self, entries: Iterable[Entry]) -> None:
        """Note that commands of the main lane have been carried out, or refused."""
        for entry in entries:
            if isinstance(entry.command, c.DeviceCommand):
                device_id = entry.command.device_id
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

    def _gives_way(self, before: c.Command, report: c.Report) -> bool:
        """Tell whether a report says all that the one before has said, and is no more to be refused."""
        if (
            not isinstance(before, c.Report)
            or before.outbox is not report.outbox
            or before.sequence >= report.sequence
            or before.subscription_ids != report.subscription_ids
            or before.margin_m != report.margin_m
        ):
            return False
        try:
            checked_report(report, self._limits)
        except RefusalError:
            return False
        return True
