"""The size of a window of messages."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WindowSize:
    """The size of the window: the number of messages, or a duration in milliseconds; the other is 0."""

    count: int = 0
    duration_ms: int = 0
