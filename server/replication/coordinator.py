"""The coordinator of a node: objects are decided by the time of the log, matched by the node's clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from cluster.entries import Cursor
from engine.engine import Part
from nearcast.errors import Reason, RefusedError
from safe_region.scoring.idf import IdfTable
from server import command as c
from server.core.coordinator import Coordinator
from server.core.evaluation_batch import EvaluationBatch
from server.core.object_table import RemovedObject
from server.model import Delta, LiveObject, Window
from server.replication.lag import LagNotice
from server.replication.last_seen import LastSeenTimes
from server.replication.log_objects import LogKeys, LogObjects
from server.replication.log_sink import LogSink
from server.replication.log_windows import LogWindows
from server.replication.slot_sessions import SlotSessions
from server.replication.write_behind import WriteBehind
from server.session import Detached, Outbox, RefusedCommand
from server.store.mutations import PutIdf, Recovered

_MOVING = (Reason.ANOTHER_SERVER, Reason.RECOVERING)


class ReplicatedCoordinator(Coordinator):
    """A coordinator whose objects come from a log. Its time is never before that of the log.

    Parameters
    ----------
    arguments, options
        Those of `Coordinator`.
    """

    sessions: SlotSessions
    sessions_type = SlotSessions

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401
        super().__init__(*arguments, **options)
        self.log_ms = 0
        """The time of the log: the greatest of all entries so far."""
        self.log_objects = LogObjects(self.matching.objects)
        self.log_keys = LogKeys(self.keys, self.log_objects.kept_keys)
        self.source_cursors: dict[str, Cursor] = {}
        """How far streams of the source were read."""
        self.unwritten = WriteBehind()
        self.sink = LogSink(self.unwritten)
        """The changes that wait for the sink."""
        self.log_windows = LogWindows(self.unwritten, self.limits.windows_max)
        """The windows that nodes use."""
        self.weights_pending = False
        """Whether some node may not be done with the last table of weights."""
        self._expired: list[tuple[int, int]] = []
        """Expiries and ids of what has expired by the log since its last time."""
        self.matching.on_expiry = self._expiring
        self.matching.publishes_late = True
        self.last_seen = LastSeenTimes(0)
        """When devices were last seen."""
        self.lag: LagNotice | None = None
        """Whether results lag behind the log; None before the node follows it."""

    def recover(self, found: Recovered) -> None:
        """Restore the objects of a store, first at the time of its log. Subscriptions come with slots."""
        self.log_ms = found.log.time_ms
        self.source_cursors = dict(found.log.source_cursors)
        self.sink.recover(found.log.sink)
        self.log_windows.recover(found.log.windows)
        self.weights_pending = found.log.weights_pending
        super().recover(replace(found, time_ms=self.log_ms, subscriptions=iter(())))
        self.advance(max(self.log_ms, found.time_ms))

    def advance_log(self, log_ms: int) -> None:
        """Advance the time of the log, if this is later; objects that expire by then are deleted."""
        if log_ms <= self.log_ms:
            return
        self.log_ms = log_ms
        self._expired = self.log_objects.expire(log_ms)
        for _, object_id in self._expired:
            self.unwritten.delete(object_id)
        self.advance(max(self.matching.now_ms, log_ms))
        self.sink.expire(self._expired, log_ms)

    def publish_logged(
        self, created: list[LiveObject], replaced: list[int], retracted: Sequence[int] = ()
    ) -> None:
        """Add accepted objects and remove others, in one change of each result.

        Objects that have expired are not matched.
        """
        now_ms, unwritten = self.matching.now_ms, self.unwritten
        for object_id in (*replaced, *retracted):
            unwritten.delete(object_id)
        for item in created:
            unwritten.put(item)
        self.sink.change(created, (*replaced, *retracted), self.log_ms)
        matched, gone = self._matched(replaced), self._matched(retracted)
        alive = [item for item in created if item.expiry_ms > now_ms]
        for item in created:
            if item.expiry_ms <= now_ms:
                self.log_objects.keep(item)
        if created or matched or gone:
            self.publish(alive, matched, self.latest_object_id + 1, gone)

    def move_source(self, stream: str, cursor: Cursor) -> None:
        """Set how far a stream of the source was read."""
        self.source_cursors[stream] = cursor
        self.unwritten.put_cursor(stream, cursor)

    def set_idf_logged(self, table: IdfTable) -> int:
        """Begin to bring a table of weights into force; return its generation.

        Results tell their generation, and get the new weights at each node in its own time. If this node
        is not done with the table before, which it may read late, that comes into force at once.
        """
        while self.reweigh():
            pass
        generation = self.matching.generation + 1
        self.matching.begin_weights(generation, table)
        self.unwritten.put_idf(PutIdf(generation, table))
        self.weights_pending = True
        return generation

    def weights_done(self, generation: int) -> None:
        """Record that all nodes have a table of weights in force."""
        if generation == self.matching.generation:
            self.weights_pending = False

    # -- what devices are notified of ------------------------------------------------------------

    @property
    def lag_offset(self) -> int:
        """How far the log is applied while the node lags behind it; else 0."""
        return 0 if self.lag is None else self.lag.look()

    def require_window(self, window: Window) -> None:
        """Refuse a further window if this node, or all nodes together, have too many."""
        self.log_windows.require(window)
        super().require_window(window)

    def require_writable(self) -> None:
        """Raise RefusedError if subscriptions cannot be stored now."""
        if self.lag is not None:
            self.lag.require_none()

    def evaluate(self, batch: EvaluationBatch, retrieved: list[Part] | None = None) -> None:
        """Evaluate a batch; see `Coordinator.evaluate`. Responses to pings follow."""
        if self.lag is not None:
            self.lag.look()
        super().evaluate(batch, retrieved)

    def _route(self, deltas: Sequence[Delta]) -> None:
        if deltas and self.lag is not None:
            self.lag.look()
        super()._route(deltas)

    def reject(
        self, outbox: Outbox, device_id: str, number: int, command: RefusedCommand, error: RefusedError
    ) -> None:
        """Notify a device that its command was refused.

        A device of a slot that moves is not notified, unless it has sent a hello: it is about to be
        detached, and its client then sends the command again.
        """
        if self.lag is not None:
            self.lag.look()
        if command is RefusedCommand.HELLO or error.reason not in _MOVING:
            super().reject(outbox, device_id, number, command, error)

    def hello(self, hello: c.Hello, batch: EvaluationBatch) -> None:
        """Attach a device; see `Coordinator.hello`."""
        super().hello(hello, batch)
        self._note_seen(hello.device_id)

    def _note_seen(self, device_id: str) -> None:
        """Record that a device is seen, by the time of the log; its slot has the records."""
        self.last_seen.note(device_id, self.log_ms)

    def drop_slot(self, slot: int, error: RefusedError) -> None:
        """Remove the devices of a slot; those that are attached get an error.

        O(subscriptions of the slot), some 10 us each.
        """
        self.last_seen.drop(slot)
        for device_id in self.sessions.of_slot(slot):
            session = self.sessions[device_id]
            if session.is_attached:
                session.enqueue(Detached(error))
            session.detach()
            self._forget(session)

    def _matched(self, ids: Sequence[int]) -> list[int]:
        """Remove kept objects; return the other ids."""
        matched = []
        for object_id in ids:
            if self.log_objects.is_kept(object_id):
                self.log_objects.remove(object_id)
            else:
                matched.append(object_id)
        return matched

    def _expiring(self, ids: list[int]) -> None:
        """Keep objects that expire by the clock of the node only; the others are deleted."""
        for item in self.matching.objects.ready(ids).values():
            if item.expiry_ms > self.log_ms:
                self.log_objects.keep(item)
            else:
                self.unwritten.delete(item.object_id)
                self._expired.append((item.expiry_ms, item.object_id))

    def _delete_expired(self, expired: Sequence[RemovedObject]) -> None:
        """Do nothing: an expired object stays in the store until the time of the log has passed."""
