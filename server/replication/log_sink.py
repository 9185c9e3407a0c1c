"""The changes of objects that wait for the sink of a cluster: a part of the state that all nodes share.

Every node keeps the same changes under the same numbers, in its store, so that any of them can go on
writing. Numbers start at 1 and never go back, also when a sink ends and another one begins.

Cost: O(1) per change, and nothing while there is no sink.
"""

from __future__ import annotations

from collections.abc import Iterable

from server.model import LiveObject
from server.replication.write_behind import WriteBehind
from server.store.mutations import DeleteObject, PutObject, SinkPosition
from server.store.rows import happened


class LogSink:
    """Which changes wait for the sink.

    Parameters
    ----------
    unwritten
        Where changes go that the store does not have yet.
    """

    def __init__(self, unwritten: WriteBehind) -> None:
        self._unwritten = unwritten
        self.position = SinkPosition()

    @property
    def waiting_count(self) -> int:
        """The number of changes that wait."""
        return self.position.number - self.position.sent_number

    def recover(self, position: SinkPosition) -> None:
        """Continue with what a store has."""
        self.position = position

    def change(self, created: Iterable[LiveObject], gone: Iterable[int], time_ms: int) -> None:
        """Keep retractions, then publications."""
        if self.position.is_on:
            self._keep([*map(DeleteObject, gone), *map(PutObject, created)], time_ms)

    def expire(self, expiries: Iterable[tuple[int, int]], time_ms: int) -> None:
        """Keep expiries, in the order of their times and ids, which is the same on all nodes."""
        if self.position.is_on:
            self._keep([DeleteObject(one, has_expired=True) for _, one in sorted(expiries)], time_ms)

    def _keep(self, changes: list[PutObject | DeleteObject], time_ms: int) -> None:
        if not changes:
            return
        first = self.position.number + 1
        for number, one in enumerate(changes, first):
            self._unwritten.put_change(happened(number, one, time_ms))
        self._move(self.position._replace(number=self.position.number + len(changes)))

    def switch(self, *, is_on: bool) -> None:
        """Begin or end to keep changes; the end deletes those that wait."""
        if is_on != self.position.is_on:
            self._move(SinkPosition(is_on, self.position.number, self.position.number))

    def sent(self, number: int) -> None:
        """Delete changes up to a number. What a node has found out late changes nothing."""
        position = self.position
        until = min(number, position.number)
        if until > position.sent_number:
            self._move(position._replace(sent_number=until))

    def _move(self, position: SinkPosition) -> None:
        self.position = position
        self._unwritten.move_sink(position)
