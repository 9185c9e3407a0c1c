"""One device's protocol state.

Versions: every delta gets the next one. Deltas that the device has not acknowledged are kept, within
bounds, so that the instance that was attached last can get the difference; any other instance gets
snapshots. So does an instance whose version is of another epoch: a device that was restored from a backup
may have applied the same versions in an earlier life of the server. When the outbox of a slow device
overflows, its queued deltas coalesce: one marker takes the place of the first, and becomes a snapshot of
every subscription when its turn comes. Only intermediate states are lost. The ends of subscriptions that
wait behind the marker are sent before the snapshots.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from nearcast.errors import Reason, RefusedError
from server.counters import Counters, ParkReason
from server.limits import Limits
from server.model import Cause, Delta
from server.session.coalescer import Coalescer
from server.session.events import Detached, Event, Unsubscribed, VersionedDelta
from server.session.last_place import NOWHERE
from server.session.outbox import Queued, SessionOutbox
from server.session.replay_buffer import ReplayBuffer
from server.session.states import TRANSITIONS, Command, State

_NO_EPOCH = 0
_EPOCH_BITS = 63
_LONG_AGO_MS = -(2**62)
_chance = random.Random()
"""The source of epochs. The system seeds it once: drawing each epoch from the system takes 20 us."""


class Session:
    """A device's conversation, across the streams that carry it.

    Parameters
    ----------
    device_id
        The id of the device.
    limits
        How much is kept for slow and for disconnected devices.
    counters
        Count the fates of deltas, and devices by their states.
    parked
        Whether the session was restored from the store rather than started by a hello.
    """

    __slots__ = (
        "_coalescer",
        "_counters",
        "_limits",
        "_nonce",
        "_replay",
        "device_id",
        "epoch",
        "handles",
        "is_leased",
        "last_place",
        "last_seen_ms",
        "outbox",
        "report_sequence",
        "state",
        "tenure_ms",
        "took_over_ms",
        "version",
    )

    def __init__(
        self, device_id: str, limits: Limits, counters: Counters | None = None, *, parked: bool = False
    ) -> None:
        self.device_id = device_id
        self.state = State.PARKED if parked else State.DETACHED
        self.handles: dict[int, int] = {}  # subscription id -> the engine's handle
        self.version = 0
        self.epoch = _NO_EPOCH
        """The sequence of the versions: a new epoch starts whenever the device could not resume."""
        self.report_sequence = 0
        self.outbox: Outbox | None = None
        self.last_place = NOWHERE
        """The position that the device sent last, and when, in the time of leases (`last_place.packed`);
        NOWHERE if it is parked, or was not attached yet."""
        self.last_seen_ms = 0
        """When the device last sent a message, in the time of its lease."""
        self.is_leased = False
        """Whether `Leases` has an entry for it."""
        self.took_over_ms = _LONG_AGO_MS
        """When the attached instance took the place of another one, in the time of leases."""
        self.tenure_ms = 0
        """How long after that no other instance may replace it."""
        self._limits = limits
        self._counters = counters or Counters()
        self._counters.devices[self.state] += 1
        self._nonce = b""
        self._replay: ReplayBuffer | None = None  # if there is any
        self._coalescer: Coalescer | None = None  # if there is any

    @property
    def is_attached(self) -> bool:
        """Whether a stream carries the device."""
        return self.outbox is not None

    @property
    def was_attached(self) -> bool:
        """Whether a stream has carried the device since the server started."""
        return self.epoch != _NO_EPOCH

    @property
    def kept_count(self) -> int:
        """The number of deltas kept because the device has not acknowledged them."""
        return 0 if self._replay is None else len(self._replay)

    @property
    def waiting_count(self) -> int:
        """The number of deltas and ends of subscriptions in its outbox; coalesced deltas count as one."""
        return 0 if self._coalescer is None else len(self._coalescer)

    def attach(
        self, outbox: Outbox, nonce: bytes, version: int, epoch: int, now_ms: int = _LONG_AGO_MS
    ) -> bool:
        """Start or resume the conversation on a stream, in place of the present stream.

        `require_instance` decides before whether an instance may take the place of another. `now_ms` is
        in the time of leases.

        Returns
        -------
        bool
            Whether the deltas since `version` of `epoch` are kept. If so, `resume` sends them; if not,
            the caller sends snapshots.
        """
        if nonce != self._nonce:
            self._begin_tenure(now_ms)
        if self.outbox is not None:
            self.enqueue(Detached(_superseded(is_same_instance=nonce == self._nonce)))
            self._leave()
        floor = self.version if self._replay is None else self._replay.floor
        is_known = self.knows(nonce, epoch)
        covered = self.state is not State.PARKED and is_known and floor <= version <= self.version
        self.move(Command.ATTACH)
        if nonce != self._nonce:
            self.report_sequence = 0
        self._nonce = nonce
        self.outbox = outbox
        outbox.devices[self.device_id] = self
        if covered:
            self.ack(version)
        else:
            self.version = max(self.version, version)
            self.epoch = 1 + _chance.getrandbits(_EPOCH_BITS)
            self._replay = None
        return covered

    def knows(self, nonce: bytes, epoch: int) -> bool:
        """Return whether this instance was attached last, and has deltas of this epoch."""
        return nonce == self._nonce and epoch == self.epoch != _NO_EPOCH

    def has_nonce(self, nonce: bytes) -> bool:
        """Return whether this is the instance that was attached last."""
        return nonce == self._nonce

    def _begin_tenure(self, now_ms: int) -> None:
        """Record whether an attached instance is replaced, and how long the new one is protected."""
        if not self.is_attached:
            self.took_over_ms, self.tenure_ms = _LONG_AGO_MS, 0
            return
        limits, before_ms = self._limits, self.tenure_ms
        is_quarrel = before_ms > 0 and now_ms < self.took_over_ms + 2 * before_ms
        longer_ms = min(2 * before_ms, limits.take_over_ms_max)
        self.took_over_ms, self.tenure_ms = now_ms, longer_ms if is_quarrel else limits.take_over_ms

    def resume(self, version: int) -> None:
        """Queue the retained deltas after `version`."""
        missed = list(self._replay.since(version)) if self._replay is not None else []
        self._counters.deltas_resent += len(missed)
        for delta in missed:
            self._queue(delta)

    def detach(self) -> None:
        """Detach from the stream; keep the data that a resume needs."""
        self._leave()
        self.move(Command.DETACH)

    def park(self, reason: ParkReason) -> None:
        """Park the session: its kept deltas are dropped, and the next attach gets snapshots."""
        self._counters.parked[reason] += self.state is not State.PARKED
        self.move(Command.PARK)
        self._replay = None
        self.last_place = NOWHERE

    def end(self) -> None:
        """Clear the device's data: references to the session may remain for a while (`Leases`)."""
        self._counters.devices[self.state] -= 1
        self.device_id, self._nonce, self._replay, self.last_place = "", b"", None, NOWHERE

    def push(self, subscription_id: int, delta: Delta) -> bool:
        """Give a delta the next version, keep it, and queue it if attached.

        Returns
        -------
        bool
            False if the device is disconnected and has missed more than is kept: it should be parked.
        """
        if self.state is State.PARKED:
            raise ValueError(f"a session that is {self.state.value} cannot accept a delta")
        if self.state is State.CATCHING_UP:
            self._leave_to_snapshot(subscription_id)
            return True
        if self._replay is None:
            self._replay = ReplayBuffer(self.version)
        replay = self._replay
        versioned = self._versioned(subscription_id, delta)
        replay.keep(versioned)
        if replay.is_beyond(self._limits) and self.state is State.DETACHED:
            return False
        while replay.is_beyond(self._limits):
            replay.forget_oldest()
        self._queue(versioned)
        return True

    def enqueue(self, event: Event) -> Queued[Session] | None:
        """Queue an event without a version. It is lost if the device is not attached."""
        if self.outbox is None:
            return None
        return self.outbox.put(self, self.device_id, event)

    def unsubscribed(self, subscription_id: int) -> None:
        """Queue the end of a subscription."""
        item = self.enqueue(Unsubscribed(subscription_id))
        if item is not None and item.event is not None:
            self._waiting().add_end(item)

    def ack(self, version: int) -> None:
        """Remove retained deltas that the device has applied."""
        if self._replay is not None:
            self._replay.forget_until(version)
            if not self._replay:
                self._replay = None

    def mark_sent(self, item: Queued[Session]) -> None:
        """Record that a queued event of this session has been taken for sending."""
        if self._coalescer is not None:
            self._coalescer.taken(item)
            self._tidy()

    def ended(self) -> list[Event]:
        """Take the ends of subscriptions that wait behind the coalescing marker.

        They are sent first: the snapshots may be of subscriptions that have started since under the same
        numbers.
        """
        outbox, coalescer = self.outbox, self._coalescer
        if outbox is None or coalescer is None:
            return []
        found = [outbox.take_early(item) for item in coalescer.take_ends()]
        self._tidy()
        return [event for event in found if event is not None]

    def snapshots(self, snapshot: Callable[[int, Cause], Delta]) -> list[VersionedDelta]:
        """Turn the coalescing marker into the latest state of every subscription, or of some of them.

        If more snapshots are to follow, the state remains CATCHING_UP, and the caller calls this again.
        """
        coalescer = self._waiting()
        coalescer.begin_snapshots(self.handles)
        found: list[VersionedDelta] = []
        size_bytes = 0
        while (subscription_id := coalescer.next_due()) is not None:
            handle = self.handles.get(subscription_id)
            if handle is not None:  # else it has ended since
                found.append(self._versioned(subscription_id, snapshot(handle, Cause.RESUMED)))
                size_bytes += found[-1].size_bytes
            if coalescer.may_pause and size_bytes >= self._limits.slice_bytes_max:
                return found
        self.move(Command.CATCH_UP)
        coalescer.caught_up()
        self._tidy()
        self._replay = None
        return found

    def _versioned(self, subscription_id: int, delta: Delta) -> VersionedDelta:
        self.version += 1
        size_bytes = delta.size_bytes
        return VersionedDelta(self.version, subscription_id, self.report_sequence, delta, size_bytes)

    def _queue(self, delta: VersionedDelta) -> None:
        if self.state is State.CATCHING_UP:  # during a resume
            self._leave_to_snapshot(delta.subscription_id)
            return
        item = self.enqueue(delta)
        if item is None or item.event is None:
            return
        coalescer = self._waiting()
        coalescer.add_delta(item, delta.size_bytes)
        if coalescer.is_beyond(self._limits):
            self.move(Command.OVERFLOW)
            self._counters.deltas_coalesced += coalescer.coalesce()
            # No device has the last of these versions: without the snapshot, no resume.
            self._replay = None

    def _leave_to_snapshot(self, subscription_id: int) -> None:
        """Coalesce a delta: a later snapshot includes it."""
        self._counters.deltas_queued += 1
        self._counters.deltas_coalesced += 1
        self._waiting().changed(subscription_id)

    def _waiting(self) -> Coalescer:
        if self._coalescer is None:
            self._coalescer = Coalescer()
        return self._coalescer

    def _tidy(self) -> None:
        if not self._coalescer:
            self._coalescer = None

    def _leave(self) -> None:
        """Leave the stream; deltas that wait in it are kept already, or a snapshot is due."""
        outbox = self.outbox
        if outbox is None:
            return
        if self.state is State.CATCHING_UP:
            self.version += 1  # no device has this version: without the other snapshots, no resume
        outbox.devices.pop(self.device_id, None)
        if self._coalescer is not None and not outbox.closed:  # closing counts the dropped deltas
            self._counters.deltas_dropped += self._coalescer.drop()
        self.outbox = None
        self._coalescer = None

    def move(self, command: Command) -> None:
        """Change the state as the table says; ValueError if it has no entry."""
        try:
            state = TRANSITIONS[self.state, command]
        except KeyError:
            raise ValueError(f"a session that is {self.state.value} cannot {command.value}") from None
        self._counters.devices[self.state] -= 1
        self._counters.devices[state] += 1
        self.state = state


def _superseded(*, is_same_instance: bool) -> RefusedError:
    """Return the reason for the end of a conversation that another one replaces."""
    if is_same_instance:
        return RefusedError(Reason.SUPERSEDED, "stream", "older", "the latest of its instance")
    limit = "that of the attached instance: another instance of the device took over"
    return RefusedError(Reason.SUPERSEDED, "instance", "an earlier one", limit)


Outbox = SessionOutbox[Session]
"""The outbox of one stream."""
