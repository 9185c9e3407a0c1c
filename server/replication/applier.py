"""Applies entries of the log, in order. Every node decides the same, whenever it reads them.

Whatever depends on other entries is decided here: keys and their owners, quotas, whether an object is
alive, ids. Only the entries so far, and their times, decide; neither the clock of the node nor its load.

Cost: that of publishing the objects of an entry, and some microseconds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import astuple
from typing import NamedTuple

from cluster.entries import (
    LATE_MS,
    NO_CURSOR,
    RULES,
    SECOND_RULES,
    Advance,
    Caller,
    Cursor,
    Entry,
    Founding,
    Publish,
    Retract,
    SetIdf,
    SetRules,
    SetSink,
    SinkSent,
    TakeIn,
    Tick,
    UseWindows,
    WeightsDone,
)
from cluster.log import LogError
from identity.principal import Principal, Role
from nearcast.errors import Reason, RefusedError
from safe_region.earth.frame import Frame
from safe_region.scoring.idf import IdfTable
from server import command as c
from server.commands.planned import Planned
from server.commands.publication_planner import PublicationRules, require_sink_room
from server.commands.retraction import retracted_ids
from server.errors import weights_pending
from server.limits import Limits
from server.replication.coordinator import ReplicatedCoordinator
from server.replication.log_objects import LogKeys, LogObjects
from server.replication.outcomes import Outcomes, Reply, decoded, encoded
from server.replication.write_behind import WriteBehind
from server.store.mutations import LogPosition, Mutation, Outcome, SetLogPosition
from server.store.rows import object_values


class _LogState(NamedTuple):
    """The state by the time of the log, for `PublicationRules`."""

    coordinator: ReplicatedCoordinator

    @property
    def limits(self) -> Limits:
        return self.coordinator.limits

    @property
    def frame(self) -> Frame:
        return self.coordinator.frame

    @property
    def objects(self) -> LogObjects:
        return self.coordinator.log_objects

    @property
    def keys(self) -> LogKeys:
        return self.coordinator.log_keys

    @property
    def now_ms(self) -> int:
        return self.coordinator.log_ms

    def take_object_id(self) -> int:
        return self.coordinator.take_object_id()


class Applier:
    """Applies entries to a coordinator.

    Parameters
    ----------
    coordinator
        Recovered from a store.
    log_id
        The id of the log, hexadecimal.
    position
        How far the store has applied it.
    on_reply
        Called with the id and the reply of each request.
    """

    def __init__(
        self,
        coordinator: ReplicatedCoordinator,
        log_id: str,
        position: LogPosition,
        on_reply: Callable[[bytes, Reply], None],
    ) -> None:
        self._coordinator = coordinator
        self._log_id = log_id
        self._on_reply = on_reply
        self._outcomes = Outcomes(position.outcomes)
        self._planned = Planned()
        self._state = _LogState(coordinator)
        self._rules = PublicationRules(self._state, self._planned)
        self.offset = position.offset
        """The offset of the last message that was applied."""
        self.stored_offset = position.offset
        """The offset up to which the store has the changes of the log."""
        self._taken, self._taken_offset = WriteBehind(), position.offset
        """The changes that are being written, and the offset up to which they are."""
        self.rules = position.rules
        """The rules in force."""
        self.is_whole = True
        """Whether no message was applied in part."""

    @property
    def time_ms(self) -> int:
        """The time of the log."""
        return self._coordinator.log_ms

    def apply(
        self, offset: int, entries: Sequence[Entry], first: int = 0, *, is_last: bool = True
    ) -> None:
        """Apply entries of the next message, which may come in several calls.

        Parameters
        ----------
        offset
            The offset of the message.
        entries
            Some of its entries.
        first
            The place of the first of them in the message.
        is_last
            Whether no others follow.

        Raises
        ------
        LogError
            If this version does not know the rules of the log.
        """
        self.is_whole = False
        for place, entry in enumerate(entries, first):
            self._pass_time(entry.time_ms)
            self._apply(entry, offset, place)
        self.is_whole = is_last
        if is_last:
            self.offset = offset

    def _pass_time(self, time_ms: int) -> None:
        self._coordinator.advance_log(time_ms)
        forgotten = self._outcomes.forget(self._coordinator.log_ms)
        if forgotten is not None:
            self._coordinator.unwritten.forget_outcomes(forgotten.offset, forgotten.place)

    def _apply(self, entry: Entry, offset: int, place: int) -> None:
        if isinstance(entry.change, Founding | SetRules):
            require_rules(entry.change.rules)
            self.rules = max(self.rules, entry.change.rules)
            return
        if isinstance(entry.change, WeightsDone):
            self._coordinator.weights_done(entry.change.generation)
            return
        if isinstance(entry.change, Tick):
            return
        known = self._outcomes.get(entry.request_id)
        if known is None:
            reply = self._decide(entry)
            log_ms = self._coordinator.log_ms
            outcome = Outcome(offset, place, entry.request_id, log_ms, encoded(reply))
            self._outcomes.put(outcome)
            self._coordinator.unwritten.put_outcome(outcome)
        else:
            reply = decoded(known.reply)
        self._on_reply(entry.request_id, reply)

    def _decide(self, entry: Entry) -> Reply:
        try:
            self._require_timely(entry.time_ms)
            match entry.change:
                case Publish() as publish:
                    return self._publish(publish)
                case Retract() as retract:
                    self._retract(retract)
                case TakeIn() as taken:
                    return self._take_in(taken)
                case SetSink(is_on):
                    self._coordinator.sink.switch(is_on=is_on)
                case SinkSent(number):
                    self._coordinator.sink.sent(number)
                case UseWindows(node, windows, must):
                    windows_of_all, log_ms = self._coordinator.log_windows, self._coordinator.log_ms
                    windows_of_all.claim(node, windows, log_ms, must=must)
                case Advance(time_ms):
                    return self._advance(time_ms)
                case SetIdf(table):
                    return self._set_idf(table)
        except RefusedError as error:
            return error.with_traceback(None)
        return None

    def _require_timely(self, time_ms: int) -> None:
        """Refuse a request that was on its way for too long. One without a time comes at any time."""
        late_ms = self.time_ms - time_ms if time_ms else 0
        if late_ms > LATE_MS and self.rules >= SECOND_RULES:
            raise RefusedError(
                Reason.INTERNAL, "log", f"reached {late_ms} ms late", f"reached at most {LATE_MS} ms late"
            )

    def _publish(self, change: Publish) -> list[int]:
        self._require_sink()
        self._planned.clear()
        publication = self._rules.plan(change.objects, _principal(change.caller)).publication
        assert publication is not None  # noqa: S101 - for the type checker
        replaced = [object_id for object_id in publication.replaced if object_id]
        self._coordinator.publish_logged(list(publication.created), replaced)
        return publication.ids

    def _retract(self, change: Retract) -> None:
        command = c.Retract(change.ids, _principal(change.caller), change.keys)
        self._coordinator.publish_logged([], [], retracted_ids(self._state, command))

    def _take_in(self, change: TakeIn) -> bool:
        """Take in rows of the source; return whether they have an effect."""
        coordinator, before = self._coordinator, change.before
        if coordinator.source_cursors.get(change.stream, NO_CURSOR) != before:
            return False
        self._require_sink()
        created, gone = self._rules.taken_in(change.objects, change.gone, coordinator.log_ms)
        coordinator.publish_logged(created, [], gone)
        coordinator.move_source(change.stream, Cursor(change.offset, before.entry_count + 1))
        return True

    def _require_sink(self) -> None:
        """Refuse new objects while too many changes wait for the sink."""
        require_sink_room(self._coordinator.sink.waiting_count, self._coordinator.limits)

    def _set_idf(self, table: IdfTable) -> int:
        coordinator = self._coordinator
        if self.rules >= SECOND_RULES and coordinator.weights_pending:
            raise weights_pending(coordinator.matching.generation)
        return coordinator.set_idf_logged(table)

    def _advance(self, time_ms: int) -> int:
        now_ms = self._coordinator.log_ms
        if time_ms < now_ms:
            limit = f"at least {now_ms}, the current time"
            raise RefusedError(Reason.TIME_BACKWARDS, "time_ms", time_ms, limit)
        self._pass_time(time_ms)
        return time_ms

    # -- the store, and tests --------------------------------------------------------------------

    def take_unwritten(self) -> list[Mutation]:
        """Take the changes that the store does not have; empty between two parts of a message.

        `written` or `put_back_unwritten` follows.
        """
        if not self.is_whole or not self.offset:
            return []
        self._taken, self._taken_offset = self._coordinator.unwritten.take(), self.offset
        return self._taken.mutations(self._position())

    def _position(self) -> SetLogPosition:
        coordinator = self._coordinator
        next_id = coordinator.latest_object_id + 1
        pending = coordinator.weights_pending
        return SetLogPosition(self._log_id, self.offset, coordinator.log_ms, next_id, self.rules, pending)

    def written(self) -> None:
        """Record that the changes that were taken are in the store."""
        self._taken = WriteBehind()
        self.stored_offset = self._taken_offset

    def put_back_unwritten(self) -> None:
        """Record that the changes that were taken are not in the store."""
        self._coordinator.unwritten.put_back(self._taken)
        self._taken = WriteBehind()

    def digest(self) -> str:
        """Return a digest of the state that all nodes share, hexadecimal. O(objects log objects).

        It covers every live object, the outcomes, the cursors of the source, the numbers of the sink, the
        windows in use, the generation of the weights, the next id, the time and the offset.
        """
        found = hashlib.sha256()
        for item in self._coordinator.log_objects.all():
            point = item.point.x_m.hex(), item.point.y_m.hex()
            found.update(ascii((object_values(item), point)).encode())
        for outcome in self._outcomes.all():
            found.update(ascii(tuple(outcome)).encode())
        found.update(ascii(sorted(self._coordinator.source_cursors.items())).encode())
        found.update(ascii(self._coordinator.sink.position).encode())
        found.update(ascii(sorted(self._coordinator.log_windows.claims.items())).encode())
        found.update(ascii((self._coordinator.matching.generation, astuple(self._position()))).encode())
        return found.hexdigest()


def require_rules(rules: int) -> None:
    """Verify that this version knows the rules of a log.

    Raises
    ------
    LogError
        If it does not.
    """
    if rules > RULES:
        raise LogError(
            f"the log has the rules {rules}, this version knows those up to {RULES}: use a newer version"
        )


def _principal(caller: Caller) -> Principal:
    return Principal(caller.id, frozenset(map(Role, caller.roles)), caller.tenant)
