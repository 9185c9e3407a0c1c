"""The different windows that subscriptions of a cluster use: a part of the state that all nodes share.

Each node claims its windows, all together, by an entry. A claim that is not renewed ends by the time of
the log, so those of a node that has ended do. O(windows of all nodes) per claim; there are few.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nearcast.canonical import Window
from server.errors import too_many_windows
from server.replication.write_behind import WriteBehind
from server.store.mutations import WindowClaim

KEPT_MS = 180_000
"""How long a claim counts."""


class LogWindows:
    """The windows in use, as the nodes claim them.

    Parameters
    ----------
    unwritten
        Where changes go that the store does not have yet.
    count_max
        The number of different windows in use.
    """

    def __init__(self, unwritten: WriteBehind, count_max: int) -> None:
        self._unwritten = unwritten
        self._count_max = count_max
        self.claims: dict[str, WindowClaim] = {}
        """By the address of the node."""
        self._used: frozenset[Window] = frozenset()

    def __contains__(self, window: Window) -> bool:
        return window in self._used

    def recover(self, claims: Mapping[str, WindowClaim]) -> None:
        """Continue with what a store has."""
        self._set(dict(claims))

    def claim(self, node: str, windows: Sequence[Window], log_ms: int, *, must: bool) -> None:
        """Set the windows that a node uses.

        Parameters
        ----------
        node
            Its address.
        windows
            All of its windows.
        log_ms
            The time of the log.
        must
            Whether the node uses them already, so that it has to be allowed.

        Raises
        ------
        RefusedError
            TOO_MANY, if all nodes together would have too many; nothing has changed.
        """
        claims = {name: one for name, one in self.claims.items() if one.time_ms > log_ms - KEPT_MS}
        claims[node] = WindowClaim(log_ms, tuple(windows))
        if not must:
            self._require_room(claims)
        self._set(claims)
        self._unwritten.put_windows(claims)

    def require(self, window: Window) -> None:
        """Refuse a window that is not claimed if all nodes together have too many others."""
        if window not in self._used and len(self._used) >= self._count_max:
            raise too_many_windows(self._count_max)

    def _require_room(self, claims: Mapping[str, WindowClaim]) -> None:
        found = _union(claims)
        if found - self._used and len(found) > self._count_max:
            raise too_many_windows(self._count_max)

    def _set(self, claims: dict[str, WindowClaim]) -> None:
        self.claims, self._used = claims, _union(claims)


def _union(claims: Mapping[str, WindowClaim]) -> frozenset[Window]:
    return frozenset(window for one in claims.values() for window in one.windows)
