"""The changes that the log has made and the store does not have yet. O(1) per change.

A store that is behind is no loss: after a restart, the node applies the log from the offset of its store.
So changes are written together, and what has come and gone meanwhile, an object or the outcome of a
request, is not written at all. Further changes come while the store is written.

While the store cannot be written, it has at most: the live objects, an id of each object in the store,
the outcomes that are kept, and the changes that wait for the sink.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from itertools import starmap

from cluster.entries import Cursor
from server.model import LiveObject
from server.store.mutations import (
    DeleteObject,
    DeleteOutcomes,
    Happened,
    Mutation,
    Outcome,
    PutChange,
    PutIdf,
    PutObject,
    PutOutcome,
    SetLogPosition,
    SetSinkPosition,
    SetSourceCursor,
    SetWindows,
    SinkPosition,
    WindowClaim,
)


@dataclass
class WriteBehind:
    """Changes since they were taken last, each as the difference to what the store has then."""

    puts: dict[int, LiveObject] = field(default_factory=dict)
    deletes: list[int] = field(default_factory=list)
    outcomes: deque[Outcome] = field(default_factory=deque)
    forgotten: list[DeleteOutcomes] = field(default_factory=list)
    idf: list[PutIdf] = field(default_factory=list)
    cursors: dict[str, Cursor] = field(default_factory=dict)
    changes: deque[Happened] = field(default_factory=deque)
    """For the sink."""
    sink: list[SetSinkPosition] = field(default_factory=list)
    windows: list[SetWindows] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.puts) + len(self.deletes) + len(self.outcomes)

    def put(self, item: LiveObject) -> None:
        """Add a new object."""
        self.puts[item.object_id] = item

    def delete(self, object_id: int) -> None:
        """Delete an object, which may be new."""
        if self.puts.pop(object_id, None) is None:
            self.deletes.append(object_id)

    def put_idf(self, table: PutIdf) -> None:
        """Set the table of weights."""
        self.idf = [table]

    def put_cursor(self, stream: str, cursor: Cursor) -> None:
        """Set how far a stream of the source was read."""
        self.cursors[stream] = cursor

    def put_change(self, change: Happened) -> None:
        """Add a change for the sink."""
        self.changes.append(change)

    def move_sink(self, position: SinkPosition) -> None:
        """Set which changes are kept for the sink."""
        self.sink = [SetSinkPosition(position)]
        while self.changes and self.changes[0].number <= position.sent_number:
            self.changes.popleft()

    def put_windows(self, claims: Mapping[str, WindowClaim]) -> None:
        """Set the windows in use."""
        self.windows = [SetWindows(claims)]

    def put_outcome(self, outcome: Outcome) -> None:
        """Add the outcome of a request."""
        self.outcomes.append(outcome)

    def forget_outcomes(self, offset: int, place: int) -> None:
        """Delete outcomes up to one, which may be new."""
        while self.outcomes and self.outcomes[0][:2] <= (offset, place):
            self.outcomes.popleft()
        self.forgotten = [DeleteOutcomes(offset, place)]

    def mutations(self, position: SetLogPosition) -> list[Mutation]:
        """Return all changes up to a position in the log."""
        return [
            *map(DeleteObject, self.deletes),
            *map(PutObject, self.puts.values()),
            *self.idf,
            *starmap(SetSourceCursor, self.cursors.items()),
            *map(PutChange, self.changes),
            *self.sink,
            *self.windows,
            *map(PutOutcome, self.outcomes),
            *self.forgotten,
            position,
        ]

    def take(self) -> WriteBehind:
        """Return all changes, to be written, and have none."""
        taken = copy(self)
        vars(self).update(vars(WriteBehind()))
        return taken

    def put_back(self, taken: WriteBehind) -> None:
        """Have changes again, before those since then: they were not written. O(changes since then)."""
        later = self.take()
        vars(self).update(vars(taken))
        for object_id in later.deletes:
            self.delete(object_id)
        self.puts.update(later.puts)
        self.idf = later.idf or self.idf
        self.cursors.update(later.cursors)
        self.changes.extend(later.changes)
        for moved in later.sink:
            self.move_sink(moved.position)
        self.windows = later.windows or self.windows
        self.outcomes.extend(later.outcomes)
        for last in later.forgotten:
            self.forget_outcomes(last.offset, last.place)
