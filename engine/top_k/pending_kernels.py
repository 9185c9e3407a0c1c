"""Chains of objects that wait for a device's position, from `subscriptions[...]["first_pending"]`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.top_k.layout import NO_PENDING, Rows
from index.batches import Ints
from safe_region.jit import kernel

Slots = npt.NDArray[np.int32]


@kernel
def note(
    subscriptions: Rows, pairs: Rows, free: int, end: int, owners: Slots, object_ids: Ints, begun: Slots
) -> tuple[int, int, int]:
    """Chain objects; return the first free pair, the end of what is used, and how many are in `begun`.

    `begun` is filled with the owners for whom nothing waited before.
    """
    count = 0
    for i in range(owners.shape[0]):
        place = free
        if place == NO_PENDING:
            place = end
            end += 1
        else:
            free = pairs[place]["next"]
        first = subscriptions[owners[i]]["first_pending"]
        if first == NO_PENDING:
            begun[count] = owners[i]
            count += 1
        pairs[place]["object_id"] = object_ids[i]
        pairs[place]["next"] = first
        subscriptions[owners[i]]["first_pending"] = place
    return free, end, count


@kernel
def measure(subscriptions: Rows, pairs: Rows, slots: Slots, offsets: Ints) -> None:
    """Write where the objects of each subscription would end, one behind the other."""
    total = 0
    for i in range(slots.shape[0]):
        place = subscriptions[slots[i]]["first_pending"]
        while place != NO_PENDING:
            total += 1
            place = pairs[place]["next"]
        offsets[i + 1] = total


@kernel
def take(subscriptions: Rows, pairs: Rows, free: int, slots: Slots, object_ids: Ints) -> int:
    """Write the objects of these subscriptions, and free their pairs; return the first free one."""
    taken = 0
    for i in range(slots.shape[0]):
        place = subscriptions[slots[i]]["first_pending"]
        subscriptions[slots[i]]["first_pending"] = NO_PENDING
        while place != NO_PENDING:
            object_ids[taken] = pairs[place]["object_id"]
            taken += 1
            after = pairs[place]["next"]
            pairs[place]["next"] = free
            free = place
            place = after
    return free
