"""Delivery: the device of each change, and the events that wait for each device.

Operations: O(1) per delta or event; O(subscriptions of the device) to park one or to coalesce.
"""

from __future__ import annotations

from collections.abc import Sequence
from sys import intern

from server.core.matching_service import MatchingService
from server.counters import Counters, ParkReason
from server.limits import Limits
from server.model import Delta
from server.session import Event, Outbox, Session, State
from server.session.events import SnapshotDue
from server.session.session_table import Sessions


class DeltaRouter:
    """The sessions of all devices, and the owner of each subscription.

    Parameters
    ----------
    matching
        The source of snapshots; it also parks subscriptions.
    limits
        How much is kept for slow and for disconnected devices.
    sessions_type
        The table of sessions.
    """

    def __init__(
        self,
        matching: MatchingService,
        limits: Limits,
        sessions_type: type[Sessions] = Sessions,
    ) -> None:
        self.counters = Counters()
        self.sessions = sessions_type(self._revive)
        self._matching = matching
        self._limits = limits
        self._owners: dict[int, tuple[Session, int]] = {}  # handle -> session, subscription id
        self._names: dict[int, str] = {}  # handle -> name, for subscriptions with a name

    @property
    def subscription_count(self) -> int:
        """The number of subscriptions."""
        return self._matching.engine.subscription_count

    def devices(self) -> dict[State, int]:
        """Return the number of devices in each state."""
        found = {state: self.counters.devices[state] for state in State}
        found[State.PARKED] += len(self.sessions) - len(self.sessions.made())
        return found

    def session_of(self, device_id: str) -> Session:
        """Return the session of a device; create one if there is none."""
        session = self.sessions.get(device_id)
        if session is None:
            session = Session(device_id, self._limits, self.counters)
            self.sessions[device_id] = session
        return session

    def _revive(self, device_id: str, handles: dict[int, int]) -> Session:
        """Create the session of a device that was restored from the store."""
        session = Session(device_id, self._limits, self.counters, parked=True)
        for subscription_id, handle in handles.items():
            self.bind(session, subscription_id, handle)
        return session

    def bind(self, session: Session, subscription_id: int, handle: int) -> None:
        """Record that changes of a subscription are for this device."""
        session.handles[subscription_id] = handle
        self._owners[handle] = (session, subscription_id)

    def name(self, handle: int, name: str) -> None:
        """Give a subscription a name; an empty one removes the name."""
        if name:
            self._names[handle] = intern(name)
        else:
            self._names.pop(handle, None)

    def name_of(self, handle: int) -> str:
        """Return the name of a subscription; empty if it has none."""
        return self._names.get(handle, "")

    def named(self, session: Session, name: str) -> int | None:
        """Return the number of the device's subscription with a name. O(subscriptions of the device)."""
        found = (number for number, one in session.handles.items() if self._names.get(one) == name)
        return next(found, None)

    def unbind(self, session: Session, subscription_id: int) -> int:
        """Record that a subscription has ended; return its handle."""
        handle = session.handles.pop(subscription_id)
        del self._owners[handle]
        self._names.pop(handle, None)
        return handle

    def owner(self, handle: int) -> tuple[Session, int]:
        """Return the session that owns a subscription, and the subscription's number there."""
        return self._owners[handle]

    def forget_if_empty(self, session: Session) -> None:
        """Remove a session that has no subscriptions."""
        if not session.handles:
            del self.sessions[session.device_id]
            session.end()

    def route(self, deltas: Sequence[Delta]) -> list[Session]:
        """Pass deltas to their sessions; return the sessions parked for having missed too many."""
        parked = []
        for delta in deltas:
            session, subscription_id = self._owners[delta.handle]
            if session.state is State.PARKED:
                continue  # parked just now, by another delta of the same change
            if not session.push(subscription_id, delta):
                self.park(session, ParkReason.AWAY)
                parked.append(session)
        return parked

    def park(self, session: Session, reason: ParkReason) -> None:
        """Park a device until its next hello."""
        session.park(reason)
        self._matching.park(session.handles.values())

    def take(self, outbox: Outbox, count_max: int) -> list[tuple[str, Event]]:
        """Pop the events to send next on a connection, oldest first; snapshots are made in slices."""
        taken: list[tuple[str, Event]] = []
        while len(outbox) and len(taken) < count_max:
            item = outbox.pop()
            event = item.event
            if event is None:
                continue
            if isinstance(event, SnapshotDue):
                if item.session is not None:
                    taken += [(item.device_id, end) for end in item.session.ended()]
                    found = item.session.snapshots(self._matching.snapshot)
                    outbox.take_snapshots(item, len(found))
                    taken += [(item.device_id, snapshot) for snapshot in found]
                    if item.session.state is State.CATCHING_UP:
                        outbox.put_back(item)
                        break
                continue
            if item.session is not None:
                item.session.mark_sent(item)
            taken.append((item.device_id, event))
        return taken

    def check(self) -> None:
        """Verify the bookkeeping. For tests."""
        owned = {
            handle: (session, subscription_id)
            for session in self.sessions.made()
            for subscription_id, handle in session.handles.items()
        }
        if owned != self._owners:
            raise AssertionError("handles and sessions disagree")
        self._check_names()
        states = [session.state for session in self.sessions.made()]
        if any(self.counters.devices[state] != states.count(state) for state in State):
            raise AssertionError("devices are not counted by their states")
        for session in self.sessions.made():
            if (session.state in {State.IN_SYNC, State.CATCHING_UP}) != session.is_attached:
                raise AssertionError(f"session {session.device_id} has lost its connection")

    def _check_names(self) -> None:
        """Verify that each name belongs to a subscription, and is unique within its device."""
        count = 0
        for device_id in self.sessions:
            handles = (self.sessions.handles_of(device_id) or {}).values()
            names = [self._names[one] for one in handles if one in self._names]
            count += len(names)
            if "" in names or len(set(names)) < len(names):
                raise AssertionError(f"subscriptions of {device_id} share a name, or have an empty one")
        if count != len(self._names):
            raise AssertionError("names and subscriptions disagree")
