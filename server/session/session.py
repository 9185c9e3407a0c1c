"""One device's protocol state.

    state       attach          detach      park        push
    DETACHED    ATTACHED        DETACHED    PARKED      retained for a resume
    ATTACHED    ATTACHED (1)    DETACHED    refused     retained and queued
    PARKED      ATTACHED (2)    PARKED      PARKED      refused

(1) a takeover by the same instance; another instance is refused. (2) with snapshots.

Versions: every delta gets the next one. Those in (`retained_from`, `version`] are kept, so a device that
has applied any version in that range can be given the difference. When the outbox of a slow device
overflows, its queued deltas coalesce: they are replaced by one marker, in the place of the first, which
becomes a snapshot of every subscription when it is its turn. Nothing is lost, only the steps between.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import Enum

from server.errors import Reason, RefusalError
from server.limits import Limits
from server.model import Cause, Delta
from server.session.connection import Connection, Queued
from server.session.events import Detached, Event, SnapshotDue, VersionedDelta


class State(Enum):
    """Where a session stands."""

    DETACHED = "detached"
    ATTACHED = "attached"
    PARKED = "parked"


class Command(Enum):
    """What moves a session from state to state."""

    ATTACH = "attach"
    DETACH = "detach"
    PARK = "park"


TRANSITIONS: dict[tuple[State, Command], State] = {
    (State.DETACHED, Command.ATTACH): State.ATTACHED,
    (State.ATTACHED, Command.ATTACH): State.ATTACHED,
    (State.PARKED, Command.ATTACH): State.ATTACHED,
    (State.DETACHED, Command.DETACH): State.DETACHED,
    (State.ATTACHED, Command.DETACH): State.DETACHED,
    (State.PARKED, Command.DETACH): State.PARKED,
    (State.DETACHED, Command.PARK): State.PARKED,
    (State.PARKED, Command.PARK): State.PARKED,
}


class Session:
    """A device's conversation, across the streams that carry it.

    Parameters
    ----------
    device_id
        Whose it is.
    limits
        How much is kept for slow and for absent devices.
    parked
        Whether it was brought back from the store rather than begun by a hello.
    """

    def __init__(self, device_id: str, limits: Limits, *, parked: bool = False) -> None:
        self.device_id = device_id
        self.state = State.PARKED if parked else State.DETACHED
        self.handles: dict[int, int] = {}  # subscription id -> the engine's handle
        self.version = 0
        self.report_sequence = 0
        self.connection: Connection | None = None
        self.coalesced_count = 0
        self.heard_ms = 0
        """When the device last said something, in the time of its lease."""
        self.is_leased = False
        """Whether `Leases` looks after it."""
        self._limits = limits
        self._nonce = b""
        self._retained: deque[VersionedDelta] = deque()
        self._retained_from = 0
        self._unsent: deque[Queued] = deque()
        self._snapshot_due = False

    def attach(self, connection: Connection, nonce: bytes, version: int) -> bool:
        """Begin or resume the conversation on a stream.

        Returns
        -------
        bool
            Whether the differences since `version` are at hand; if so `resume` sends them, if not the
            caller sends snapshots.

        Raises
        ------
        RefusalError
            DEVICE_IN_USE if another instance is attached.
        """
        self.require_instance(nonce)
        if self.connection is not None:
            taken_over = RefusalError(Reason.SUPERSEDED, "stream", "older", "the latest of its instance")
            self.say(Detached(taken_over))
            self._leave()
        covered = self.state is not State.PARKED and self._retained_from <= version <= self.version
        self._move(Command.ATTACH)
        if nonce != self._nonce:
            self.report_sequence = 0
        self._nonce = nonce
        self.connection = connection
        connection.devices[self.device_id] = self
        if not covered:
            self.version = max(self.version, version)
            self._forget_retained()
        return covered

    def require_instance(self, nonce: bytes) -> None:
        """Raise RefusalError (DEVICE_IN_USE) if another instance is attached."""
        if self.state is State.ATTACHED and nonce != self._nonce:
            raise RefusalError(
                Reason.DEVICE_IN_USE,
                "hello.instance_nonce",
                nonce.hex(),
                "that of the attached instance, or sent when that one is gone",
            )

    def resume(self, version: int) -> None:
        """Queue the retained deltas after `version`."""
        for delta in list(self._retained):
            if delta.version > version and not self._snapshot_due:
                self._queue(delta)

    def detach(self) -> None:
        """Stop talking; keep what a resume needs."""
        self._leave()
        self._move(Command.DETACH)

    def park(self) -> None:
        """Give up on differences: the next attach gets snapshots."""
        self._move(Command.PARK)
        self._forget_retained()

    def push(self, subscription_id: int, delta: Delta) -> bool:
        """Give a delta the next version, keep it, and queue it if attached.

        Returns
        -------
        bool
            False if the device is away and has missed more than is kept: it should be parked.
        """
        if self._snapshot_due:
            return True  # the snapshot will tell
        self.version += 1
        versioned = VersionedDelta(self.version, subscription_id, self.report_sequence, delta)
        self._retained.append(versioned)
        if len(self._retained) > self._limits.retained_max:
            if self.state is not State.ATTACHED:
                return False
            self._retained_from = self._retained.popleft().version
        if self.state is State.ATTACHED:
            self._queue(versioned)
        return True

    def say(self, event: Event) -> Queued | None:
        """Queue an event that has no version. Lost if nobody is attached."""
        if self.connection is None:
            return None
        return self.connection.put(self, self.device_id, event)

    def ack(self, version: int) -> None:
        """Forget retained deltas that the device has applied."""
        while self._retained and self._retained[0].version <= version:
            self._retained_from = self._retained.popleft().version

    def sent(self, item: Queued) -> None:
        """Note that a queued event of this session has been taken for sending."""
        if self._unsent and self._unsent[0] is item:
            self._unsent.popleft()

    def snapshots(self, snapshot: Callable[[int, Cause], Delta]) -> list[VersionedDelta]:
        """Turn the coalescing marker into the latest state of every subscription."""
        self._snapshot_due = False
        found = []
        for subscription_id, handle in self.handles.items():
            self.version += 1
            delta = snapshot(handle, Cause.RESUMED)
            found.append(VersionedDelta(self.version, subscription_id, self.report_sequence, delta))
        self._forget_retained()
        return found

    def _queue(self, delta: VersionedDelta) -> None:
        item = self.say(delta)
        if item is None:
            return
        self._unsent.append(item)
        if len(self._unsent) > self._limits.outbox_max:
            self._coalesce()

    def _coalesce(self) -> None:
        first = self._unsent.popleft()
        first.event = SnapshotDue()
        for item in self._unsent:
            item.event = None
        self.coalesced_count += len(self._unsent) + 1
        self._unsent.clear()
        self._snapshot_due = True
        self.version += 1
        self._forget_retained()

    def _forget_retained(self) -> None:
        self._retained.clear()
        self._retained_from = self.version

    def _leave(self) -> None:
        if self.connection is not None:
            self.connection.devices.pop(self.device_id, None)
        self.connection = None
        self._unsent.clear()
        self._snapshot_due = False

    def _move(self, command: Command) -> None:
        try:
            self.state = TRANSITIONS[self.state, command]
        except KeyError:
            raise ValueError(f"a session that is {self.state.value} cannot {command.value}") from None
