"""Find the start of windows of time."""

from __future__ import annotations

from engine.contracts import Rows
from index.batches import Ints
from index.tables.id_map_kernels import NO_VALUE, Values, find
from safe_region.jit import kernel


@kernel
def first_younger(
    objects: Rows, id_keys: Ints, id_values: Values, first_id: int, next_id: int, created_ms: int
) -> int:
    """Return the first id from `first_id` on of a live object that was created after a time.

    Ids of objects that are gone are skipped.
    """
    for one in range(first_id, next_id):
        slot = find(id_keys, id_values, one)
        if slot != NO_VALUE and objects[slot]["created_ms"] > created_ms:
            return one
    return next_id
