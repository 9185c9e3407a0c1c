"""Keeping the n least (length, id) pairs: a bounded max-heap in plain arrays.

The heap lies in `lengths[0:size]` with ids and text parts beside it; the root is the worst kept pair.
Offer O(log n), drain O(n log n).
"""

from __future__ import annotations

from index.batches import Floats, Ints
from safe_region.jit import leaf


@leaf
def is_less(length_a: float, id_a: int, length_b: float, id_b: int) -> bool:
    """Return whether pair a comes before pair b: by length, then by id."""
    return length_a < length_b or (length_a == length_b and id_a < id_b)


@leaf
def _swap(lengths: Floats, ids: Ints, shares: Floats, i: int, j: int) -> None:
    lengths[i], lengths[j] = lengths[j], lengths[i]
    ids[i], ids[j] = ids[j], ids[i]
    shares[i], shares[j] = shares[j], shares[i]


@leaf
def _sift_down(lengths: Floats, ids: Ints, shares: Floats, size: int) -> None:
    i = 0
    while True:
        worst = i
        for child in (2 * i + 1, 2 * i + 2):
            if child < size and is_less(lengths[worst], ids[worst], lengths[child], ids[child]):
                worst = child
        if worst == i:
            return
        _swap(lengths, ids, shares, i, worst)
        i = worst


@leaf
def offer(
    lengths: Floats, ids: Ints, shares: Floats, size: int, length: float, new_id: int, r: float
) -> int:
    """Keep a pair if it is among the `len(lengths)` least so far; return the new size."""
    if size < lengths.shape[0]:
        i = size
        lengths[i] = length
        ids[i] = new_id
        shares[i] = r
        while i > 0:
            parent = (i - 1) // 2
            if not is_less(lengths[parent], ids[parent], lengths[i], ids[i]):
                break
            _swap(lengths, ids, shares, i, parent)
            i = parent
        return size + 1
    if size > 0 and is_less(length, new_id, lengths[0], ids[0]):
        lengths[0] = length
        ids[0] = new_id
        shares[0] = r
        _sift_down(lengths, ids, shares, size)
    return size


@leaf
def drain(lengths: Floats, ids: Ints, shares: Floats, size: int) -> None:
    """Sort the heap in place, least pair first."""
    for end in range(size - 1, 0, -1):
        _swap(lengths, ids, shares, 0, end)
        _sift_down(lengths, ids, shares, end)
