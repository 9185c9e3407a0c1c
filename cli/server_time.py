"""The time of a server, for people."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nearcast import ServerStatus


def time_text(time_ms: int) -> str:
    """Format a server time as a date; in milliseconds if it exceeds all dates, as virtual time may."""
    try:
        return f"{datetime.fromtimestamp(time_ms / 1000.0, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OSError, OverflowError, ValueError):
        return f"{time_ms:,} ms"


def status_time_text(status: ServerStatus) -> str:
    """Format the server time of a response of `Status`; a server that recovers does not know it yet."""
    if not status.time_ms and status.state.name != "SERVING":
        return "not known yet"
    return time_text(status.time_ms)
