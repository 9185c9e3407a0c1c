"""Find the devices that have left their regions, for any engine."""

from __future__ import annotations

import numpy as np

from bench import device_kernels
from bench.engines import top_k_of
from bench.local_matcher import LocalMatcher
from engine import Engine
from index.batches import Floats, Ints


def leaving(engine: Engine, handles: Ints, x_m: Floats, y_m: Floats, k_max: int) -> Ints:
    """Return the handles of the devices at these positions that must report."""
    matcher = top_k_of(engine)
    if isinstance(matcher, LocalMatcher):
        outside: Ints = handles[matcher.local.is_outside(handles, x_m, y_m)]
        return outside
    found = np.empty(len(handles), dtype=np.bool_)
    device_kernels.must_report(
        engine.objects.table.rows,
        matcher.subscriptions.rows,
        matcher.buffers.holdings,
        matcher.subscriptions.slots(handles),
        x_m,
        y_m,
        found,
        k_max,
    )
    reporting: Ints = handles[found]
    return reporting
