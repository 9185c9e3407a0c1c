"""Devices as columns: the position that each one reported last, for as long as somebody watches.

Operations: a refresh costs a microsecond per device that has been attached since the start, in slices of
some milliseconds; all watchers share it, and it takes at most a twentieth of the time. Without watchers
there are no columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from identity.principal import tenant_of
from index.batches import Floats, Ints
from index.tables.growth import longer
from safe_region.earth.frame import Area
from server.core.coordinator import Coordinator
from server.measures import now_us
from server.session import Session, State
from server.session.last_place import NOWHERE, unpacked

STATES = tuple(State)
"""The states of devices, by their numbers in the columns."""

_NUMBER_OF = {state: number for number, state in enumerate(STATES)}
_IS_ATTACHED = np.array([state in (State.IN_SYNC, State.CATCHING_UP) for state in STATES])

_CHUNK = 1_000
"""Devices read at a time: a millisecond."""

_AGE_US_MIN = 50_000
"""Watchers share columns of this age at least."""

_PART = 20
"""A refresh comes no sooner than after this many times its own duration."""

_NOBODY = 0


class DeviceColumns:
    """The devices that have a position.

    Parameters
    ----------
    coordinator
        The source of the sessions.
    """

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._clear()
        self._next_number = 1

    def _clear(self) -> None:
        self._watcher_count = 0
        self._slot_of: dict[Session, int] = {}
        self._free: list[int] = []
        self._round = 0
        self._due_us = 0
        self.device_ids: list[str] = []
        self.end = 0
        """Every slot from here on is unused."""
        self.number: Ints = np.zeros(16, dtype=np.int64)
        """The number of the device in each slot, which no other device gets; 0 for an unused slot."""
        self.lon: Floats = np.zeros(16)
        self.lat: Floats = np.zeros(16)
        self.margin_m: Floats = np.zeros(16)
        self.placed_ms: Ints = np.zeros(16, dtype=np.int64)
        """The time of the position, in the time of leases."""
        self.state: npt.NDArray[np.int8] = np.zeros(16, dtype=np.int8)
        self._tenant: npt.NDArray[np.int32] = np.zeros(16, dtype=np.int32)
        self._tenants: dict[str, int] = {}
        self._read_in: Ints = np.zeros(16, dtype=np.int64)

    def begin(self) -> None:
        """Count a watcher; it calls `finish` later."""
        self._watcher_count += 1

    def finish(self) -> None:
        """Count a watcher that has ended; the columns go with the last one."""
        self._watcher_count -= 1
        if not self._watcher_count:
            self._clear()

    def refresh(self) -> Iterator[None]:
        """Read the sessions, a chunk at each step, unless that was done a moment ago."""
        if now_us() < self._due_us:
            return
        self._due_us, self._round = 2**62, self._round + 1
        spent_us = 0
        try:
            sessions = list(self._coordinator.sessions.made())
            for first in range(0, len(sessions), _CHUNK):
                began_us = now_us()
                self._read(sessions[first : first + _CHUNK])
                spent_us += now_us() - began_us
                yield
            self._release()
        finally:
            self._due_us = now_us() + max(_AGE_US_MIN, _PART * spent_us)

    def _read(self, sessions: Sequence[Session]) -> None:
        placed = [one for one in sessions if one.last_place != NOWHERE]
        if not placed:
            return
        slots = np.array([self._slot(one) for one in placed], dtype=np.int64)
        places = unpacked([one.last_place for one in placed])
        self.lon[slots], self.lat[slots] = places.lon, places.lat
        self.margin_m[slots], self.placed_ms[slots] = places.margin_m, places.received_ms
        self.state[slots] = [_NUMBER_OF[one.state] for one in placed]
        self._read_in[slots] = self._round

    def _slot(self, session: Session) -> int:
        """Return the slot of a device; allocate one if it has none."""
        slot = self._slot_of.get(session)
        if slot is not None:
            return slot
        if self._free:
            slot = self._free.pop()
            self.device_ids[slot] = session.device_id
        else:
            slot = self.end
            self.device_ids.append(session.device_id)
            self._reserve(slot + 1)
        self._slot_of[session] = slot
        tenant = tenant_of(session.device_id)
        self._tenant[slot] = self._tenants.setdefault(tenant, len(self._tenants))
        self.number[slot], self._next_number = self._next_number, self._next_number + 1
        return slot

    def _reserve(self, count: int) -> None:
        self.end = count
        self.number = longer(self.number, count)
        self.lon, self.lat = longer(self.lon, count), longer(self.lat, count)
        self.margin_m = longer(self.margin_m, count)
        self.placed_ms = longer(self.placed_ms, count)
        self.state = longer(self.state, count)
        self._tenant = longer(self._tenant, count)
        self._read_in = longer(self._read_in, count)

    def _release(self) -> None:
        """Free the slots of devices that are gone, or are parked."""
        is_gone = (self.number[: self.end] != _NOBODY) & (self._read_in[: self.end] != self._round)
        if not is_gone.any():
            return
        for session, slot in [pair for pair in self._slot_of.items() if is_gone[pair[1]]]:
            del self._slot_of[session]
            self.device_ids[slot] = ""
            self.number[slot] = _NOBODY
            self._free.append(slot)
        self.lon[: self.end][is_gone] = self.lat[: self.end][is_gone] = 0.0

    def of_tenant(self, tenant: str) -> Ints:
        """Return the slots of the devices of a tenant."""
        is_own = self._tenant[: self.end] == self._tenants.get(tenant, -1)
        slots: Ints = np.flatnonzero(is_own & (self.number[: self.end] != _NOBODY))
        return slots

    def within(self, slots: Ints, area: Area) -> Ints:
        """Return the slots whose positions lie in an area."""
        lon, lat = self.lon[slots], self.lat[slots]
        is_within = (lon >= area.lon_min) & (lon <= area.lon_max)
        is_within &= (lat >= area.lat_min) & (lat <= area.lat_max)
        return slots[is_within]

    def attached_count(self, slots: Ints) -> int:
        """Return how many of some devices are attached."""
        return int(_IS_ATTACHED[self.state[slots]].sum())

    def slot_of(self, device_id: str) -> int | None:
        """Return the slot of a device; None if it has no position."""
        session = self._coordinator.sessions.made_of(device_id)
        return None if session is None else self._slot_of.get(session)
