"""Refused origins in the log: a browser shows a page no reason, so its developer looks here."""

from __future__ import annotations

import logging
import time

_log = logging.getLogger(__name__)

_QUIET_S = 10.0
"""Interval between two log lines."""

_SHOWN = 100
"""Characters of an origin, which a stranger may have made."""


class RefusedOrigins:
    """Logs refused origins: one line in ten seconds at most, the first one at once."""

    def __init__(self) -> None:
        self._logged_s = -_QUIET_S

    def note(self, origin: str) -> None:
        """Log a refused origin, if it is time."""
        now_s = time.monotonic()
        if now_s - self._logged_s < _QUIET_S:
            return
        self._logged_s = now_s
        _log.warning("a page of the origin %.*r is refused: --origin does not allow it", _SHOWN, origin)
