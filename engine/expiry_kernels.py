"""Implement a heap of (expiry, object id), least first."""

from __future__ import annotations

from index.batches import Ints
from index.tables.heap_kernels import Heap, pop, push
from safe_region.jit import kernel


@kernel
def push_all(times: Ints, ids: Ints, size: int, new_times: Ints, new_ids: Ints) -> int:
    """Add pairs to a heap with enough capacity; return its new size. O(log n) a pair."""
    heap = Heap(times, ids)
    for i in range(new_times.shape[0]):
        size = push(heap, size, new_times[i], new_ids[i])
    return size


@kernel
def pop_due(times: Ints, ids: Ints, size: int, now_ms: int, due: Ints) -> tuple[int, int]:
    """Move the ids of due objects to `due`, up to its size; return the new size and the count."""
    heap = Heap(times, ids)
    count = 0
    while size > 0 and times[0] <= now_ms and count < due.shape[0]:
        due[count] = ids[0]
        count += 1
        size = pop(heap, size)
    return size, count
