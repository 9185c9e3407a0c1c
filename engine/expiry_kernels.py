"""A heap of (expiry, object id), least first, in two arrays."""

from __future__ import annotations

from index.batches import Ints
from safe_region.jit import kernel, leaf


@leaf
def _sift_up(times: Ints, ids: Ints, i: int) -> None:
    while i > 0:
        parent = (i - 1) // 2
        if times[parent] <= times[i]:
            return
        times[parent], times[i] = times[i], times[parent]
        ids[parent], ids[i] = ids[i], ids[parent]
        i = parent


@leaf
def _sift_down(times: Ints, ids: Ints, size: int) -> None:
    i = 0
    while True:
        least = i
        for child in (2 * i + 1, 2 * i + 2):
            if child < size and times[child] < times[least]:
                least = child
        if least == i:
            return
        times[least], times[i] = times[i], times[least]
        ids[least], ids[i] = ids[i], ids[least]
        i = least


@kernel
def push_all(times: Ints, ids: Ints, size: int, new_times: Ints, new_ids: Ints) -> int:
    """Add pairs to a heap that has room; return its new size. O(log n) a pair."""
    for i in range(new_times.shape[0]):
        times[size] = new_times[i]
        ids[size] = new_ids[i]
        _sift_up(times, ids, size)
        size += 1
    return size


@kernel
def pop_due(times: Ints, ids: Ints, size: int, now_ms: int, due: Ints) -> tuple[int, int]:
    """Move the ids of what is due to `due`, as far as it goes; return the new size and how many."""
    count = 0
    while size > 0 and times[0] <= now_ms and count < due.shape[0]:
        due[count] = ids[0]
        count += 1
        size -= 1
        times[0] = times[size]
        ids[0] = ids[size]
        _sift_down(times, ids, size)
    return size, count
