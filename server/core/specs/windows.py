"""Windows of subscriptions of all kinds as arrays, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.windows import Lasts, Windows
from server.model import Window

WINDOW_FIELD = 5
"""Index of the window in a spec that is written as a list."""


def lasts_of(windows: Sequence[Window]) -> Lasts:
    """Return windows as columns for matchers."""
    durations = np.array([one.duration_ms for one in windows], dtype=np.int64)
    return Lasts(durations, np.array([one.count for one in windows], dtype=np.int64))


def window_of(windows: Windows, number: int) -> Window:
    """Return the window with a number."""
    return Window(*windows.last(number))


def encoded_window(window: Window) -> dict[str, int]:
    """Return a window as fields of JSON, none if there is none."""
    found = {"window_duration_ms": window.duration_ms, "window_count": window.count}
    return {name: value for name, value in found.items() if value}


def stored_window(spec: dict[str, Any] | list[Any]) -> Window:
    """Return the window of a stored spec of any kind."""
    return decoded_window(spec) if isinstance(spec, dict) else Window(*spec[WINDOW_FIELD])


def decoded_window(found: dict[str, Any]) -> Window:
    """Return the window in the fields of a stored spec."""
    return Window(int(found.get("window_duration_ms", 0)), int(found.get("window_count", 0)))
