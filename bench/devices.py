"""Find the devices that have left their regions, and what the others have left, for any engine."""

from __future__ import annotations

import numpy as np

from bench import device_kernels
from bench.engines import top_k_of
from bench.local_matcher import LocalMatcher
from engine import Engine
from index.batches import Floats, Ints


def leaving(engine: Engine, handles: Ints, x_m: Floats, y_m: Floats, k_max: int) -> Ints:
    """Return the handles of the devices at these positions that must report."""
    reporting: Ints = handles[spares(engine, handles, x_m, y_m, k_max) <= 0.0]
    return reporting


def spares(engine: Engine, handles: Ints, x_m: Floats, y_m: Floats, k_max: int) -> Floats:
    """Return what devices have left of their test (*), in metres; not above 0 if they must report.

    A local region of Lamps says only whether a device is outside: inside, next to nothing is left.
    """
    matcher = top_k_of(engine)
    if isinstance(matcher, LocalMatcher):
        is_outside = matcher.local.is_outside(handles, x_m, y_m)
        return np.where(is_outside, 0.0, device_kernels.AT_ANCHOR_M)
    found = np.empty(len(handles))
    device_kernels.spares(
        engine.objects.table.rows,
        matcher.subscriptions.rows,
        matcher.buffers.holdings,
        matcher.subscriptions.slots(handles),
        x_m,
        y_m,
        found,
        k_max,
    )
    return found
