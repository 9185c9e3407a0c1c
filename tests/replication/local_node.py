"""A node without sockets: a store in a file, a coordinator, and what applies the log to it."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from engine import EngineOptions
from safe_region.earth.frame import Area, Frame
from server.clock import Clock
from server.core.matching_service import SearchRequest
from server.limits import Limits
from server.replication.applier import Applier
from server.replication.coordinator import ReplicatedCoordinator
from server.store import SqliteStore

FRAME = Frame.of(Area(14.0, 35.0, 15.0, 36.0))
LIMITS = Limits(
    publisher_objects_max=8, publisher_bytes_max=40, tenant_objects_max=14, sink_max=12, windows_max=3
)
LOG_ID = "0123abcd"
_AHEAD_MS = 2_000
_SHARED = (
    "SELECT * FROM objects ORDER BY object_id",
    "SELECT * FROM outcomes ORDER BY number",
    "SELECT * FROM meta WHERE name GLOB 'log_*' OR name GLOB '*_object_id' ORDER BY name",
    "SELECT * FROM meta WHERE name = 'sink_number'",
    "SELECT * FROM sink ORDER BY number",
)


class LocalNode:
    """A node, which can be killed and started again.

    Parameters
    ----------
    path
        Its store.
    specs
        Those of subscriptions of devices that are not there: results are not kept, but windows are.
    snapshot
        That of another node, of which a new store takes the content.
    """

    def __init__(self, path, specs=(), snapshot=None) -> None:
        self._path, self._specs = path, specs
        if snapshot is not None:
            with closing(SqliteStore(path, FRAME)) as store:
                store.adopt(snapshot)
        self.replies = {}
        """By request: all replies of it, in order."""
        self._start()

    def _start(self) -> None:
        self._taken = []
        self._store = SqliteStore(self._path, FRAME)
        self.coordinator = ReplicatedCoordinator(
            FRAME, LIMITS, EngineOptions(maxdist_m=FRAME.maxdist_m), clock=Clock(lambda: 0, lambda: 0)
        )
        found = self._store.recover()
        self.coordinator.recover(found)
        for spec in self._specs:
            self.coordinator.matching.subscribe(spec)
        self.applier = Applier(self.coordinator, LOG_ID, found.log, self._note)

    def _note(self, request_id, reply) -> None:
        text = repr(reply) if isinstance(reply, Exception) else reply
        self.replies.setdefault(request_id, []).append(text)

    @property
    def now_ms(self) -> int:
        return self.coordinator.now_ms

    def pass_time(self, now_ms: int) -> None:
        """Let its own clock go on."""
        self.coordinator.advance(max(self.now_ms, now_ms))

    def write(self) -> None:
        """Write to the store what it does not have."""
        self.end_write()
        self.begin_write()
        self.end_write()

    def begin_write(self) -> None:
        """Take what the store does not have, unless something is taken; `end_write` or `kill` follows."""
        if not self._taken:
            self._taken = self.applier.take_unwritten()

    def end_write(self) -> None:
        """Write what was taken, if anything was."""
        if self._taken:
            self._store.commit(self._taken, self.now_ms, self.now_ms + _AHEAD_MS)
            self.applier.written()
        self._taken = []

    def fail_to_write(self) -> None:
        """Fail to write what was taken, if anything was."""
        if self._taken:
            self.applier.put_back_unwritten()
        self._taken = []

    def snapshot(self, path):
        """Write a snapshot into a new file; return its name."""
        self.write()
        self._store.write_snapshot(path)
        return path

    def adopt(self, snapshot) -> None:
        """Start again with the content of a snapshot of another node."""
        self._store.adopt(snapshot)
        self.kill()

    def kill(self) -> None:
        """End without writing, and start again with what the store has."""
        self._store.close()
        self._start()

    def search(self, spec, lon, lat):
        (found,) = self.coordinator.matching.search([SearchRequest(spec, lon, lat)])
        return [(one.item, one.length_m) for one in found]

    def stored(self):
        """Return what the nodes' stores have in common, row by row."""
        database = sqlite3.connect(self._path)
        try:
            return [database.execute(query).fetchall() for query in _SHARED]
        finally:
            database.close()

    def waiting(self):
        """Return the changes that wait for the sink: number, action, object; and write the store."""
        self.write()
        after = self.coordinator.sink.position.sent_number
        return [(one.number, one.action, one.object_id) for one in self._store.unsent(1_000, after)]

    def check(self) -> None:
        self.coordinator.check()

    def close(self) -> None:
        self._store.close()
