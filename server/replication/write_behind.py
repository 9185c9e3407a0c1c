"""The changes that the log has made and the store does not have yet. O(1) per change.

A store that is behind is no loss: after a restart, the node applies the log from the offset of its store.
So changes are written together, and what has come and gone meanwhile, an object or the outcome of a
request, is not written at all.

While the store cannot be written, it has at most: the live objects, an id of each object in the store,
the outcomes that are kept, and the changes that wait for the sink.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
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


class WriteBehind:
    """Changes since the last commit, each as the difference to the store."""

    def __init__(self) -> None:
        self._puts: dict[int, LiveObject] = {}
        self._deletes: list[int] = []
        self._outcomes: deque[Outcome] = deque()
        self._forgotten: list[DeleteOutcomes] = []
        self._idf: list[PutIdf] = []
        self._cursors: dict[str, Cursor] = {}
        self._changes: deque[Happened] = deque()
        """For the sink."""
        self._sink: list[SetSinkPosition] = []
        self._windows: list[SetWindows] = []

    def __len__(self) -> int:
        return len(self._puts) + len(self._deletes) + len(self._outcomes)

    def put(self, item: LiveObject) -> None:
        """Add a new object."""
        self._puts[item.object_id] = item

    def delete(self, object_id: int) -> None:
        """Delete an object, which may be new."""
        if self._puts.pop(object_id, None) is None:
            self._deletes.append(object_id)

    def put_idf(self, table: PutIdf) -> None:
        """Set the table of weights."""
        self._idf = [table]

    def put_cursor(self, stream: str, cursor: Cursor) -> None:
        """Set how far a stream of the source was read."""
        self._cursors[stream] = cursor

    def put_change(self, change: Happened) -> None:
        """Add a change for the sink."""
        self._changes.append(change)

    def move_sink(self, position: SinkPosition) -> None:
        """Set which changes are kept for the sink."""
        self._sink = [SetSinkPosition(position)]
        while self._changes and self._changes[0].number <= position.sent_number:
            self._changes.popleft()

    def put_windows(self, claims: Mapping[str, WindowClaim]) -> None:
        """Set the windows in use."""
        self._windows = [SetWindows(claims)]

    def put_outcome(self, outcome: Outcome) -> None:
        """Add the outcome of a request."""
        self._outcomes.append(outcome)

    def forget_outcomes(self, last: Outcome) -> None:
        """Delete outcomes up to one, which may be new."""
        while self._outcomes and self._outcomes[0] <= last:
            self._outcomes.popleft()
        self._forgotten = [DeleteOutcomes(last.offset, last.place)]

    def mutations(self, position: SetLogPosition) -> list[Mutation]:
        """Return all changes up to a position in the log."""
        return [
            *map(DeleteObject, self._deletes),
            *map(PutObject, self._puts.values()),
            *self._idf,
            *starmap(SetSourceCursor, self._cursors.items()),
            *map(PutChange, self._changes),
            *self._sink,
            *self._windows,
            *map(PutOutcome, self._outcomes),
            *self._forgotten,
            position,
        ]

    def clear(self) -> None:
        """Forget the changes: they are in the store."""
        self._puts.clear()
        self._deletes.clear()
        self._outcomes.clear()
        self._idf.clear()
        self._cursors.clear()
        self._changes.clear()
        self._sink.clear()
        self._windows.clear()
        self._forgotten.clear()
