"""Windows of subscriptions of all kinds: validated, as arrays, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.windows import Lasts, Windows
from safe_region.regions.region import RegionMode
from server.core.specs.checks import require
from server.limits import Limits
from server.model import NO_WINDOW, Window

WINDOW_FIELD = 5
"""Index of the window in a spec that is written as a list."""

_KNOWN = (RegionMode.ANCHORED, RegionMode.STATIONARY)


def check_window(
    window: Window, region: RegionMode, limits: Limits, known: Sequence[RegionMode] = _KNOWN
) -> None:
    """Refuse a window that is out of its limits, or whose region does not support windows.

    `known` are the modes of the subscription's kind that support windows.

    Raises
    ------
    RefusalError
        Naming the field that is out of its limits.
    """
    if window == NO_WINDOW:
        return
    for field, value, most in (
        ("duration_ms", window.duration_ms, limits.window_ms_max),
        ("count", window.count, limits.window_count_max),
    ):
        require(0 <= value <= most, f"spec.window.{field}", value, f"1 to {most}")
    require_known(region, "since there is a window", known)


def require_known(region: RegionMode, why: str, known: Sequence[RegionMode] = _KNOWN) -> None:
    """Refuse the papers' modes, in which a device holds its result only and gets location requests.

    Raises
    ------
    RefusalError
        If the region is one of them.
    """
    names = " or ".join(one.name for one in known)
    require(region in known, "spec.region", region.name, f"{names}, {why}")


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
