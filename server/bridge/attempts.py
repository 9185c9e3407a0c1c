"""Retries of failed attempts, at growing intervals, for as long as the server runs.

No failure of a feed ends the server: it is a state, which `Status` and metrics show.
"""

from __future__ import annotations

import asyncio
import logging

from nearcast.errors import RefusedError
from server.bridge.chunk import described
from server.counters import Counters, Feed
from server.errors import StoreError

_log = logging.getLogger(__name__)

_PAUSE_S, _PAUSE_MAX_S = 1.0, 30.0


class Attempts:
    """The attempts at one stream.

    Parameters
    ----------
    name
        The name for the log.
    feed
        The feed of the stream.
    counters
        Count the failures.
    """

    def __init__(self, name: str, feed: Feed, counters: Counters) -> None:
        self._name, self._feed, self._counters = name, feed, counters
        self._pause_s = _PAUSE_S
        self._is_failing = False

    async def failed(self, error: BaseException) -> None:
        """Record that an attempt has failed; wait until it is time for the next one."""
        pause_s, self._pause_s = self._pause_s, min(2.0 * self._pause_s, _PAUSE_MAX_S)
        self._counters.bridge_failures[self._feed] += 1
        if not self._is_failing:
            self._is_failing = True
            self._counters.bridge_failing[self._feed] += 1
        _log.warning("%s failed, retry in %g s: %s", self._name, pause_s, _reason_of(error))
        await asyncio.sleep(pause_s)

    def succeeded(self) -> None:
        """Record that an attempt has succeeded."""
        if not self._is_failing:
            return
        self._is_failing = False
        self._counters.bridge_failing[self._feed] -= 1
        self._pause_s = _PAUSE_S
        _log.info("%s succeeded again", self._name)

    def ended(self) -> None:
        """Record that nothing is attempted any more."""
        if self._is_failing:
            self._is_failing = False
            self._counters.bridge_failing[self._feed] -= 1


def _reason_of(error: BaseException) -> str:
    """Return the text for the log about an error."""
    if isinstance(error, RefusedError):
        return error.reason.name
    return str(error) if isinstance(error, StoreError) else described(error)
