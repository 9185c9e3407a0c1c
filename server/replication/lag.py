"""Whether the results of a node may lag behind the log, and the devices that it has notified of that.

A node promises exact results while its lease is valid, and while its clock is close to the last entry
that it has applied. It checks both before it sends anything to a device (`look`): a node that was paused
notices that before its first response. `end`, between commands, withdraws the notice.

Cost: `look` 0.5 us; a change some microseconds for each attached device.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from nearcast.errors import Reason, RefusedError
from server.session import Lag, Session

_log = logging.getLogger(__name__)

_RETRY_MS = 1_000


class LagNotice:
    """The state of a node as its devices know it.

    Parameters
    ----------
    is_current
        Returns whether the node may promise exact results now.
    applied
        Returns the offset of the last entry that it has applied.
    sessions
        Returns the sessions of the node.
    serves
        Returns whether a device is of a slot that the node serves. Others are about to be detached, and
        get no promise.
    """

    def __init__(
        self,
        is_current: Callable[[], bool],
        applied: Callable[[], int],
        sessions: Callable[[], Iterable[Session]],
        serves: Callable[[str], bool],
    ) -> None:
        self._is_current = is_current
        self._applied = applied
        self._sessions = sessions
        self._serves = serves
        self.offset = 0
        """While the node lags, the last offset that it had applied when that began; else 0."""

    def look(self) -> int:
        """Notify the attached devices if the node lags from now on; return `offset`."""
        if not self.offset and not self._is_current():
            self.offset = self._applied()
            count = self._notify(lambda _: True)
            if count:
                _log.warning("%d devices lag behind the log, applied up to %d", count, self.offset)
        return self.offset

    def end(self) -> None:
        """Notify the attached devices of served slots if the node has caught up."""
        if self.offset and self._is_current():
            self.offset = 0
            count = self._notify(self._serves)
            if count:
                _log.info("%d devices have caught up with the log", count)

    def require_none(self) -> None:
        """Raise RefusedError if the node lags: it cannot store anything."""
        if self.look():
            raise RefusedError(
                Reason.LAGGING,
                "log",
                "not accepting anything now",
                "reachable and have a leader; try again",
                retry_after_ms=_RETRY_MS,
            )

    def _notify(self, is_meant: Callable[[str], bool]) -> int:
        """Notify attached devices; return how many."""
        attached = (one for one in self._sessions() if one.is_attached)
        meant = [one for one in attached if is_meant(one.device_id)]
        for session in meant:
            session.enqueue(Lag(self.offset))
        return len(meant)
