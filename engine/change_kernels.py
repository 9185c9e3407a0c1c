"""Write changes of results; sort them, and omit those that undo each other.

Operations: write O(1). The others O(changes log changes of a subscription), plus sorting them by
subscription, which is O(changes).
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from index.batches import Ints
from safe_region.jit import kernel, leaf

Rows = npt.NDArray[Any]

_FEW = 24
"""Up to this number, changes are sorted by insertion."""


@leaf
def emit(changes: Rows, at: int, handle: int, object_id: int, r_m: float, is_drop: int) -> int:
    """Write a change; return the place of the next one."""
    changes[at]["handle"] = handle
    changes[at]["object_id"] = object_id
    changes[at]["r_m"] = r_m
    changes[at]["is_drop"] = is_drop
    return at + 1


@leaf
def _is_before(changes: Rows, a: int, b: int, by_object: bool) -> bool:  # noqa: FBT001
    """Return whether change a comes before b, by object alone, or with objects that leave first."""
    first, second = changes[a], changes[b]
    if not by_object and first["is_drop"] != second["is_drop"]:
        return bool(first["is_drop"] > second["is_drop"])
    return bool(first["object_id"] < second["object_id"])


@leaf
def _sift(changes: Rows, order: Ints, start: int, root: int, size: int, by_object: bool) -> None:  # noqa: FBT001
    """Sift a change down to its place in a heap."""
    while True:
        child = 2 * root + 1
        if child >= size:
            return
        if child + 1 < size and _is_before(
            changes, order[start + child], order[start + child + 1], by_object
        ):
            child += 1
        if not _is_before(changes, order[start + root], order[start + child], by_object):
            return
        order[start + root], order[start + child] = order[start + child], order[start + root]
        root = child


@leaf
def _sort(changes: Rows, order: Ints, start: int, end: int, by_object: bool) -> None:  # noqa: FBT001
    """Sort the changes of a subscription."""
    size = end - start
    if size > _FEW:
        for root in range(size // 2 - 1, -1, -1):
            _sift(changes, order, start, root, size, by_object)
        for last in range(size - 1, 0, -1):
            order[start], order[start + last] = order[start + last], order[start]
            _sift(changes, order, start, 0, last, by_object)
        return
    for at in range(start + 1, end):
        one = order[at]
        place = at
        while place > start and _is_before(changes, one, order[place - 1], by_object):
            order[place] = order[place - 1]
            place -= 1
        order[place] = one


@kernel
def group(changes: Rows, order: Ints, undoes: int) -> int:
    """Sort the changes of each subscription: objects that leave before those that enter, by object id.

    Parameters
    ----------
    changes
        In any order.
    order
        All of them, by subscription; the result is written here.
    undoes
        Whether to omit an object that both enters and leaves.

    Returns
    -------
    int
        The number of changes in `order` afterwards.
    """
    count = order.shape[0]
    kept, start = 0, 0
    while start < count:
        handle = changes[order[start]]["handle"]
        end = start + 1
        while end < count and changes[order[end]]["handle"] == handle:
            end += 1
        first = kept
        if undoes:
            _sort(changes, order, start, end, True)
            at = start
            while at < end:
                following = at + 1
                while (
                    following < end
                    and changes[order[following]]["object_id"] == changes[order[at]]["object_id"]
                ):
                    following += 1
                if following == at + 1:
                    order[kept] = order[at]
                    kept += 1
                at = following
        else:
            kept = end
        _sort(changes, order, first, kept, False)
        start = end
    return kept


@kernel
def net(handles: Ints, object_ids: Ints, order: Ints) -> int:
    """Reduce successive changes to the net differences.

    Parameters
    ----------
    handles, object_ids
        Of changes: the first change of a pair means that the object enters, or leaves; the next undoes
        it.
    order
        All changes, so that those of a pair follow each other in their order. It gets the last change of
        each pair that has a net difference.

    Returns
    -------
    int
        The number of net differences.
    """
    count = order.shape[0]
    kept, start = 0, 0
    for at in range(count):
        one = order[at]
        is_last = at + 1 == count or (
            handles[order[at + 1]] != handles[one] or object_ids[order[at + 1]] != object_ids[one]
        )
        if is_last:
            if (at - start) % 2 == 0:
                order[kept] = one
                kept += 1
            start = at + 1
    return kept
