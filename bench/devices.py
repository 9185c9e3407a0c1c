"""Which devices find that their regions do not cover them, whatever the engine."""

from __future__ import annotations

import numpy as np

from bench import device_kernels
from bench.lamps.local_engine import LocalEngine
from engine import Engine
from index.batches import Floats, Ints


def leaving(engine: Engine, handles: Ints, x_m: Floats, y_m: Floats, k_max: int) -> Ints:
    """Return the handles of devices that must report, of those at these positions."""
    if isinstance(engine, LocalEngine):
        outside: Ints = handles[engine.is_outside(handles, x_m, y_m)]
        return outside
    found = np.empty(len(handles), dtype=np.bool_)
    device_kernels.must_report(
        engine.objects.rows,
        engine.subscriptions.rows,
        engine.buffers.holdings,
        engine.subscriptions.slots(handles),
        x_m,
        y_m,
        found,
        k_max,
    )
    reporting: Ints = handles[found]
    return reporting


def pending_of(handles: Ints, object_ids: Ints) -> tuple[Ints, Ints, Ints]:
    """Group pairs of a device and an object that pends for it: devices, offsets, objects."""
    order = np.argsort(handles, kind="stable")
    asked, counts = np.unique(handles, return_counts=True)
    offsets = np.zeros(len(asked) + 1, dtype=np.int64)
    np.cumsum(counts, out=offsets[1:])
    return asked, offsets, object_ids[order]
