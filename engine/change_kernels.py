"""Changes of results in order, and without those that undo each other.

Operations: O(changes log changes of a subscription), beside sorting them by subscription, which is
O(changes).
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from index.batches import Ints
from safe_region.jit import kernel, leaf

Rows = npt.NDArray[Any]

_FEW = 24
"""So many are put in order by inserting."""


@leaf
def _is_before(changes: Rows, a: int, b: int, by_object: bool) -> bool:  # noqa: FBT001
    """Whether change a comes before b, by object alone, or what leaves first."""
    first, second = changes[a], changes[b]
    if not by_object and first["is_drop"] != second["is_drop"]:
        return bool(first["is_drop"] > second["is_drop"])
    return bool(first["object_id"] < second["object_id"])


@leaf
def _sift(changes: Rows, order: Ints, start: int, root: int, size: int, by_object: bool) -> None:  # noqa: FBT001
    """Let a change sink to its place in a heap."""
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
    """Put the changes of a subscription in order."""
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
    """Put the changes of each subscription in order: what leaves before what enters, by object.

    Parameters
    ----------
    changes
        In any order.
    order
        All of them, by subscription; it becomes the order.
    undoes
        Whether an object that both enters and leaves is left out.

    Returns
    -------
    int
        How many there are in `order` then.
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
    """Keep of changes that come one after the other what is different behind them all.

    Parameters
    ----------
    handles, object_ids
        Of changes: the first of a pair says that the object enters, or leaves; the next undoes it.
    order
        All changes, so that those of a pair follow each other as they came. It gets the last one of each
        pair for which something is different.

    Returns
    -------
    int
        How many those are.
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
