"""Chain objects that wait for a device's position, from `subscriptions[...]["first_pending"]`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.top_k.layout import NO_PENDING, Rows
from index.batches import Ints
from index.tables.free_kernels import give_back_rows, take_rows
from safe_region.jit import kernel

Slots = npt.NDArray[np.int32]


@kernel
def note(
    subscriptions: Rows,
    pairs: Rows,
    free: Slots,
    ends: Ints,
    owners: Slots,
    object_ids: Ints,
    newly_pending: Slots,
) -> int:
    """Chain objects; return the number of owners in `newly_pending`, which had none pending before."""
    count = 0
    for i in range(owners.shape[0]):
        place = take_rows(pairs["next"], free, 0, ends, 0, 1)
        first = subscriptions[owners[i]]["first_pending"]
        if first == NO_PENDING:
            newly_pending[count] = owners[i]
            count += 1
        pairs[place]["object_id"] = object_ids[i]
        pairs[place]["next"] = first
        subscriptions[owners[i]]["first_pending"] = place
    return count


@kernel
def measure(subscriptions: Rows, pairs: Rows, slots: Slots, offsets: Ints) -> None:
    """Write the end offsets of each subscription's objects, stored one after another."""
    total = 0
    for i in range(slots.shape[0]):
        place = subscriptions[slots[i]]["first_pending"]
        while place != NO_PENDING:
            total += 1
            place = pairs[place]["next"]
        offsets[i + 1] = total


@kernel
def take(subscriptions: Rows, pairs: Rows, free: Slots, slots: Slots, object_ids: Ints) -> None:
    """Write the objects of these subscriptions, and free their pairs."""
    taken = 0
    for i in range(slots.shape[0]):
        place = subscriptions[slots[i]]["first_pending"]
        subscriptions[slots[i]]["first_pending"] = NO_PENDING
        while place != NO_PENDING:
            object_ids[taken] = pairs[place]["object_id"]
            taken += 1
            after = pairs[place]["next"]
            give_back_rows(pairs["next"], free, 0, place)
            place = after
