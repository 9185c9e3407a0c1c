"""Commands that wait for their turn, oldest first.

A report that waits gives way to the next one of its device, which is where the device is now: the answer
to the later is the answer to both. So a device that speaks faster than it can be answered holds up
nobody, and the queue of a flood is as long as there are devices.

Operations: O(1) a command put or taken.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from typing import Any

from server import commands as c
from server.counters import Counters
from server.errors import RefusalError
from server.limits import Limits
from server.validation import checked_report

Answer = asyncio.Future[Any]


class Entry:
    """A command, and who waits for its answer, if anybody does."""

    __slots__ = ("answer", "command")

    def __init__(self, command: c.Command, answer: Answer | None) -> None:
        self.command = command
        self.answer = answer


class WaitingCommands:
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
        self._entries: deque[Entry] = deque()
        self._reports: dict[str, Entry] = {}
        """By device: its last command, if that is a report."""

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, command: c.Command, answer: Answer | None = None) -> None:
        """Append a command, or put a report in the place of one that waits."""
        if isinstance(command, c.Report):
            before = self._reports.get(command.device_id)
            if before is not None and self._gives_way(before.command, command):
                before.command = command
                self._counters.reports_superseded += 1
                return
            entry = self._reports[command.device_id] = Entry(command, answer)
        else:
            if isinstance(command, c.DeviceCommand):
                self._reports.pop(command.device_id, None)
            entry = Entry(command, answer)
        self._entries.append(entry)

    def first(self, count: int) -> list[c.Command]:
        """Return the oldest commands, which stay."""
        return [entry.command for entry in itertools.islice(self._entries, count)]

    def take(self, count: int) -> list[Entry]:
        """Take the oldest commands."""
        taken = [self._entries.popleft() for _ in range(count)]
        for entry in taken:
            command = entry.command
            if isinstance(command, c.Report) and self._reports.get(command.device_id) is entry:
                del self._reports[command.device_id]
        return taken

    def _gives_way(self, before: c.Command, report: c.Report) -> bool:
        """Tell whether a report says all that the one before has said, and is no more to be refused."""
        if (
            not isinstance(before, c.Report)
            or before.connection is not report.connection
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
