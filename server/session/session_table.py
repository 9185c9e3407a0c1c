"""The sessions of all devices. Those restored from the store are rows until they are accessed.

A `Session` takes 0.6 kB; a device that is parked and has not been seen since the start takes an entry in
a dictionary. A look-up costs O(1), or O(subscriptions of the device) when a row becomes a session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping, ValuesView

import numpy as np

from index.batches import Ints
from index.tables.growth import longer
from server.session import Session
from server.store.mutations import SubscriptionColumns

_COUNT_MAX = 1 << 16
"""A number above the subscriptions of any device."""


class Sessions(MutableMapping[str, Session]):
    """Sessions by device.

    Parameters
    ----------
    revive
        Creates a parked session of a device from its handles by subscription number.
    """

    def __init__(self, revive: Callable[[str, dict[int, int]], Session]) -> None:
        self._revive = revive
        self._made: dict[str, Session] = {}
        self._parked: dict[str, int] = {}  # first row * _COUNT_MAX + rows
        self._subscription_ids: Ints = np.zeros(16, dtype=np.int64)  # of each row
        self._handles: Ints = np.zeros(16, dtype=np.int64)
        self._end = 0

    def park(self, columns: SubscriptionColumns, handles: Ints) -> None:
        """Add subscriptions of devices that are not in the table; those of a device are adjacent."""
        if not self._parked:
            self._end = 0
        first, self._end = self._end, self._end + len(columns)
        self._subscription_ids = longer(self._subscription_ids, self._end)
        self._handles = longer(self._handles, self._end)
        self._subscription_ids[first : self._end] = columns.subscription_ids
        self._handles[first : self._end] = handles
        parked = self._parked
        for row, device_id in enumerate(columns.device_ids, first):
            parked[device_id] = parked.get(device_id, row * _COUNT_MAX) + 1

    def made_of(self, device_id: str) -> Session | None:
        """Return the session of a device; None if it is a row or unknown."""
        return self._made.get(device_id)

    def handles_of(self, device_id: str) -> dict[int, int] | None:
        """Return a device's handles by subscription, from session or row; None if it is not known."""
        session = self._made.get(device_id)
        if session is not None:
            return dict(session.handles)
        place = self._parked.get(device_id)
        return None if place is None else self._pairs(place)

    def _pairs(self, place: int) -> dict[int, int]:
        first, count = divmod(place, _COUNT_MAX)
        some = slice(first, first + count)
        pairs = zip(self._subscription_ids[some].tolist(), self._handles[some].tolist(), strict=True)
        return dict(pairs)

    def made(self) -> ValuesView[Session]:
        """Return the sessions that are more than rows."""
        return self._made.values()

    def __getitem__(self, device_id: str) -> Session:
        session = self._made.get(device_id)
        if session is None:
            pairs = self._pairs(self._parked.pop(device_id))
            session = self._made[device_id] = self._revive(device_id, pairs)
        return session

    def __setitem__(self, device_id: str, session: Session) -> None:
        self._parked.pop(device_id, None)
        self._made[device_id] = session

    def __delitem__(self, device_id: str) -> None:
        if self._parked.pop(device_id, None) is None:
            del self._made[device_id]

    def __contains__(self, device_id: object) -> bool:
        return device_id in self._made or device_id in self._parked

    def __iter__(self) -> Iterator[str]:
        return iter([*self._made, *self._parked])

    def __len__(self) -> int:
        return len(self._made) + len(self._parked)
