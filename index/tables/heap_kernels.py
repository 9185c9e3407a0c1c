"""A binary heap of (key, item), the least key first, in two arrays.

It lies in `keys[0:size]` with items beside it. Keys and items are of any type of numbers. Push and pop
O(log n). Callers provide arrays large enough for all items at one time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy.typing as npt

from safe_region.jit import leaf


class Heap(NamedTuple):
    """The arrays of a heap."""

    keys: npt.NDArray[Any]
    items: npt.NDArray[Any]


@leaf
def push(heap: Heap, size: int, key: float, item: int) -> int:
    """Add an item; return the new size."""
    keys = heap.keys
    items = heap.items
    i = size
    while i > 0:
        parent = (i - 1) // 2
        if keys[parent] <= key:
            break
        keys[i] = keys[parent]
        items[i] = items[parent]
        i = parent
    keys[i] = key
    items[i] = item
    return size + 1


@leaf
def pop(heap: Heap, size: int) -> int:
    """Remove the least item, which the caller has read at position 0; return the new size."""
    keys = heap.keys
    items = heap.items
    size -= 1
    key = keys[size]
    item = items[size]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and keys[child + 1] < keys[child]:
            child += 1
        if key <= keys[child]:
            break
        keys[i] = keys[child]
        items[i] = items[child]
        i = child
    keys[i] = key
    items[i] = item
    return size
