"""The sessions of all devices. Those restored from the store are rows until they are accessed.

A `Session` takes 0.6 kB; a device that is parked and has not been seen since the start takes an entry in
a dictionary, with 16 bytes a subscription, which ends with the entry. A look-up costs O(1), or
O(subscriptions of the device) when rows become a session.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, MutableMapping, ValuesView
from itertools import groupby

import numpy as np

from index.batches import Ints
from server.session import Session
from server.store.mutations import SubscriptionColumns

_ROW = struct.Struct("=qq")
"""The number of a subscription, and its handle."""


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
        self._parked: dict[str, bytes] = {}  # the rows of each device

    def park(self, columns: SubscriptionColumns, handles: Ints) -> None:
        """Add subscriptions of devices that have no session; those of a device are adjacent."""
        rows = np.column_stack((columns.subscription_ids, handles)).tobytes()
        end = 0
        for device_id, some in groupby(columns.device_ids):
            first, end = end, end + _ROW.size * sum(1 for _ in some)
            self._parked[device_id] = self._parked.get(device_id, b"") + rows[first:end]

    def made_of(self, device_id: str) -> Session | None:
        """Return the session of a device; None if it is a row or unknown."""
        return self._made.get(device_id)

    def handles_of(self, device_id: str) -> dict[int, int] | None:
        """Return a device's handles by subscription, from session or row; None if it is not known."""
        session = self._made.get(device_id)
        if session is not None:
            return dict(session.handles)
        rows = self._parked.get(device_id)
        return None if rows is None else _pairs(rows)

    def made(self) -> ValuesView[Session]:
        """Return the sessions that are more than rows."""
        return self._made.values()

    def __getitem__(self, device_id: str) -> Session:
        session = self._made.get(device_id)
        if session is None:
            pairs = _pairs(self._parked.pop(device_id))
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


def _pairs(rows: bytes) -> dict[int, int]:
    return dict(_ROW.iter_unpack(rows))
